// FrameReader: takes the newest complete frame out of a FLAN ring.
//
// Data flow: head -> its slot -> copied out -> checked: complete, or
// overwritten meanwhile and read again.
// Ownership: the ring's memory is the caller's, may be mapped read-only, and
// outlives the reader. Any number of readers read one ring; none of them
// leaves a trace in it.
//
//   absl::StatusOr<FrameReader> reader = FrameReader::Attach(ring);
//   Frame frame;  // its buffers are used again and again
//   if (reader->Next(&frame) == FrameReader::Found::kFrame) Show(frame);
//
// Nothing in the ring is trusted. The geometry is checked once and kept; all
// addresses are computed from it, so that nothing outside the ring is read
// whatever the ring says later. Each read compares it with what the ring says
// now. MOSAIC's writers rewrite the entire header with each frame, byte by byte
// from zeroes: an invalid header counts as nothing new at first, and as broken
// once it has been invalid for kFrameGraceNs.

#ifndef TANDEM_TRANSPORT_FRAMES_FRAME_READER_H_
#define TANDEM_TRANSPORT_FRAMES_FRAME_READER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "schema/layout/flan.h"
#include "transport/base/frame_geometry.h"
#include "transport/base/grace_period.h"

namespace tandem {

// Longer than a writer is off its core between two bytes.
inline constexpr int64_t kFrameGraceNs = 20'000'000;

struct Frame {
  uint64_t number = 0;  // from 1; the writer's head when it was published
  uint32_t width = 0;
  uint32_t height = 0;
  uint32_t channels = 0;
  // width * height * channels; rows from the top, pixels R, G, B (A). Zero from
  // frame_len on.
  std::vector<std::byte> pixels;
  uint64_t frame_len = 0;  // bytes that the writer gave; fewer are allowed
  std::string metadata;    // JSON by agreement, anything by chance
  FrameMetrics metrics;    // of this frame, or of the next
};

// Not thread-safe. Nothing blocks or makes a system call; a read allocates only
// to make room in the Frame: at most payload_size bytes, which are fewer than
// the ring's, and the same again never. A moved-from reader may only be
// assigned to or destroyed.
class FrameReader {
 public:
  // Checks the header of `ring`, 8-byte aligned; yields the processor a few
  // times while it is invalid.
  // kNotReady: not a ring yet, try again. kLayoutMismatch: no ring that this
  // version can read, nor will it become one.
  static absl::StatusOr<FrameReader> Attach(std::span<const std::byte> ring,
                                            int64_t grace_ns = kFrameGraceNs);

  FrameReader(FrameReader&&) = default;
  FrameReader& operator=(FrameReader&&) = default;

  enum class [[nodiscard]] Found{
      kFrame,
      kNothing,      // no frame (for Next: no newer one), or it was overwritten
                     // while it was read, each time; try again later
      kInvalidated,  // the writer has left; no frame will follow
      kBroken,       // the ring is corrupt; attach again
  };

  // The newest complete frame, each once; kInvalidated once the writer's last
  // was delivered. Unless kFrame, what is in `into` is of no use.
  Found Next(Frame* into);

  // The newest complete frame, again and again, also after the writer has left:
  // never kInvalidated.
  Found Newest(Frame* into);

  // As Newest and Next, with the pixels (or what of them there is room for) to
  // a buffer of the caller's; into->pixels stays as it is.
  Found NewestTo(std::span<std::byte> pixels, Frame* into);
  Found NextTo(std::span<std::byte> pixels, Frame* into);

  // Frames that passed between Next's deliveries.
  uint64_t dropped() const { return dropped_; }

  bool Invalidated() const;
  // The writer's head just now: frames published; may be 0 for an instant.
  uint64_t Head() const;
  FrameMetrics Metrics() const { return MetricsOf(*header()); }
  const FrameGeometry& geometry() const { return geometry_; }

 private:
  FrameReader(std::span<const std::byte> ring, const FrameGeometry& geometry,
              int64_t grace_ns);

  const FlanHeader* header() const {
    return reinterpret_cast<const FlanHeader*>(ring_.data());
  }
  bool HeaderIsOurs() const;
  Found Read(uint64_t beyond, std::span<std::byte> pixels, Frame* into);
  enum class Copied { kWhole, kTorn, kSenseless };
  Copied CopyOut(uint64_t number, std::span<std::byte> pixels, Frame* into);

  std::span<const std::byte> ring_;
  FrameGeometry geometry_;
  FlanHeader kept_;           // what the header's constant part has to be
  GracePeriod header_grace_;  // whether it still is that
  GracePeriod head_grace_;    // whether its writer has restarted
  uint64_t seen_ = 0;         // newest frame that any read delivered
  uint64_t delivered_ = 0;    // newest that Next delivered
  uint64_t dropped_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_FRAMES_FRAME_READER_H_
