#include "base/os/shared_region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/error.h"
#include "base/os/available_memory.h"
#include "base/os/blocked_signals.h"
#include "base/os/posix/open_above_standard_streams.h"
#include "base/os/posix/region_memory.h"
#include "base/os/posix/region_paths.h"

namespace tandem {
namespace {

absl::Status Touch(std::byte* base, uint64_t bytes) {
#ifdef MADV_POPULATE_WRITE
  if (madvise(base, bytes, MADV_POPULATE_WRITE) == 0) return absl::OkStatus();
  if (errno != EINVAL) {  // the file is shorter than `bytes`
    return MakeSystemError("madvise(MADV_POPULATE_WRITE)",
                           absl::StrCat(bytes, " bytes of a region"), errno);
  }
#endif
  // For kernels before 5.14: a read maps each page, which is reserved already.
  TouchPages(base, bytes);
  return absl::OkStatus();
}

}  // namespace

const char kSharedMemoryDir[] = "/dev/shm";

std::string PathToReopen(int file) {
  return absl::StrCat("/proc/self/fd/", file);
}

bool GiveSpareLink(int file, const char* spare) {
  return linkat(AT_FDCWD, PathToReopen(file).c_str(), AT_FDCWD, spare,
                AT_SYMLINK_FOLLOW) == 0;
}

void TakeSpareLink(int, const char* spare) { unlink(spare); }

void RemoveMemoryWithoutLinks(int) {}  // the file is the memory

absl::Status SharedRegion::CheckRoom(uint64_t bytes, const Texts& texts) {
  struct statvfs shm;
  if (statvfs(kSharedMemoryDir, &shm) != 0) {
    return MakeSystemError(
        absl::StrCat("expected a tmpfs at ", kSharedMemoryDir,
                     " for shared memory; mount one there: statvfs"),
        kSharedMemoryDir, errno);
  }
  const uint64_t available = uint64_t{shm.f_bavail} * shm.f_frsize;
  if (bytes > available && shm.f_blocks > 0) {  // 0: without a limit
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

absl::StatusOr<SharedRegion> SharedRegion::Create(uint64_t bytes,
                                                  bool group_access,
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
  // Linux 6.1 reserves from the start again after each signal.
  const BlockedSignals blocked;
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
  return Of(std::move(fd));
}

bool SharedRegion::Read(uint64_t offset, void* into, size_t bytes) const {
  // This check also excludes offsets that pread refuses.
  if (offset > bytes_ || bytes > bytes_ - offset) return false;
  return pread(fd_.get(), into, bytes, static_cast<off_t>(offset)) ==
         static_cast<ssize_t>(bytes);
}

absl::StatusOr<std::byte*> SharedRegion::Map(uint64_t bytes,
                                             Access access) const {
  const int protection =
      access == Access::kWrite ? PROT_READ | PROT_WRITE : PROT_READ;
  void* const base = mmap(nullptr, bytes, protection, MAP_SHARED, fd_.get(), 0);
  if (base == MAP_FAILED) {
    return MakeSystemError("mmap", absl::StrCat(bytes, " bytes of a region"),
                           errno);
  }
  auto* const mapped = static_cast<std::byte*>(base);
  if (access == Access::kWrite) {
    madvise(base, bytes, MADV_HUGEPAGE);  // best effort
    if (absl::Status touched = Touch(mapped, bytes); !touched.ok()) {
      Unmap(mapped, bytes);
      return touched;
    }
  }
  return mapped;
}

uint64_t SharedRegion::HugePageBytes(const std::byte* base) {
  std::ifstream smaps("/proc/self/smaps");
  const std::string start =
      absl::StrFormat("%x-", reinterpret_cast<uintptr_t>(base));
  bool ours = false;
  for (std::string line; std::getline(smaps, line);) {
    if (absl::StartsWith(line, start)) ours = true;
    if (!ours || !absl::StartsWith(line, "ShmemPmdMapped:")) continue;
    const std::vector<std::string> words =
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    uint64_t kibibytes = 0;
    return words.size() > 1 && absl::SimpleAtoi(words[1], &kibibytes)
               ? kibibytes * 1024
               : 0;
  }
  return 0;
}

}  // namespace tandem
