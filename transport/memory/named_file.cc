#include "transport/memory/named_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/os/available_memory.h"
#include "base/os/open_above_standard_streams.h"
#include "schema/layout/lrbc.h"
#include "transport/memory/shared_file.h"
#include "transport/region.h"

namespace tandem {

absl::Status NamedFile::CheckRoom(uint64_t bytes, const Texts& texts) {
  struct statvfs shm;
  if (statvfs(kSharedMemoryDir, &shm) != 0) {
    return MakeSystemError(
        absl::StrCat("expected a tmpfs at ", kSharedMemoryDir,
                     " for shared memory; mount one there: statvfs"),
        kSharedMemoryDir, errno);
  }
  const uint64_t available = uint64_t{shm.f_bavail} * shm.f_frsize;
  if (bytes > available) {
    return MakeError(
        ErrorCode::kOutOfSharedMemory,
        absl::StrCat(texts.what, " needs ", bytes, " bytes, ", available,
                     " are available in ", kSharedMemoryDir, "; ",
                     texts.smaller,
                     ", remove what fills it, or give it more (Docker: "
                     "--shm-size=1g or --ipc=host)"));
  }
  // Otherwise the kernel would send SIGXFSZ, which ends the process.
  rlimit files;
  if (getrlimit(RLIMIT_FSIZE, &files) == 0 && files.rlim_cur < bytes) {
    return MakeError(ErrorCode::kOutOfSharedMemory,
                     absl::StrCat(texts.what, " needs a file of ", bytes,
                                  " bytes, the limit on the size of files is ",
                                  files.rlim_cur,
                                  " bytes; raise it (ulimit -f unlimited), "
                                  "or ",
                                  texts.smaller));
  }
  return CheckMemory(bytes, absl::StrCat(texts.what, " needs"), texts.smaller);
}

absl::StatusOr<NamedFile> NamedFile::Reserve(absl::string_view name,
                                             uint64_t bytes, bool group_access,
                                             const Texts& texts) {
  TANDEM_RETURN_IF_ERROR(CheckRoom(bytes, texts));
  const mode_t mode = group_access ? 0660 : 0600;
  UniqueFd fd(
      OpenAboveStandardStreams(kSharedMemoryDir, O_TMPFILE | O_RDWR, mode));
  if (!fd.valid()) {
    return MakeSystemError("open with O_TMPFILE", kSharedMemoryDir, errno);
  }
  if (fchmod(fd.get(), mode) != 0) {  // independent of the umask
    return MakeSystemError("fchmod", kSharedMemoryDir, errno);
  }
  int error;
  do {
    error = posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes));
  } while (error == EINTR);
  if (error == ENOSPC || error == ENOMEM) {  // another process took the space
    TANDEM_RETURN_IF_ERROR(CheckRoom(bytes, texts));
  }
  if (error != 0) {
    return MakeSystemError("posix_fallocate", absl::StrCat(bytes, " bytes"),
                           error);
  }
  TANDEM_ASSIGN_OR_RETURN(auto mapping, RegionMapping::Map(fd.get(), bytes));
  TANDEM_ASSIGN_OR_RETURN(auto lock, RegionLock::On(fd.get()));
  if (!lock.TryAcquire(kEngineLockByte)) {
    return MakeSystemError("fcntl(F_OFD_SETLK)", kSharedMemoryDir, errno);
  }
  return NamedFile(name, std::move(fd), std::move(mapping), std::move(lock));
}

NamedFile::NamedFile(absl::string_view name, UniqueFd fd,
                     std::shared_ptr<const RegionMapping> mapping,
                     RegionLock lock)
    : fd_(std::move(fd)), mapping_(std::move(mapping)), lock_(std::move(lock)) {
  Rename(name);
}

void NamedFile::Rename(absl::string_view name) {
  name_ = std::string(name);
  path_ = RegionPath(name);
  spare_path_ = SpareLinkPath(name);
}

absl::StatusOr<bool> NamedFile::LinkOver(
    const std::function<absl::Status()>& remove_dead) {
  constexpr int kAttempts = 8;  // other owners took the name, and died
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    TANDEM_RETURN_IF_ERROR(remove_dead());
    absl::StatusOr<bool> linked = TryLink();
    if (!linked.ok() || *linked) return linked;
  }
  return false;
}

absl::StatusOr<bool> NamedFile::TryLink() {
  const std::string source = absl::StrCat("/proc/self/fd/", fd_.get());
  // The spare link first: after a crash from then on, the next engine's start
  // finds and removes the file.
  if (linkat(AT_FDCWD, source.c_str(), AT_FDCWD, spare_path_.c_str(),
             AT_SYMLINK_FOLLOW) != 0) {
    if (errno == EEXIST) return false;
    return MakeSystemError("linkat", spare_path_, errno);
  }
  if (link(spare_path_.c_str(), path_.c_str()) == 0) return true;
  const int error = errno;
  RemoveName();
  if (error == EEXIST) return false;
  return MakeSystemError("link", path_, error);
}

void NamedFile::RestoreName() const {
  if (!IsOurs() || access(path_.c_str(), F_OK) == 0) return;
  // EEXIST: another process has taken the name.
  (void)!link(spare_path_.c_str(), path_.c_str());
}

void NamedFile::RemoveName() const {
  if (!IsOurs()) return;
  struct stat file;
  if (fstat(fd_.get(), &file) != 0) return;
  for (const std::string& link : {path_, spare_path_}) {
    // A name that leads to another file now belongs to another process.
    if (LeadsTo(link, file)) unlink(link.c_str());
  }
}

}  // namespace tandem
