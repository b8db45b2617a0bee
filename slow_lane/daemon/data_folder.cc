#include "slow_lane/daemon/data_folder.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <iostream>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/shell_quoted.h"

namespace tandem::slow_lane {
namespace {

constexpr char kPid[] = "daemon.pid";
constexpr double kLockSecs = 1;
constexpr int kLockPollMs = 20;
constexpr mode_t kOwnMode = 0700;
constexpr mode_t kUsualMode = 0777;
constexpr mode_t kOthersBits = 077;
constexpr mode_t kSharedBits = S_ISVTX | S_IWGRP | S_IWOTH;

// Removes "/" and "/." from the end: with them, a link would be its target.
std::string WithoutTail(absl::string_view path) {
  for (;;) {
    const size_t before = path.size();
    if (path.size() > 1) absl::ConsumeSuffix(&path, "/");
    if (path.size() > 2) absl::ConsumeSuffix(&path, "/.");
    if (path.size() == before) return std::string(path);
  }
}

absl::Status Unsuitable(const std::string& expected, const std::string& found,
                        const std::string& next) {
  return absl::FailedPreconditionError(absl::StrCat(
      "--data_dir: expected ", expected, ", found ", found, "; next: ", next));
}

absl::Status CannotUse(absl::string_view call, const std::string& path,
                       int why) {
  const absl::Status status = MakeSystemError(call, path, why);
  return absl::Status(
      status.code(),
      absl::StrCat("--data_dir: expected a folder that this user (uid ",
                   geteuid(), ") can make or write, found: ", status.message(),
                   "; next: --data_dir=FOLDER with one in a folder of your "
                   "own, on a disk that can be written"));
}

// Whether the folder is a daemon's or empty, so not another program's.
bool IsForDaemon(const std::string& path) {
  if (access(absl::StrCat(path, "/", kPid).c_str(), F_OK) == 0) return true;
  std::error_code error;
  return std::filesystem::is_empty(path, error) && !error;
}

// Returns a flag that names a new folder within `path`. The daemon must not
// change the mode of a folder that others use, too.
std::string FolderWithin(const std::string& path) {
  return absl::StrCat(
      "--data_dir=",
      ShellQuoted(absl::StrCat(absl::StripSuffix(path, "/"), "/tandem-data")));
}

absl::Status NoFolder(const std::string& path, int why) {
  struct stat file;
  if (lstat(path.c_str(), &file) != 0) return CannotUse("open", path, why);
  if (S_ISLNK(file.st_mode)) {
    std::error_code error;
    const std::string target = std::filesystem::canonical(path, error);
    return Unsuitable("a folder", absl::StrCat("a symbolic link, ", path),
                      error ? "--data_dir=FOLDER with the folder itself"
                            : absl::StrCat("--data_dir=", ShellQuoted(target)));
  }
  if (!S_ISDIR(file.st_mode)) {
    return Unsuitable("a folder", absl::StrCat("another file, ", path),
                      "--data_dir=FOLDER with a path that is free, or with a "
                      "folder");
  }
  if (file.st_uid == geteuid()) {
    return Unsuitable("a folder that its user can read and write",
                      absl::StrFormat("mode %04o", file.st_mode & 07777),
                      absl::StrCat("chmod 700 ", ShellQuoted(path)));
  }
  return CannotUse("open", path, why);
}

}  // namespace

absl::StatusOr<DataFolder> DataFolder::Enter(const std::string& path,
                                             std::vector<std::string> files) {
  DataFolder folder(WithoutTail(path), std::move(files));
  TANDEM_RETURN_IF_ERROR(folder.Make());
  TANDEM_RETURN_IF_ERROR(folder.Open());
  TANDEM_RETURN_IF_ERROR(folder.Lock());
  return folder;
}

DataFolder::~DataFolder() {
  if (made_.empty()) return;
  // Without the lock, the files belong to another daemon.
  if (locked_ && made_.back() == path_) {
    files_.emplace_back(kPid);
    for (const std::string& name : files_) {
      if (unlinkat(folder_.get(), name.c_str(), 0) != 0 && errno == EISDIR) {
        unlinkat(folder_.get(), name.c_str(), AT_REMOVEDIR);
      }
    }
  }
  for (auto made = made_.rbegin(); made != made_.rend(); ++made) {
    if (rmdir(made->c_str()) != 0) return;
  }
}

absl::Status DataFolder::Make() {
  for (size_t end = path_.find('/', 1);; end = path_.find('/', end + 1)) {
    const bool is_last = end == std::string::npos;
    const std::string folder = path_.substr(0, end);
    if (mkdir(folder.c_str(), is_last ? kOwnMode : kUsualMode) == 0) {
      made_.push_back(folder);
    } else if (const int why = errno;
               why != EEXIST && access(folder.c_str(), F_OK) != 0) {
      return CannotUse("mkdir", folder, why);
    }
    if (is_last) return absl::OkStatus();
  }
}

absl::Status DataFolder::Open() {
  folder_ = UniqueFd(
      open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder_.valid()) return NoFolder(path_, errno);
  struct stat info;
  if (fstat(folder_.get(), &info) != 0) {
    return CannotUse("fstat", path_, errno);
  }
  if (info.st_uid != geteuid()) {
    return Unsuitable(
        absl::StrCat("a folder of this user (uid ", geteuid(), ")"),
        absl::StrCat("one of uid ", info.st_uid, ", ", path_),
        "start the daemon as that user, or --data_dir=FOLDER with one of your "
        "own");
  }
  if ((info.st_mode & kOthersBits) != 0) {
    const std::string mode = absl::StrFormat("mode %04o", info.st_mode & 07777);
    if ((info.st_mode & kSharedBits) != 0 || !IsForDaemon(path_)) {
      return Unsuitable("a folder that is closed to other users (mode 0700)",
                        mode, FolderWithin(path_));
    }
    if (fchmod(folder_.get(), kOwnMode) != 0) {
      return CannotUse("fchmod", path_, errno);
    }
    std::cerr << "tandem-daemon: --data_dir had " << mode
              << ", and has 0700 now, closed to other users: "
              << Printable(path_) << "\n";
  }
  if (fchdir(folder_.get()) != 0) return NoFolder(path_, errno);
  if (faccessat(AT_FDCWD, ".", W_OK | X_OK, AT_EACCESS) != 0) {
    return errno == EACCES ? NoFolder(path_, errno)
                           : CannotUse("access", path_, errno);
  }
  return absl::OkStatus();
}

// Marks this process as the folder's daemon while it lives. The lock is on the
// folder itself, since a lock file can be removed. daemon.pid has the pid, for
// display only.
absl::Status DataFolder::Lock() {
  // If a daemon was killed while it started a proxy, the proxy holds the lock
  // until exec.
  const Deadline deadline = Deadline::After(kLockSecs);
  locked_ = flock(folder_.get(), LOCK_EX | LOCK_NB) == 0;
  while (!locked_ && errno == EWOULDBLOCK &&
         !deadline.PassedAt(MonotonicNanos())) {
    poll(nullptr, 0, kLockPollMs);
    locked_ = flock(folder_.get(), LOCK_EX | LOCK_NB) == 0;
  }
  if (!locked_ && errno != EWOULDBLOCK) {
    return MakeSystemError("flock", path_, errno);
  }
  const UniqueFd file(
      open(kPid, locked_ ? O_RDWR | O_CREAT | O_CLOEXEC : O_RDONLY | O_CLOEXEC,
           0600));
  if (!locked_) {
    char pid[32] = {};
    const bool known = pread(file.get(), pid, sizeof(pid) - 1, 0) > 0;
    return absl::AlreadyExistsError(absl::StrCat(
        "expected a data folder without a daemon, found one at work",
        known ? absl::StrCat(" (pid ", absl::StripAsciiWhitespace(pid), ")")
              : "",
        "; stop it, or give --data_dir another folder; the folder is ", path_));
  }
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (!file.valid() || ftruncate(file.get(), 0) != 0 ||
      pwrite(file.get(), pid.data(), pid.size(), 0) < 0) {
    return MakeSystemError("write", absl::StrCat(path_, "/", kPid), errno);
  }
  return absl::OkStatus();
}

}  // namespace tandem::slow_lane
