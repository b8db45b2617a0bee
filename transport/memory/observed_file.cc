#include "transport/memory/observed_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "schema/layout/flan.h"
#include "transport/base/error.h"
#include "transport/base/printable.h"
#include "transport/memory/dead_region.h"
#include "transport/memory/region_lock.h"
#include "transport/memory/region_name.h"

namespace tandem {
namespace {

// Segments' names have characters that a region's has not.
absl::Status CheckName(absl::string_view name) {
  constexpr size_t kLongestFileName = 255;
  if (absl::StartsWith(name, kFlanSegmentPrefix) &&
      name.size() <= kLongestFileName &&
      name.find('/') == absl::string_view::npos &&
      name.find('\0') == absl::string_view::npos) {
    return absl::OkStatus();
  }
  return CheckRegionName(name);
}

int OpenForReading(const std::string& path) {
  // O_NONBLOCK: the file may be a FIFO.
  return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

}  // namespace

absl::StatusOr<ObservedFile> ObservedFile::Open(absl::string_view name) {
  if (absl::Status status = CheckName(name); !status.ok()) return status;
  const std::string shown = Printable(name);
  std::string path = RegionPath(name);
  const std::string spare_path = SpareLinkPath(name);
  ObservedFile file((UniqueFd(OpenForReading(path))));
  if (!file.fd_.valid() && errno == ENOENT) {
    file.fd_ = UniqueFd(OpenForReading(spare_path));
    if (!file.fd_.valid() && errno == ENOENT) {
      return MakeError(
          ErrorCode::kNotReady,
          absl::StrCat("region '", shown, "': expected a file in ",
                       kSharedMemoryDir, ", found none of that name"));
    }
    path = spare_path;
    file.name_gone_ = true;
  }
  const int error = file.fd_.valid() ? 0 : errno;
  struct stat about = {};
  if (error == EACCES) {
    return MakeError(
        ErrorCode::kAccessDenied,
        absl::StrCat("region '", shown, "' belongs to ", OwnerOf(path),
                     "; run as that user, or let the engine give its group "
                     "access (--group_access)"));
  }
  if (IsNoRegularFile(error)) return NoRegularFileError(name);
  if (error != 0) {
    return MakeSystemError("open", Printable(path), error);
  }
  if (fstat(file.fd_.get(), &about) != 0) {
    return MakeSystemError("fstat", Printable(path), errno);
  }
  if (!S_ISREG(about.st_mode)) return NoRegularFileError(name);
  file.bytes_ = static_cast<uint64_t>(about.st_size);
  file.device_ = about.st_dev;
  file.inode_ = about.st_ino;
  struct stat spare = {};
  file.has_spare_link_ = lstat(spare_path.c_str(), &spare) == 0 &&
                         spare.st_dev == about.st_dev &&
                         spare.st_ino == about.st_ino;
  return file;
}

bool ObservedFile::Read(uint64_t offset, void* into, size_t bytes) const {
  // What lies behind any file is no offset that pread could refuse.
  if (offset > bytes_ || bytes > bytes_ - offset) return false;
  return pread(fd_.get(), into, bytes, static_cast<off_t>(offset)) ==
         static_cast<ssize_t>(bytes);
}

std::optional<bool> ObservedFile::IsLocked(int64_t byte) const {
  return tandem::IsLocked(fd_.get(), byte);
}

}  // namespace tandem
