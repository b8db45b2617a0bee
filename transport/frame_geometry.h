// The format of a FLAN ring's frames, and the ring's header made from it.
// FrameMetrics: the numbers that a display shows beside a frame.
//
// Data flow: FrameGeometry -> PlanFrameRing -> a header -> the ring -> a
// reader's copy of the header -> CheckFrameRing -> FrameGeometry.
//
//   absl::StatusOr<FlanHeader> header =
//       PlanFrameRing({.width = 640, .height = 480});
//   FrameRingBytes(*header);  // bytes to reserve

#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "schema/layout/flan.h"

namespace tandem {

inline constexpr uint32_t kMaxFrameSide = 16'384;     // pixels
inline constexpr uint32_t kMaxBytesFrame = 1u << 30;  // of kBytes
inline constexpr uint32_t kMaxFrameSlots = 65'536;
inline constexpr uint32_t kMaxMetadataBytes = 64u << 20;  // of one frame

// Of frames that show environments, which engines and workers draw.
inline constexpr uint32_t kMaxRenderSide = 8192;   // pixels, of one image
inline constexpr uint32_t kMaxImages = 1024;       // in a frame
inline constexpr uint32_t kMaxRenderSlots = 1024;  // in the frame ring
inline constexpr double kMaxFrameHz = 1000;

// Readers expect one kind, and refuse a ring of the other.
enum class FrameKind : uint8_t {
  kImages,
  kBytes,  // kFlanBytes: height and channels are 1
};

struct FrameGeometry {
  uint32_t width = 0;  // pixels
  uint32_t height = 0;
  uint32_t channels = 3;        // bytes per pixel; 3: RGB, 4: RGBA; 1: kBytes
  uint32_t capacity = 8;        // slots
  uint32_t metadata_bytes = 0;  // room for a frame's metadata
  FrameKind kind = FrameKind::kImages;

  // Bytes of a frame; at most 1 GiB in a planned or checked ring.
  uint64_t FrameBytes() const { return uint64_t{width} * height * channels; }
  friend bool operator==(const FrameGeometry&, const FrameGeometry&) = default;
};

// rolling_return: the mean of the latest episodes; step_rate_hz: steps of all
// environments per second.
struct FrameMetrics {
  double last_reward = 0;
  double rolling_return = 0;
  double step_rate_hz = 0;
  friend bool operator==(const FrameMetrics&, const FrameMetrics&) = default;
};

// Returns the metrics of a ring's header, or of a copy. Each number is
// complete; they may belong to different frames.
FrameMetrics MetricsOf(const FlanHeader& header);

// Returns the geometry with padded metadata_bytes, so that every slot begins at
// a multiple of 64 bytes after the first and no seq is misaligned. For rings in
// regions; a segment keeps its creator's value.
FrameGeometry WithAlignedSlots(FrameGeometry geometry);

// Returns the header of an empty ring. kInvalidArgument for a side, capacity or
// metadata size of zero or beyond the limits, or for channels that are not of
// the kind.
absl::StatusOr<FlanHeader> PlanFrameRing(const FrameGeometry& geometry);

// The bytes of header and slots.
uint64_t FrameRingBytes(const FlanHeader& header);

// Returns the geometry of a copied header of this kind, if a ring of
// `ring_bytes` fits it: magic, version, sizes, format, and every slot inside.
// kNotReady: the header is unwritten or being rewritten; the caller may try
// again. kLayoutMismatch: the text has the field, the expected and the found
// value.
absl::StatusOr<FrameGeometry> CheckFrameRing(
    const FlanHeader& header, uint64_t ring_bytes,
    FrameKind kind = FrameKind::kImages);

}  // namespace tandem
