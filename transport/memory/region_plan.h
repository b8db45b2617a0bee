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

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schema/layout/field.h"
#include "schema/layout/lrbc.h"
#include "schema/layout/worker_slot.h"
#include "transport/region.h"
#include "transport/region_spec.h"

namespace tandem {

inline constexpr uint32_t kMaxFloatsPerEnv = 1u << 24;
inline constexpr uint64_t kMaxRegionBytes = uint64_t{1} << 40;
inline constexpr uint64_t kMaxDescriptionBytes = 64u << 20;

// Returns the constant part of the region's header; all other words are zero.
// `generation` is in nanoseconds since the Unix epoch. kInvalidArgument for a
// size of zero or beyond the limits, a ring size that is not a power of two, a
// task or description that is too long, or invalid frames, images, slots,
// fields or workers. The caller fills the identity.
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

}  // namespace tandem
