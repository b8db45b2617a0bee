// FrameTape: the frames of the last 60 s, compressed, in bounded memory.
//
// Data flow: each new frame of a FrameWatch -> at most ten a second, as JPEG
// files -> the frame of an earlier time, for freeze and scrub.
// Ownership: one view of a run; one thread. The files are shared: a reader may
// keep one after the tape has removed it.
//
//   FrameTape tape;
//   if (watch.Poll(now)) tape.Record(watch, now);
//   std::shared_ptr<const KeptFrame> frame = tape.At(now - 5'000'000'000);

#ifndef TANDEM_VIZ_CORE_FRAME_TAPE_H_
#define TANDEM_VIZ_CORE_FRAME_TAPE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include "transport/frame_geometry.h"
#include "viz/core/frame_watch.h"
#include "viz/core/picture.h"

namespace tandem {

struct KeptFrame {
  int64_t at_ns = 0;    // CLOCK_MONOTONIC of the poll that found the frame
  uint64_t number = 0;  // the writer's
  FrameMetadata metadata;
  FrameMetrics metrics;
  Picture picture;  // smaller than the frame if that is giant
};

class FrameTape {
 public:
  struct Limits {
    int64_t span_ns = 60'000'000'000;
    int64_t least_gap_ns = 100'000'000;  // between two frames
    // Of the files. A tape of large frames is shorter than span_ns. At least
    // one frame is kept.
    size_t bytes = size_t{32} << 20;
  };
  static constexpr int kQuality = 75;
  static constexpr size_t kBytesOfAll = size_t{256} << 20;  // of a front end

  FrameTape() : FrameTape(Limits()) {}
  explicit FrameTape(const Limits& limits) : limits_(limits) {}

  // Keeps the newest frame of `watch`, unless the frame before it is younger
  // than least_gap_ns. Removes frames beyond the limits. Takes milliseconds if
  // it keeps the frame. A frame that libjpeg refuses is not kept.
  void Record(const FrameWatch& watch, int64_t now_ns);
  // The same for a frame that is already compressed.
  void Keep(KeptFrame frame);

  // Shares kBytesOfAll among the tapes of a front end, of which this is one.
  // Removes frames beyond the new limit.
  void ShareWith(size_t tapes);

  // Returns the newest frame from `at_ns` or earlier; otherwise the oldest
  // frame; nullptr: none.
  std::shared_ptr<const KeptFrame> At(int64_t at_ns) const;

  bool empty() const { return frames_.empty(); }
  size_t size() const { return frames_.size(); }
  size_t bytes() const { return bytes_; }
  // CLOCK_MONOTONIC of the first and the last frame; 0: none.
  int64_t begin_ns() const { return empty() ? 0 : frames_.front()->at_ns; }
  int64_t end_ns() const { return empty() ? 0 : frames_.back()->at_ns; }

 private:
  void RemoveBeyondLimits();

  Limits limits_;
  std::deque<std::shared_ptr<const KeptFrame>> frames_;  // oldest first
  size_t bytes_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_VIZ_CORE_FRAME_TAPE_H_
