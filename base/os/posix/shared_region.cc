#include "base/os/shared_region.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/error.h"
#include "base/os/available_memory.h"
#include "base/os/blocked_signals.h"
#include "base/os/posix/open_above_standard_streams.h"
#include "base/os/posix/region_memory.h"
#include "base/os/posix/region_paths.h"
#include "base/printable.h"
#include "schema/layout/shared_word.h"

namespace tandem {
namespace {

using Link = SharedRegion::Link;

// A path without an allocation.
class Path {
 public:
  Path(absl::string_view name, Link link) {
    Append(kSharedMemoryDir);
    Append(link == Link::kName ? "/" : "/.");
    Append(name);
    if (link == Link::kSpare) Append(".tandem");
  }
  const char* c_str() const { return text_.data(); }

 private:
  // What is too long for a file's name gives a path that no file has.
  void Append(absl::string_view part) {
    part = part.substr(0, text_.size() - 1 - size_);
    part.copy(text_.data() + size_, part.size());
    size_ += part.size();
  }

  std::array<char, 2 * 256 + 32> text_ = {};
  size_t size_ = 0;
};

Owner OwnerOf(const struct stat& status) {
  constexpr mode_t kGroupAccess = S_IRGRP | S_IWGRP;
  return {.user = absl::StrCat(status.st_uid),
          .group = absl::StrCat(status.st_gid),
          .group_access = (status.st_mode & kGroupAccess) == kGroupAccess};
}

SharedRegion::Id IdOf(const struct stat& status) {
  return {.device = static_cast<uint64_t>(status.st_dev),
          .inode = status.st_ino};
}

}  // namespace

std::string RegionPath(absl::string_view name, Link link) {
  return Path(name, link).c_str();
}

std::string NameOfSpareLink(absl::string_view file_name) {
  const bool is_spare = absl::ConsumePrefix(&file_name, ".") &&
                        absl::ConsumeSuffix(&file_name, ".tandem");
  return is_spare ? std::string(file_name) : "";
}

absl::StatusOr<SharedRegion> SharedRegion::Open(absl::string_view name,
                                                Access access, Link link) {
  const Path path(name, link);
  const int mode = access == Access::kWrite ? O_RDWR : O_RDONLY;
  // O_NONBLOCK: the file may be a FIFO.
  UniqueFd fd(
      OpenAboveStandardStreams(path.c_str(), mode | O_NOFOLLOW | O_NONBLOCK));
  const int error = fd.valid() ? 0 : errno;
  struct stat status = {};
  if (error == ENOENT) {
    return MakeError(ErrorCode::kNotReady,
                     absl::StrCat("'", Printable(name), "': found no ",
                                  Printable(path.c_str())));
  }
  if (error == EACCES) {
    (void)lstat(path.c_str(), &status);
    return NotMine(name, OwnerOf(status));
  }
  const bool is_no_file =
      error == ELOOP || error == ENXIO || error == EISDIR || error == ENODEV;
  if (error != 0 && !is_no_file) {
    return MakeSystemError("open", path.c_str(), error);
  }
  if (error == 0 && fstat(fd.get(), &status) != 0) {
    return MakeSystemError("fstat", path.c_str(), errno);
  }
  if (is_no_file || !S_ISREG(status.st_mode)) {
    return MakeError(
        ErrorCode::kLayoutMismatch,
        absl::StrCat("'", Printable(name),
                     "': expected a file, found a link, a folder, a FIFO or a "
                     "device; remove it, or choose another name (",
                     Printable(path.c_str()), ")"));
  }
  return SharedRegion(std::move(fd), static_cast<uint64_t>(status.st_size),
                      IdOf(status), OwnerOf(status));
}

absl::StatusOr<SharedRegion> SharedRegion::OfHandle(int handle) {
  UniqueFd fd(fcntl(handle, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (fd.valid()) return Of(std::move(fd));
  return MakeSystemError("fcntl(F_DUPFD_CLOEXEC)", absl::StrCat(handle), errno);
}

absl::StatusOr<SharedRegion> SharedRegion::Of(UniqueFd fd) {
  struct stat status;
  if (fstat(fd.get(), &status) != 0) {
    return MakeSystemError("fstat", "region", errno);
  }
  return SharedRegion(std::move(fd), static_cast<uint64_t>(status.st_size),
                      IdOf(status), OwnerOf(status));
}

std::optional<SharedRegion::Id> SharedRegion::At(absl::string_view name,
                                                 Link link) {
  struct stat found;
  if (lstat(Path(name, link).c_str(), &found) != 0) return std::nullopt;
  return IdOf(found);
}

std::optional<Owner> SharedRegion::OwnerAt(absl::string_view name, Link link) {
  struct stat found;
  if (lstat(Path(name, link).c_str(), &found) != 0) return std::nullopt;
  return OwnerOf(found);
}

std::vector<SharedRegion::Listed> SharedRegion::List() {
  std::vector<Listed> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(kSharedMemoryDir),
                                                   closedir);
  if (folder == nullptr) return found;
  while (const dirent* const file = readdir(folder.get())) {
    std::string spare = NameOfSpareLink(file->d_name);
    const Link link = spare.empty() ? Link::kName : Link::kSpare;
    found.push_back({spare.empty() ? file->d_name : std::move(spare), link});
  }
  return found;
}

absl::StatusOr<bool> SharedRegion::Publish(absl::string_view name) const {
  const Path path(name, Link::kName);
  const Path spare(name, Link::kSpare);
  if (!GiveSpareLink(fd_.get(), spare.c_str())) {
    if (errno == EEXIST) return false;
    return MakeSystemError("link", spare.c_str(), errno);
  }
  if (link(spare.c_str(), path.c_str()) == 0) return true;
  const int error = errno;
  TakeSpareLink(fd_.get(), spare.c_str());
  if (error == EEXIST) return false;
  return MakeSystemError("link", path.c_str(), error);
}

void SharedRegion::Restore(absl::string_view name) const {
  const Path path(name, Link::kName);
  if (access(path.c_str(), F_OK) == 0) return;
  // EEXIST: another process has taken the name.
  (void)!link(Path(name, Link::kSpare).c_str(), path.c_str());
}

absl::Status SharedRegion::Unpublish(absl::string_view name) const {
  for (const Link link : {Link::kName, Link::kSpare}) {
    // A name that leads to another file now belongs to another process.
    if (At(name, link) != id_) continue;
    const Path path(name, link);
    if (unlink(path.c_str()) != 0 && errno != ENOENT) {
      return MakeSystemError("unlink", path.c_str(), errno);
    }
  }
  RemoveMemoryWithoutLinks(fd_.get());
  return absl::OkStatus();
}

void TouchPages(std::byte* base, uint64_t bytes) {
  const uint64_t page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  for (uint64_t at = 0; at < bytes; at += page_bytes) {
    // relaxed: only the fault matters.
    (void)reinterpret_cast<SharedWord<uint32_t>*>(base + at)->load(
        std::memory_order_relaxed);
  }
}

void SharedRegion::Unmap(std::byte* base, uint64_t bytes) {
  munmap(base, bytes);
}

}  // namespace tandem
