#include "transport/memory/shared_file.h"

#include <fcntl.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/os/open_above_standard_streams.h"
#include "base/printable.h"

namespace tandem {
namespace {

bool IsOwnOrShared(const struct stat& status) {
  if (status.st_uid == geteuid() || status.st_uid == 0) return true;
  constexpr mode_t kGroupAccess = S_IRGRP | S_IWGRP;
  if ((status.st_mode & kGroupAccess) != kGroupAccess) return false;
  std::vector<gid_t> groups(static_cast<size_t>(getgroups(0, nullptr)));
  groups.resize(static_cast<size_t>(
      std::max(getgroups(static_cast<int>(groups.size()), groups.data()), 0)));
  groups.push_back(getegid());
  return std::ranges::find(groups, status.st_gid) != groups.end();
}

absl::Status NotMine(absl::string_view name, const struct stat& status,
                     absl::string_view why) {
  return MakeError(
      ErrorCode::kAccessDenied,
      absl::StrCat("'", Printable(name), "' belongs to ", OwnerOf(status), why,
                   "; run as that user, or let the engine give its group "
                   "access (its option group_access)"));
}

}  // namespace

absl::StatusOr<SharedFile> OpenSharedFile(absl::string_view name,
                                          const std::string& path, int flags) {
  // O_NONBLOCK: the file may be a FIFO.
  SharedFile file = {.fd = UniqueFd(OpenAboveStandardStreams(
                         path.c_str(), flags | O_NOFOLLOW | O_NONBLOCK))};
  const int error = file.fd.valid() ? 0 : errno;
  if (error == ENOENT) {
    return MakeError(
        ErrorCode::kNotReady,
        absl::StrCat("'", Printable(name), "': found no ", Printable(path)));
  }
  if (error == EACCES) {
    (void)lstat(path.c_str(), &file.status);
    return NotMine(name, file.status, "");
  }
  const bool is_no_file =
      error == ELOOP || error == ENXIO || error == EISDIR || error == ENODEV;
  if (error != 0 && !is_no_file) {
    return MakeSystemError("open", path, error);
  }
  if (error == 0 && fstat(file.fd.get(), &file.status) != 0) {
    return MakeSystemError("fstat", path, errno);
  }
  if (is_no_file || !S_ISREG(file.status.st_mode)) {
    return MakeError(
        ErrorCode::kLayoutMismatch,
        absl::StrCat("'", Printable(name),
                     "': expected a file, found a link, a folder, a FIFO or a "
                     "device; remove it, or choose another name (",
                     Printable(path), ")"));
  }
  return file;
}

absl::Status CheckTrust(absl::string_view name, const struct stat& status) {
  if (IsOwnOrShared(status)) return absl::OkStatus();
  return NotMine(name, status,
                 ", and that user could change or truncate it while it is "
                 "mapped");
}

bool LeadsTo(const std::string& path, const struct stat& file) {
  struct stat found;
  return lstat(path.c_str(), &found) == 0 && found.st_dev == file.st_dev &&
         found.st_ino == file.st_ino;
}

std::string OwnerOf(const struct stat& status) {
  passwd entry;
  passwd* found = nullptr;
  std::vector<char> text(4096);
  if (getpwuid_r(status.st_uid, &entry, text.data(), text.size(), &found) ==
          0 &&
      found != nullptr) {
    return absl::StrCat(found->pw_name, " (uid ", status.st_uid, ")");
  }
  return absl::StrCat("uid ", status.st_uid);
}

}  // namespace tandem
