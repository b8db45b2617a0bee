#include "transport/memory/found_region.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "transport/base/error.h"
#include "transport/memory/dead_region.h"
#include "transport/memory/region_name.h"
#include "transport/memory/region_plan.h"

namespace tandem {
namespace {

absl::Status NotReady(absl::string_view name, absl::string_view found) {
  return MakeError(
      ErrorCode::kNotReady,
      absl::StrCat("region '", name, "': expected an engine that serves it, ",
                   found,
                   "; start one with that --name, or check the name "
                   "(LUCKY_SHM_NAME sets the default)"));
}

}  // namespace

bool MayTrust(const struct stat& file) {
  if (file.st_uid == geteuid() || file.st_uid == 0) return true;
  constexpr mode_t kGroupAccess = S_IRGRP | S_IWGRP;
  if ((file.st_mode & kGroupAccess) != kGroupAccess) return false;
  std::vector<gid_t> groups(static_cast<size_t>(getgroups(0, nullptr)));
  groups.resize(static_cast<size_t>(
      std::max(getgroups(static_cast<int>(groups.size()), groups.data()), 0)));
  groups.push_back(getegid());
  return std::find(groups.begin(), groups.end(), file.st_gid) != groups.end();
}

absl::StatusOr<FoundRegion> FindRegion(absl::string_view name) {
  if (absl::Status status = CheckRegionName(name); !status.ok()) return status;
  const std::string path = RegionPath(name);
  // O_NONBLOCK: the file may be a FIFO.
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) {
    if (errno == ENOENT) {
      return NotReady(name, absl::StrCat("found no ", path));
    }
    if (errno == EACCES) {
      return MakeError(
          ErrorCode::kAccessDenied,
          absl::StrCat("region '", name, "' belongs to ", OwnerOf(path),
                       "; run as that user, or let the engine give its group "
                       "access (--group_access)"));
    }
    if (IsNoRegularFile(errno)) return NoRegularFileError(name);
    return MakeSystemError("open", path, errno);
  }
  struct stat file;
  if (fstat(fd.get(), &file) != 0) {
    return MakeSystemError("fstat", path, errno);
  }
  if (!S_ISREG(file.st_mode)) return NoRegularFileError(name);
  if (!MayTrust(file)) {
    return MakeError(
        ErrorCode::kAccessDenied,
        absl::StrCat("region '", name, "' belongs to ", OwnerOf(path),
                     ", and that user could change or truncate it; run as that "
                     "user, or share it by a common group (--group_access)"));
  }
  LrbcHeader plan;
  std::memset(static_cast<void*>(&plan), 0, sizeof(plan));
  const ssize_t got =
      pread(fd.get(), static_cast<void*>(&plan), sizeof(plan), 0);
  if (got != static_cast<ssize_t>(sizeof(plan))) {
    return NotReady(name,
                    absl::StrCat("found a file of ", file.st_size,
                                 " bytes, too short for a region's header"));
  }
  absl::Status status = CheckHeader(plan, static_cast<uint64_t>(file.st_size));
  if (!status.ok()) {
    return MakeError(ErrorCode::kLayoutMismatch,
                     absl::StrCat("region '", name, "': ", status.message()));
  }
  absl::StatusOr<RegionLock> lock = RegionLock::On(fd.get());
  if (!lock.ok()) return lock.status();
  if (!lock->HeldByOther(kEngineLockByte)) {
    return NotReady(
        name, absl::StrCat("found one whose engine (pid ",
                           // relaxed: a label, in a private copy.
                           plan.server_pid.load(std::memory_order_relaxed),
                           ") is gone"));
  }
  return FoundRegion{std::move(fd), *std::move(lock), plan};
}

}  // namespace tandem
