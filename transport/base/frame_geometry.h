// The format of a FLAN ring's frames, and the ring's header from it.
// FrameMetrics: the numbers that a head-up display shows beside a frame.
//
// Data flow: FrameGeometry -> PlanFrameRing -> a header -> the ring -> a
// reader's copy of the header -> CheckFrameRing -> FrameGeometry.
//
//   absl::StatusOr<FlanHeader> header =
//       PlanFrameRing({.width = 640, .height = 480});
//   FrameRingBytes(*header);  // bytes to reserve

#ifndef TANDEM_TRANSPORT_BASE_FRAME_GEOMETRY_H_
#define TANDEM_TRANSPORT_BASE_FRAME_GEOMETRY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "schema/layout/flan.h"

namespace tandem {

inline constexpr uint32_t kMaxFrameSide = 16'384;  // pixels
inline constexpr uint32_t kMaxFrameSlots = 65'536;
inline constexpr uint32_t kMaxMetadataBytes = 64u << 20;  // of one frame

struct FrameGeometry {
  uint32_t width = 0;  // pixels
  uint32_t height = 0;
  uint32_t channels = 3;        // 3: RGB, 4: RGBA; bytes of a pixel
  uint32_t capacity = 8;        // slots
  uint32_t metadata_bytes = 0;  // room for a frame's metadata

  // Bytes of a frame. At most 1 GiB in a ring that was planned or checked.
  uint64_t FrameBytes() const { return uint64_t{width} * height * channels; }
  friend bool operator==(const FrameGeometry&, const FrameGeometry&) = default;
};

// rolling_return: the mean of the latest episodes; step_rate_hz: steps of all
// environments a second.
struct FrameMetrics {
  double last_reward = 0;
  double rolling_return = 0;
  double step_rate_hz = 0;
  friend bool operator==(const FrameMetrics&, const FrameMetrics&) = default;
};

// Of a ring's header, or of a copy. Each number is complete; they may be of
// different frames.
FrameMetrics MetricsOf(const FlanHeader& header);

// The same with a metadata room padded so that every slot starts on a multiple
// of 64 bytes behind the first: no seq is misaligned then. For rings of ours;
// a stand-alone segment keeps what its user asked for.
FrameGeometry WithAlignedSlots(FrameGeometry geometry);

// The header of such a ring, with no frame in it. kInvalidArgument for a side,
// capacity or room of zero or beyond the limits, or other channels.
absl::StatusOr<FlanHeader> PlanFrameRing(const FrameGeometry& geometry);

// Header and slots.
uint64_t FrameRingBytes(const FlanHeader& header);

// What a copy of a ring's header says, if a ring of `ring_bytes` may be used
// by it: magic, version, sizes, format, and every slot inside.
// kNotReady: the header is not written yet, or just being rewritten; try again.
// kLayoutMismatch: field, expected and found.
absl::StatusOr<FrameGeometry> CheckFrameRing(const FlanHeader& header,
                                             uint64_t ring_bytes);

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_BASE_FRAME_GEOMETRY_H_
