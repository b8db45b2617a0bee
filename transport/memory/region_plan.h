// The offsets of a region's parts: the engine plans them, the client checks
// them.
//
// Data flow: RegionSpec -> PlanRegion -> a header's constant part -> the region
// -> a client's copy of the header -> CheckHeader -> addresses.
//
//   absl::StatusOr<LrbcHeader> header = PlanRegion(
//       {.num_envs = 64, .obs_size = 17, .act_size = 6, .task = "demo"}, now);
//   header->region_size;  // bytes to reserve
//   absl::Status ok = CheckHeader(*header, header->region_size);

#ifndef TANDEM_TRANSPORT_MEMORY_REGION_PLAN_H_
#define TANDEM_TRANSPORT_MEMORY_REGION_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schema/layout/lrbc.h"
#include "schema/layout/ring_header.h"
#include "transport/base/frame_geometry.h"

namespace tandem {

inline constexpr uint32_t kMaxEnvs = 1u << 24;
inline constexpr uint32_t kMaxFloatsPerEnv = 1u << 24;
inline constexpr uint64_t kMaxRegionBytes = uint64_t{1} << 40;
inline constexpr uint64_t kMaxDescriptionBytes = 64u << 20;

// Images that are part of each environment's observation: RGB, a byte each.
struct ImageSize {
  static constexpr uint32_t kChannels = 3;
  uint32_t width = 0;  // pixels; 0: no images
  uint32_t height = 0;
};

// The parameters of a region.
struct RegionSpec {
  uint32_t num_envs = 0;
  uint32_t obs_size = 0;  // float32 values per environment
  uint32_t act_size = 0;
  uint32_t ring_bytes = kDefaultRingBytes;  // of data in each RPC ring
  std::string task;                         // at most 63 bytes
  uint32_t info_size = 0;                   // float64 values per environment
  std::string description = {};             // JSON; "": none
  FrameGeometry frames = {.capacity = 0};   // capacity 0: no frame ring
  bool commands = false;                    // whether the engine answers RPCs
  bool attendants = false;                  // whether it has attendants' slots
  ImageSize images = {};
  // Bytes of an image in each slot of requested images, rounded up to a
  // multiple of kSectionAlignment; 0: no slots.
  uint32_t image_slot_bytes = 0;
};

// Returns the constant part of the region's header; all other words are zero.
// `generation` is in nanoseconds since the Unix epoch. kInvalidArgument for a
// size of zero or beyond the limits, a ring size that is not a power of two, a
// task or description that is too long, or invalid frames, images or slots.
absl::StatusOr<LrbcHeader> PlanRegion(const RegionSpec& spec,
                                      uint64_t generation);

// Checks whether a copied header describes a region of `file_bytes` that a
// client may use: magic, version, checksum, features and sizes; each section
// aligned, inside the file, and without overlap. kLayoutMismatch; the text has
// the field, the expected and the found value.
absl::Status CheckHeader(const LrbcHeader& header, uint64_t file_bytes);

// One array, ring or other part of a region, at the header's offset.
struct RegionSection {
  absl::string_view name;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::string problem = {};  // as in HeaderFindings; "": none
};

// All faults of a header, for monitoring.
struct HeaderFindings {
  // Such as "expected version 1, found 2"; includes the sections' problems.
  // Empty: a client may use the region. CheckHeader reports the first.
  std::vector<std::string> problems;
  // Ordered by offset; empty if the sizes are invalid.
  std::vector<RegionSection> sections;
};
HeaderFindings ExamineHeader(const LrbcHeader& header, uint64_t file_bytes);

// Checks whether a client of `before` may continue with `after`: task, sizes
// and layout must be equal. kLayoutMismatch; the text has the first different
// field.
absl::Status CheckSameSchema(const LrbcHeader& before, const LrbcHeader& after);

// Returns the task as text, for any bytes.
std::string TaskOf(const LrbcHeader& header);

// The parts of the infos section, as offsets in the region; zeros if it is
// absent. The header must come from PlanRegion, or have passed CheckHeader.
struct InfosPlan {
  uint64_t infos = 0;        // float64[num_envs, info_size]
  uint64_t final_infos = 0;  // float64[num_envs, info_size]
  uint64_t description = 0;
  uint64_t description_bytes = 0;
};
InfosPlan InfosOf(const LrbcHeader& header);

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_MEMORY_REGION_PLAN_H_
