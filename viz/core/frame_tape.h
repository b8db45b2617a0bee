// FrameTape: the frames of the last 60 s, compressed, in bounded memory.
//
// Data flow: each new frame of a FrameWatch -> at most ten a second, as JPEG
// files -> the frame of an earlier time, for freeze and scrub.
// Ownership: as Tape's.

#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/frame_geometry.h"
#include "viz/core/frame_watch.h"
#include "viz/core/picture.h"
#include "viz/core/tape.h"

namespace tandem {

struct KeptFrame {
  int64_t at_ns = 0;    // CLOCK_MONOTONIC of the poll that found the frame
  uint64_t number = 0;  // the writer's
  FrameMetadata metadata;
  FrameMetrics metrics;
  Picture picture;  // smaller than the frame if that is giant

  size_t bytes() const { return picture.file.size(); }
};

class FrameTape : public Tape<KeptFrame> {
 public:
  static constexpr int kQuality = 75;

  FrameTape() : FrameTape(Limits()) {}
  explicit FrameTape(const Limits& limits) : Tape(limits) {}

  // Keeps the newest frame of `watch`, unless the frame before it is younger
  // than least_gap_ns. Takes milliseconds if it keeps the frame. A frame that
  // libjpeg refuses is not kept.
  void Record(const FrameWatch& watch, int64_t now_ns);
};

}  // namespace tandem
