#include "transport/memory/attached_region.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "schema/layout/attendant_slot.h"
#include "transport/memory/field_plan.h"
#include "transport/memory/gpu_plan.h"
#include "transport/region.h"

namespace tandem {
namespace {

absl::Status NotReady(absl::string_view name, absl::string_view found) {
  return MakeError(ErrorCode::kNotReady,
                   absl::StrCat("region '", name,
                                "': expected an engine that serves it, ", found,
                                "; start one with that name, or check the name "
                                "(LUCKY_SHM_NAME sets the default)"));
}

// Copies a table of at most kMaxFields records. The header has passed
// CheckHeader, so the table is inside the file.
absl::StatusOr<std::vector<FieldRecord>> ReadTable(const SharedRegion& memory,
                                                   absl::string_view name,
                                                   uint64_t offset,
                                                   uint32_t records) {
  std::vector<FieldRecord> table(records);
  const uint64_t bytes = uint64_t{records} * sizeof(FieldRecord);
  if (memory.Read(offset, table.data(), bytes)) return table;
  return MakeError(
      ErrorCode::kLayoutMismatch,
      absl::StrCat(name, ": expected ", bytes, " bytes at ", offset,
                   ", found the end of the file before them"));
}

// Copies the rows of all workers, at most kMaxWorkers; empty if the region has
// none. `plan` has passed CheckHeader, so the slots are inside the file.
absl::StatusOr<std::vector<WorkerRows>> ReadWorkers(const SharedRegion& memory,
                                                    const LrbcHeader& plan) {
  std::vector<WorkerRows> workers(HasWorkers(plan) ? plan.num_workers : 0);
  for (size_t worker = 0; worker < workers.size(); ++worker) {
    const uint64_t offset = WorkerSlotOffset(plan, worker);
    if (memory.Read(offset, &workers[worker], sizeof(WorkerRows))) continue;
    return MakeError(ErrorCode::kLayoutMismatch,
                     absl::StrCat("slot of worker ", worker, ": expected ",
                                  sizeof(WorkerRows), " bytes at ", offset,
                                  ", found the end of the file before them"));
  }
  return workers;
}

bool ReadHeader(const SharedRegion& memory, RegionParts* parts) {
  return memory.Read(0, static_cast<void*>(&parts->plan), sizeof(parts->plan));
}

// Checks the header, then what the header leads to.
absl::Status ReadAndCheck(const SharedRegion& memory, RegionParts* parts) {
  const LrbcHeader& plan = parts->plan;
  const uint64_t file_bytes = memory.bytes();
  TANDEM_RETURN_IF_ERROR(CheckHeader(plan, file_bytes));
  if (HasFields(plan)) {
    TANDEM_ASSIGN_OR_RETURN(
        parts->fields, ReadTable(memory, "table of fields", plan.fields_offset,
                                 plan.field_count));
  }
  TANDEM_ASSIGN_OR_RETURN(parts->workers, ReadWorkers(memory, plan));
  if (HasGpuArrays(plan)) {
    TANDEM_ASSIGN_OR_RETURN(
        parts->gpu_arrays,
        ReadTable(memory, "table of GPU arrays", plan.gpu_arrays_offset,
                  plan.gpu_array_count));
  }
  if (parts->fields.empty() && parts->workers.empty() &&
      parts->gpu_arrays.empty()) {
    return absl::OkStatus();
  }
  return CheckHeader(plan, file_bytes,
                     {parts->fields, parts->workers, parts->gpu_arrays});
}

}  // namespace

absl::StatusOr<FoundRegion> FindRegion(absl::string_view name) {
  TANDEM_RETURN_IF_ERROR(CheckRegionName(name));
  absl::StatusOr<SharedRegion> memory =
      SharedRegion::Open(name, SharedRegion::Access::kWrite);
  if (CodeOf(memory.status()) == ErrorCode::kNotReady) {
    return NotReady(name, absl::StrCat("found no ", RegionPath(name)));
  }
  if (!memory.ok()) return memory.status();
  TANDEM_RETURN_IF_ERROR(memory->CheckTrust(name));
  RegionParts parts;
  if (!ReadHeader(*memory, &parts)) {
    return NotReady(name, absl::StrCat("found a file of ", memory->bytes(),
                                       " bytes, too short for a region's "
                                       "header"));
  }
  const absl::Status status = ReadAndCheck(*memory, &parts);
  if (!status.ok()) {
    return MakeError(ErrorCode::kLayoutMismatch,
                     absl::StrCat("region '", name, "': ", status.message()));
  }
  TANDEM_ASSIGN_OR_RETURN(auto lock, SideLocks::On(*memory));
  if (!lock.HeldByOther(kEngineLockByte)) {
    return NotReady(
        name,
        absl::StrCat("found one whose engine (pid ",
                     // relaxed: for display, from a private copy.
                     parts.plan.server_pid.load(std::memory_order_relaxed),
                     ") is gone"));
  }
  return FoundRegion{*std::move(memory), std::move(lock), std::move(parts)};
}

absl::StatusOr<RegionParts> ReadRegionParts(const SharedRegion& memory) {
  RegionParts parts;
  if (!ReadHeader(memory, &parts)) {
    return MakeError(ErrorCode::kLayoutMismatch,
                     absl::StrCat("expected a region's file, found a file of ",
                                  memory.bytes(),
                                  " bytes, too short for a region's header"));
  }
  TANDEM_RETURN_IF_ERROR(ReadAndCheck(memory, &parts));
  return parts;
}

absl::StatusOr<AttachedRegion> AttachedRegion::Open(absl::string_view name) {
  TANDEM_ASSIGN_OR_RETURN(FoundRegion found, FindRegion(name));
  TANDEM_ASSIGN_OR_RETURN(
      auto mapping,
      RegionMapping::Map(found.memory, found.parts.plan.region_size));
  return AttachedRegion(std::move(found), std::move(mapping));
}

absl::StatusOr<LrbcHeader> PeekRegion(absl::string_view name) {
  TANDEM_ASSIGN_OR_RETURN(FoundRegion found, FindRegion(name));
  return found.parts.plan;
}

absl::StatusOr<bool> HasLockingClient(absl::string_view name) {
  TANDEM_ASSIGN_OR_RETURN(const FoundRegion found, FindRegion(name));
  return found.lock.HeldByOther(kClientLockByte);
}

bool AttachedRegion::AnyAttendantAlive() const {
  if ((plan().feature_bits & kFeatureAttendants) == 0) return false;
  for (size_t slot = 0; slot < kAttendantSlots; ++slot) {
    if (lock_.HeldByOther(AttendantLockByte(plan(), slot))) return true;
  }
  return false;
}

}  // namespace tandem
