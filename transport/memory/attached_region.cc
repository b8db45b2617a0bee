#include "transport/memory/attached_region.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "schema/layout/attendant_slot.h"
#include "transport/memory/field_plan.h"
#include "transport/memory/gpu_plan.h"
#include "transport/memory/shared_file.h"
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
absl::StatusOr<std::vector<FieldRecord>> ReadTable(int fd,
                                                   absl::string_view name,
                                                   uint64_t offset,
                                                   uint32_t records) {
  std::vector<FieldRecord> table(records);
  const uint64_t bytes = uint64_t{records} * sizeof(FieldRecord);
  const ssize_t got =
      pread(fd, table.data(), bytes, static_cast<off_t>(offset));
  if (got == static_cast<ssize_t>(bytes)) return table;
  return MakeError(
      ErrorCode::kLayoutMismatch,
      absl::StrCat(name, ": expected ", bytes, " bytes at ", offset,
                   ", found the end of the file before them"));
}

// Copies the rows of all workers, at most kMaxWorkers; empty if the region has
// none. `plan` has passed CheckHeader, so the slots are inside the file.
absl::StatusOr<std::vector<WorkerRows>> ReadWorkers(int fd,
                                                    const LrbcHeader& plan) {
  std::vector<WorkerRows> workers(HasWorkers(plan) ? plan.num_workers : 0);
  for (size_t worker = 0; worker < workers.size(); ++worker) {
    const uint64_t offset = WorkerSlotOffset(plan, worker);
    const ssize_t got = pread(fd, &workers[worker], sizeof(WorkerRows),
                              static_cast<off_t>(offset));
    if (got == static_cast<ssize_t>(sizeof(WorkerRows))) continue;
    return MakeError(ErrorCode::kLayoutMismatch,
                     absl::StrCat("slot of worker ", worker, ": expected ",
                                  sizeof(WorkerRows), " bytes at ", offset,
                                  ", found the end of the file before them"));
  }
  return workers;
}

// Checks the header, then what the header leads to.
absl::Status ReadAndCheck(int fd, uint64_t file_bytes, RegionParts* parts) {
  const LrbcHeader& plan = parts->plan;
  TANDEM_RETURN_IF_ERROR(CheckHeader(plan, file_bytes));
  if (HasFields(plan)) {
    TANDEM_ASSIGN_OR_RETURN(
        parts->fields,
        ReadTable(fd, "table of fields", plan.fields_offset, plan.field_count));
  }
  TANDEM_ASSIGN_OR_RETURN(parts->workers, ReadWorkers(fd, plan));
  if (HasGpuArrays(plan)) {
    TANDEM_ASSIGN_OR_RETURN(
        parts->gpu_arrays,
        ReadTable(fd, "table of GPU arrays", plan.gpu_arrays_offset,
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
  const std::string path = RegionPath(name);
  absl::StatusOr<SharedFile> file = OpenSharedFile(name, path, O_RDWR);
  if (CodeOf(file.status()) == ErrorCode::kNotReady) {
    return NotReady(name, absl::StrCat("found no ", path));
  }
  if (!file.ok()) return file.status();
  TANDEM_RETURN_IF_ERROR(CheckTrust(name, file->status));
  UniqueFd& fd = file->fd;
  RegionParts parts;
  LrbcHeader& plan = parts.plan;
  const ssize_t got = pread(fd.get(), &plan, sizeof(plan), 0);
  if (got != static_cast<ssize_t>(sizeof(plan))) {
    return NotReady(name,
                    absl::StrCat("found a file of ", file->status.st_size,
                                 " bytes, too short for a region's header"));
  }
  const absl::Status status = ReadAndCheck(
      fd.get(), static_cast<uint64_t>(file->status.st_size), &parts);
  if (!status.ok()) {
    return MakeError(ErrorCode::kLayoutMismatch,
                     absl::StrCat("region '", name, "': ", status.message()));
  }
  TANDEM_ASSIGN_OR_RETURN(auto lock, RegionLock::On(fd.get()));
  if (!lock.HeldByOther(kEngineLockByte)) {
    return NotReady(
        name, absl::StrCat("found one whose engine (pid ",
                           // relaxed: for display, from a private copy.
                           plan.server_pid.load(std::memory_order_relaxed),
                           ") is gone"));
  }
  return FoundRegion{std::move(fd),
                     std::move(lock),
                     plan,
                     std::move(parts.fields),
                     std::move(parts.workers),
                     std::move(parts.gpu_arrays),
                     file->status.st_uid};
}

absl::StatusOr<RegionParts> ReadRegionParts(int fd) {
  struct stat file;
  if (fstat(fd, &file) != 0) return MakeSystemError("fstat", "region", errno);
  RegionParts parts;
  const ssize_t got = pread(fd, &parts.plan, sizeof(parts.plan), 0);
  if (got != static_cast<ssize_t>(sizeof(parts.plan))) {
    return MakeError(
        ErrorCode::kLayoutMismatch,
        absl::StrCat("expected a region's file, found a file of ", file.st_size,
                     " bytes, too short for a region's header"));
  }
  TANDEM_RETURN_IF_ERROR(
      ReadAndCheck(fd, static_cast<uint64_t>(file.st_size), &parts));
  return parts;
}

absl::StatusOr<AttachedRegion> AttachedRegion::Open(absl::string_view name) {
  TANDEM_ASSIGN_OR_RETURN(FoundRegion found, FindRegion(name));
  TANDEM_ASSIGN_OR_RETURN(
      auto mapping, RegionMapping::Map(found.fd.get(), found.plan.region_size));
  return AttachedRegion(std::move(found), std::move(mapping));
}

absl::StatusOr<LrbcHeader> PeekRegion(absl::string_view name) {
  TANDEM_ASSIGN_OR_RETURN(FoundRegion found, FindRegion(name));
  return found.plan;
}

absl::StatusOr<bool> HasLockingClient(absl::string_view name) {
  TANDEM_ASSIGN_OR_RETURN(const FoundRegion found, FindRegion(name));
  return found.lock.HeldByOther(kClientLockByte);
}

bool AttachedRegion::AnyAttendantAlive() const {
  if ((plan_.feature_bits & kFeatureAttendants) == 0) return false;
  for (size_t slot = 0; slot < kAttendantSlots; ++slot) {
    if (lock_.HeldByOther(AttendantLockByte(plan_, slot))) return true;
  }
  return false;
}

}  // namespace tandem
