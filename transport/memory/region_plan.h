// The offsets of a region's parts: the engine plans them, the client checks
// them.
//
// Data flow: RegionSpec -> PlanRegion, PlanFields, PlanWorkers -> a header's
// constant part, the table of fields and the workers' rows -> the region -> a
// client's copies of them -> CheckHeader -> addresses.
//
//   absl::StatusOr<LrbcHeader> header = PlanRegion(
//       {.num_envs = 64, .obs_size = 17, .act_size = 6, .task = "demo"}, now);
//   header->region_size;  // bytes to reserve
//   absl::Status ok = CheckHeader(*header, header->region_size);

#ifndef TANDEM_TRANSPORT_MEMORY_REGION_PLAN_H_
#define TANDEM_TRANSPORT_MEMORY_REGION_PLAN_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schema/layout/field.h"
#include "schema/layout/lrbc.h"
#include "schema/layout/ring_header.h"
#include "schema/layout/worker_slot.h"
#include "transport/memory/field_plan.h"
#include "transport/memory/frame_geometry.h"
#include "transport/memory/gpu_plan.h"

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
  // float32 values per environment; 0: the observation is in `fields`, and the
  // action, too.
  uint32_t obs_size = 0;
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
  // If there are any, the region has a table of all observations, final
  // observations, actions and other fields. PlanFields adds those that follow
  // from the members above: the float32 rows, and the final observations. So no
  // spec has the role kFinalObs, and none has kObs (kAction) unless obs_size
  // (act_size) is 0.
  std::vector<FieldSpec> fields = {};
  // Worker processes that simulate the environments, at most num_envs. 0: the
  // engine simulates them itself.
  uint32_t workers = 0;
  bool subsets = false;  // whether the engine knows the flag kSkip
  GpuSpec gpu = {};      // arrays in the memory of a GPU
};

// Returns the constant part of the region's header; all other words are zero.
// `generation` is in nanoseconds since the Unix epoch. kInvalidArgument for a
// size of zero or beyond the limits, a ring size that is not a power of two, a
// task or description that is too long, or invalid frames, images, slots,
// fields or workers.
absl::StatusOr<LrbcHeader> PlanRegion(const RegionSpec& spec,
                                      uint64_t generation);

// Returns the table of fields for the region that PlanRegion has planned for
// `spec`; empty if spec.fields is empty.
std::vector<FieldRecord> PlanFields(const RegionSpec& spec,
                                    const LrbcHeader& header);

// Returns the rows of each worker for a header that PlanRegion has planned: all
// environments in order, as evenly as possible. Empty if there are none.
std::vector<WorkerRows> PlanWorkers(const LrbcHeader& header);

// Private copies of a region's tables. Empty: not read, or the region has none.
struct RegionTables {
  std::span<const FieldRecord> fields = {};
  std::span<const WorkerRows> workers = {};
  std::span<const FieldRecord> gpu_arrays = {};
};

// Checks whether a copied header describes a region of `file_bytes` that a
// client may use: magic, version, checksum, features and sizes; each section
// aligned, inside the file, and without overlap. With `tables`, the same for
// these. Call it first without them, since only then their place is safe to
// read. kLayoutMismatch; the text has the field, the expected and the found
// value.
absl::Status CheckHeader(const LrbcHeader& header, uint64_t file_bytes,
                         const RegionTables& tables = {});

// One array, ring or other part of a region, at the header's offset.
struct RegionSection {
  std::string name;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::string problem = {};  // as in HeaderFindings; "": none
};

// All faults of a header, for monitoring.
struct HeaderFindings {
  // Such as "expected version 1, found 2"; includes the sections' problems.
  // Empty: a client may use the region. CheckHeader reports the first.
  std::vector<std::string> problems;
  // Ordered by offset; empty if the sizes are invalid. Includes the fields with
  // arrays of their own.
  std::vector<RegionSection> sections;
  // The given ones, if the table is valid in itself; otherwise empty.
  std::vector<FieldRecord> fields;
  std::vector<WorkerRows> workers;      // the same of the workers' rows
  std::vector<FieldRecord> gpu_arrays;  // the same of the arrays on a GPU
};
// Tables that are not given are not examined.
HeaderFindings ExamineHeader(const LrbcHeader& header, uint64_t file_bytes,
                             const RegionTables& tables = {});

// Checks whether a client of `before` may continue with `after`: task, sizes,
// layout, fields and workers must be equal. kLayoutMismatch; the text has the
// first different field.
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
