#include "transport/memory/owned_region.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "transport/base/available_memory.h"
#include "transport/base/error.h"
#include "transport/memory/dead_region.h"
#include "transport/memory/fork_guard.h"
#include "transport/memory/region_name.h"

namespace tandem {
namespace {

// What /dev/shm may still take, also by the machine's memory: its own limit can
// be larger than what is free, and reserving more would wake the OOM killer.
uint64_t AvailableBytes() {
  struct statvfs shm;
  if (statvfs(kSharedMemoryDir, &shm) != 0) return 0;
  return std::min(uint64_t{shm.f_bavail} * shm.f_frsize,
                  AvailableMemoryBytes());
}

absl::Status NoRoom(uint64_t needed) {
  return MakeError(
      ErrorCode::kOutOfSharedMemory,
      absl::StrCat("the region needs ", needed, " bytes, ", AvailableBytes(),
                   " are available in ", kSharedMemoryDir,
                   "; use fewer environments, remove what fills it, or give it "
                   "more (Docker: --shm-size=1g or --ipc=host)"));
}

absl::StatusOr<UniqueFd> ReserveUnnamed(uint64_t bytes, bool group_access) {
  if (bytes > AvailableBytes()) return NoRoom(bytes);
  const mode_t mode = group_access ? 0660 : 0600;
  UniqueFd fd(open(kSharedMemoryDir, O_TMPFILE | O_RDWR | O_CLOEXEC, mode));
  if (!fd.valid()) {
    return MakeSystemError("open with O_TMPFILE", kSharedMemoryDir, errno);
  }
  if (fchmod(fd.get(), mode) != 0) {  // whatever the umask
    return MakeSystemError("fchmod", kSharedMemoryDir, errno);
  }
  int error;
  do {
    error = posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes));
  } while (error == EINTR);
  if (error == ENOSPC) return NoRoom(bytes);
  if (error != 0) {
    return MakeSystemError("posix_fallocate", absl::StrCat(bytes, " bytes"),
                           error);
  }
  return fd;
}

uint64_t NanosSinceEpoch() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

absl::StatusOr<OwnedRegion> OwnedRegion::Create(absl::string_view name,
                                                const RegionSpec& spec,
                                                const RegionOptions& options) {
  if (absl::Status status = CheckRegionName(name); !status.ok()) return status;
  absl::StatusOr<LrbcHeader> header = PlanRegion(spec, NanosSinceEpoch());
  if (!header.ok()) return header.status();
  RemoveDeadRegions();
  if (absl::Status status = RemoveIfDead(name); !status.ok()) return status;

  absl::StatusOr<UniqueFd> file =
      ReserveUnnamed(header->region_size, options.group_access);
  if (!file.ok()) return file.status();
  absl::StatusOr<std::shared_ptr<const RegionMapping>> mapping =
      RegionMapping::Map(file->get(), header->region_size);
  if (!mapping.ok()) return mapping.status();
  absl::StatusOr<RegionLock> lock = RegionLock::On(file->get());
  if (!lock.ok()) return lock.status();
  if (!lock->TryAcquire(kEngineLockByte)) {
    return MakeSystemError("fcntl(F_OFD_SETLK)", kSharedMemoryDir, errno);
  }
  // relaxed: nobody else has the region yet; linking it publishes it.
  header->server_pid.store(static_cast<uint32_t>(getpid()),
                           std::memory_order_relaxed);
  std::memcpy(static_cast<void*>((*mapping)->header()), &*header,
              sizeof(*header));
  if (const InfosPlan infos = InfosOf(*header); infos.description_bytes > 0) {
    spec.description.copy((*mapping)->At<char>(infos.description),
                          infos.description_bytes);
  }
  return OwnedRegion(std::string(name), *std::move(file), *std::move(lock),
                     *std::move(mapping));
}

OwnedRegion::OwnedRegion(std::string name, UniqueFd file, RegionLock lock,
                         std::shared_ptr<const RegionMapping> mapping)
    : name_(std::move(name)),
      path_(RegionPath(name_)),
      spare_path_(SpareLinkPath(name_)),
      file_(std::move(file)),
      lock_(std::move(lock)),
      mapping_(std::move(mapping)),
      born_in_(ForkCount()) {}

OwnedRegion& OwnedRegion::operator=(OwnedRegion&& other) noexcept {
  if (this != &other) {
    Unlink();
    name_ = std::move(other.name_);
    path_ = std::move(other.path_);
    spare_path_ = std::move(other.spare_path_);
    file_ = std::move(other.file_);
    lock_ = std::move(other.lock_);
    mapping_ = std::move(other.mapping_);
    born_in_ = other.born_in_;
    linked_ = std::exchange(other.linked_, false);
  }
  return *this;
}

OwnedRegion::~OwnedRegion() { Unlink(); }

absl::Status OwnedRegion::Link() {
  const std::string source = absl::StrCat("/proc/self/fd/", file_.get());
  constexpr int kAttempts = 8;  // each lost to an engine that came and died
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (absl::Status status = RemoveIfDead(name_); !status.ok()) return status;
    // The spare link first: from then on a crash leaves what the next engine's
    // start finds and removes.
    if (linkat(AT_FDCWD, source.c_str(), AT_FDCWD, spare_path_.c_str(),
               AT_SYMLINK_FOLLOW) != 0) {
      if (errno == EEXIST) continue;
      return MakeSystemError("linkat", spare_path_, errno);
    }
    linked_ = true;
    if (link(spare_path_.c_str(), path_.c_str()) == 0) return absl::OkStatus();
    const int error = errno;
    Unlink();
    if (error != EEXIST) return MakeSystemError("link", path_, error);
  }
  return MakeError(ErrorCode::kAlreadyAttached,
                   absl::StrCat("region '", name_, "': other engines kept ",
                                "taking the name; choose another"));
}

bool OwnedRegion::IsOurs() const {
  return mapping_ != nullptr && born_in_ == ForkCount();
}

void OwnedRegion::RestoreName() const {
  if (!linked_ || !IsOurs()) return;
  if (access(path_.c_str(), F_OK) == 0) return;
  // EEXIST: somebody else was faster, and has it now.
  (void)!link(spare_path_.c_str(), path_.c_str());
}

void OwnedRegion::Unlink() {
  if (std::exchange(linked_, false)) RemoveName();
}

void OwnedRegion::RemoveName() const {
  if (!IsOurs()) return;
  struct stat file;
  if (fstat(file_.get(), &file) != 0) return;
  for (const std::string& link : {path_, spare_path_}) {
    struct stat found;
    // A name that leads elsewhere by now is another's.
    if (lstat(link.c_str(), &found) == 0 && found.st_dev == file.st_dev &&
        found.st_ino == file.st_ino) {
      unlink(link.c_str());
    }
  }
}

}  // namespace tandem
