// What lies where in a region: made by the engine, checked by the client.
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

// What an engine asks for.
struct RegionSpec {
  uint32_t num_envs = 0;
  uint32_t obs_size = 0;  // float32 values per environment
  uint32_t act_size = 0;
  uint32_t ring_bytes = kDefaultRingBytes;  // of data in each RPC ring
  std::string task;                         // at most 63 bytes
  uint32_t info_size = 0;                   // float64 values per environment
  std::string description = {};             // JSON; "": none
  FrameGeometry frames = {.capacity = 0};   // capacity 0: no frame ring
  bool commands = false;                    // the engine answers them
  ImageSize images = {};
};

// The constant part of the header of such a region, born at `generation`
// (nanoseconds since the Unix epoch); words are zero. kInvalidArgument for a
// size of zero or beyond the limits, a ring that is no power of two, a task or
// description that does not fit, or invalid frames or images.
absl::StatusOr<LrbcHeader> PlanRegion(const RegionSpec& spec,
                                      uint64_t generation);

// Whether a copy of a header describes a region of `file_bytes` that a client
// may use: magic, version, checksum, features, sizes, and every section
// aligned, inside and apart from all others. kLayoutMismatch with field,
// expected and found.
absl::Status CheckHeader(const LrbcHeader& header, uint64_t file_bytes);

// One array, ring or other part of a region, where the header puts it.
struct RegionSection {
  absl::string_view name;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::string problem = {};  // as in HeaderFindings; "": none
};

// All faults of a header, for monitoring.
struct HeaderFindings {
  // "expected version 1, found 2"; those of the sections among them. The first
  // is the one that CheckHeader reports. Empty: a client may use the region.
  std::vector<std::string> problems;
  // By offset; none if the sizes are invalid.
  std::vector<RegionSection> sections;
};
HeaderFindings ExamineHeader(const LrbcHeader& header, uint64_t file_bytes);

// Whether a client of `before` may go on with `after`: the same task, sizes and
// layout. kLayoutMismatch with the first field that differs.
absl::Status CheckSameSchema(const LrbcHeader& before, const LrbcHeader& after);

// The task as text, whatever the bytes are.
std::string TaskOf(const LrbcHeader& header);

// The parts of the infos section, as offsets in the region; all zero without
// it. Of a header that PlanRegion made or CheckHeader passed.
struct InfosPlan {
  uint64_t infos = 0;        // float64[num_envs, info_size]
  uint64_t final_infos = 0;  // float64[num_envs, info_size]
  uint64_t description = 0;
  uint64_t description_bytes = 0;
};
InfosPlan InfosOf(const LrbcHeader& header);

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_MEMORY_REGION_PLAN_H_
