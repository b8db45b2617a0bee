#include "slow_lane/ctl/export_output.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "slow_lane/runs/durable_file.h"
#include "transport/base/blocked_signals.h"
#include "transport/base/error.h"

namespace tandem::slow_lane {
namespace {

constexpr int kMostLinks = 40;  // as Linux
// A name may have 255 bytes, and a part's is longer than its file's.
constexpr size_t kLongestStem = 200;

// What a signal must not leave behind. Its handler takes the lock and keeps it:
// nothing is made any more that it would miss.
std::atomic_flag part_locked;
char part_path[PATH_MAX];  // empty: nothing

void TakePartLock() {
  // SYNC(export.part): acquire; the lock, then part_path.
  while (part_locked.test_and_set(std::memory_order_acquire)) {
  }
}

class PartLock {
 public:
  PartLock() { TakePartLock(); }
  // SYNC(export.part): release; part_path before the lock is free.
  ~PartLock() { part_locked.clear(std::memory_order_release); }

 private:
  const BlockedSignals blocked_;  // a handler would wait for its own thread
};

void RemovePart(int number) {
  TakePartLock();
  unlink(part_path);
  // Not before that, for another thread may get the next one. It is blocked in
  // this thread until this returns, and then ends the process.
  signal(number, SIG_DFL);
  raise(number);
}

void RemovePartOnSignals() {
  struct sigaction action = {};
  action.sa_handler = RemovePart;
  sigfillset(&action.sa_mask);
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ}) {
    struct sigaction before;
    // nohup, and shells for what runs in the background, have some ignored.
    if (sigaction(number, nullptr, &before) == 0 &&
        before.sa_handler == SIG_DFL) {
      sigaction(number, &action, nullptr);
    }
  }
}

absl::StatusOr<std::filesystem::path> FinalTarget(const std::string& path) {
  std::filesystem::path target = path;
  std::error_code error;
  for (int links = 0; std::filesystem::is_symlink(target, error); ++links) {
    if (links == kMostLinks) return MakeSystemError("open", path, ELOOP);
    const std::filesystem::path next =
        std::filesystem::read_symlink(target, error);
    if (error) return MakeSystemError("readlink", path, error.value());
    target = target.parent_path() / next;
  }
  return target;
}

// A new file beside `target`; sets `part_path`, and the handler for it. Not by
// mkstemp, whose mode is 0600: the umask, or the folder's default, is for the
// kernel to apply.
std::FILE* MakePart(const std::filesystem::path& target, std::string* part) {
  const std::string stem = (target.parent_path() /
                            target.filename().native().substr(0, kLongestStem))
                               .native();
  const PartLock lock;
  RemovePartOnSignals();  // not again once a handler has begun to end us
  for (int number = 0;; ++number) {
    *part = absl::StrCat(stem, ".part-", getpid(), "-", number);
    const int fd =
        open(part->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST) continue;
    if (fd < 0) return nullptr;
    // The kernel takes no longer one.
    std::strncpy(part_path, part->c_str(), sizeof(part_path) - 1);
    return fdopen(fd, "w");  // fails without memory only, as new does
  }
}

}  // namespace

absl::StatusOr<ExportOutput> ExportOutput::Open(const std::string& path) {
  if (path.empty()) return ExportOutput(stdout, "", "standard output");
  struct stat there;
  const bool replaces = stat(path.c_str(), &there) == 0;
  if (replaces && !S_ISREG(there.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--out: expected a new file, or one to replace, found something "
        "else; without --out the CSV goes to standard output: ",
        path));
  }
  const absl::StatusOr<std::filesystem::path> target = FinalTarget(path);
  if (!target.ok()) return target.status();
  std::string part;
  std::FILE* const file = MakePart(*target, &part);
  if (file == nullptr) return MakeSystemError("open", part, errno);
  ExportOutput output(file, target->native(), part);
  if (replaces && fchmod(fileno(file), there.st_mode & 0777) != 0) {
    return MakeSystemError("fchmod", part, errno);
  }
  return output;
}

ExportOutput::ExportOutput(ExportOutput&& other) noexcept
    : file_(std::exchange(other.file_, nullptr)),
      target_(std::move(other.target_)),
      part_(std::move(other.part_)) {}

ExportOutput::~ExportOutput() {
  if (file_ == nullptr || file_ == stdout) return;
  std::fclose(file_);
  const PartLock lock;
  unlink(part_.c_str());
  part_path[0] = '\0';
}

absl::Status ExportOutput::Write(absl::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_) == text.size()) {
    return absl::OkStatus();
  }
  return MakeSystemError("write", part_, errno);
}

absl::Status ExportOutput::Close() {
  if (std::fflush(file_) != 0) return MakeSystemError("write", part_, errno);
  if (file_ == stdout) return absl::OkStatus();
  if (fsync(fileno(file_)) != 0) {
    return MakeSystemError("fsync", part_, errno);
  }
  {
    const PartLock lock;
    if (std::rename(part_.c_str(), target_.c_str()) != 0) {
      return MakeSystemError("rename", part_, errno);
    }
    part_path[0] = '\0';
  }
  std::fclose(std::exchange(file_, nullptr));
  return SyncFolder(std::filesystem::path(target_).parent_path().string());
}

}  // namespace tandem::slow_lane
