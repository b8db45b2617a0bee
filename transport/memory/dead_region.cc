#include "transport/memory/dead_region.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/os/unique_fd.h"
#include "schema/layout/lrbc.h"
#include "transport/memory/region_lock.h"
#include "transport/memory/shared_file.h"
#include "transport/region.h"

namespace tandem {
namespace {

// Returns a copy of the header if the file is a region that uses locks.
bool ReadLockedRegion(int fd, LrbcHeader* header) {
  return pread(fd, static_cast<void*>(header), sizeof(*header), 0) ==
             static_cast<ssize_t>(sizeof(*header)) &&
         header->magic == kLrbcMagic &&
         (header->feature_bits & kFeatureSession) != 0;
}

absl::Status InTheWay(const std::string& path, absl::string_view what,
                      absl::string_view then) {
  return MakeError(ErrorCode::kAlreadyAttached,
                   absl::StrCat("expected no live region at ", path, ", found ",
                                what, "; ", then));
}

// The files that count as dead if no process holds their lock.
enum class Judge { kLockedRegions, kAnyFileOfOurs };

// Removes the dead region to which `path`, one of the two links of `name`,
// leads, and its other link.
absl::Status RemoveAt(const std::string& path, absl::string_view name,
                      Judge judge) {
  absl::StatusOr<SharedFile> opened = OpenSharedFile(name, path, O_RDWR);
  switch (CodeOf(opened.status())) {
    case ErrorCode::kOk:
      break;
    case ErrorCode::kNotReady:
      return absl::OkStatus();
    case ErrorCode::kLayoutMismatch:
      return InTheWay(path, "a link, a folder or a device",
                      "remove it if nothing needs it, or choose another name");
    default:
      return opened.status();
  }
  const UniqueFd& fd = opened->fd;
  const struct stat& file = opened->status;
  LrbcHeader header = {};
  // A spare link leads to a region, even if the file was truncated since.
  const bool is_ours_by_name =
      (judge == Judge::kAnyFileOfOurs || path == SpareLinkPath(name)) &&
      file.st_uid == geteuid();
  if (!ReadLockedRegion(fd.get(), &header) && !is_ours_by_name) {
    return InTheWay(path, "a file that is no Tandem region",
                    "remove it if nothing needs it, or choose another name");
  }
  TANDEM_ASSIGN_OR_RETURN(auto lock, RegionLock::On(fd.get()));
  if (!lock.TryAcquire(kEngineLockByte)) {
    return InTheWay(
        path,
        header.magic == kLrbcMagic
            ? absl::StrCat("the engine with pid ",
                           // relaxed: a label, in a private copy.
                           header.server_pid.load(std::memory_order_relaxed))
            : "a live writer of frames",
        "stop it, or choose another name");
  }
  // The region is dead, and this process holds its lock. The spare link goes
  // last: after a crash here the next engine's start still finds it.
  for (const std::string& link : {RegionPath(name), SpareLinkPath(name)}) {
    // A name that leads to another file now belongs to another process.
    if (LeadsTo(link, file) && unlink(link.c_str()) != 0) {
      return MakeSystemError("unlink", link, errno);
    }
  }
  return absl::OkStatus();
}

absl::Status RemovePatiently(absl::string_view name, Judge judge) {
  // Another engine's RemoveDeadRegions holds a dead region's lock for an
  // instant.
  constexpr int kAttempts = 10;
  const timespec pause = {.tv_sec = 0, .tv_nsec = 1'000'000};
  absl::Status status;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (attempt > 0) nanosleep(&pause, nullptr);
    // The spare link first: a live engine whose name was just unlinked still
    // has it; and it leads to a dead region that was truncated.
    status = RemoveAt(SpareLinkPath(name), name, judge);
    if (status.ok()) status = RemoveAt(RegionPath(name), name, judge);
    if (CodeOf(status) != ErrorCode::kAlreadyAttached) break;
  }
  return status;
}

}  // namespace

absl::Status RemoveIfDead(absl::string_view name) {
  return RemovePatiently(name, Judge::kLockedRegions);
}

absl::Status RemoveUnlessLocked(absl::string_view name) {
  return RemovePatiently(name, Judge::kAnyFileOfOurs);
}

void RemoveDeadRegions() {
  std::vector<std::string> names;
  {
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(kSharedMemoryDir),
                                                  closedir);
    if (dir == nullptr) return;
    while (const dirent* entry = readdir(dir.get())) {
      std::string name = NameOfSpareLink(entry->d_name);
      if (!name.empty()) names.push_back(std::move(name));
    }
  }
  for (const std::string& name : names) {
    const std::string spare = SpareLinkPath(name);
    struct stat file;
    if (lstat(spare.c_str(), &file) != 0 || file.st_uid != geteuid()) continue;
    RemoveAt(spare, name, Judge::kLockedRegions)
        .IgnoreError();  // alive, or its state is unknown
  }
}

}  // namespace tandem
