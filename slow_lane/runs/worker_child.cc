#include "slow_lane/runs/worker_child.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "slow_lane/runs/durable_file.h"
#include "slow_lane/runs/process_identity.h"

namespace tandem::slow_lane {
namespace {

constexpr int kReportFd = 3;
// The exit code of a child that did not become the worker.
constexpr int kLeaves = 125;

// Texts and numbers, joined to a text of limited length. A longer text is cut
// at a UTF-8 character.
class ShortText {
 public:
  template <typename... Parts>
  explicit ShortText(const Parts&... parts) {
    (Add(parts), ...);
  }
  absl::string_view view() const { return {text_.data(), size_}; }
  const char* c_str() const { return text_.data(); }

 private:
  void Add(absl::string_view text) {
    size_t fits = std::min(text.size(), text_.size() - 1 - size_);
    while (fits > 0 && fits < text.size() && (text[fits] & 0xC0) == 0x80) {
      --fits;
    }
    memcpy(text_.data() + size_, text.data(), fits);
    size_ += fits;
    text_[size_] = '\0';
  }
  void Add(uint64_t number) {
    std::array<char, 20> digits;
    size_t first = digits.size();
    do {
      digits[--first] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number > 0);
    Add(absl::string_view(digits.data() + first, digits.size() - first));
  }

  std::array<char, 8192> text_ = {};
  size_t size_ = 0;
};

// Writes the text to a file of another name, on disk. Returns false on an
// error; errno has the reason.
bool WriteBeside(const char* path, absl::string_view text, ShortText* beside) {
  *beside = ShortText(path, ".of-", static_cast<uint64_t>(getpid()));
  const int fd =
      open(beside->c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  int error = WriteAll(fd, text);
  if (error == 0 && fsync(fd) != 0) error = errno;
  close(fd);
  if (error != 0) unlink(beside->c_str());
  errno = error;
  return error == 0;
}

bool SyncFolderOf(const char* folder) {
  const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool synced = fsync(fd) == 0;
  const int error = errno;
  close(fd);
  errno = error;
  return synced;
}

// Returns this process's start time from /proc.
std::optional<uint64_t> OwnStartTime() {
  const int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::array<char, 4096> text;
  const ssize_t got = read(fd, text.data(), text.size());
  close(fd);
  if (got <= 0) return std::nullopt;
  const std::optional<ProcessStat> stat =
      ParseProcessStat({text.data(), static_cast<size_t>(got)});
  if (!stat.has_value()) return std::nullopt;
  return stat->start_time;
}

[[noreturn]] void Leave(WorkerChild::Outcome outcome, absl::string_view text) {
  const char first = static_cast<char>(outcome);
  const ShortText report(absl::string_view(&first, 1), text);
  WriteAll(kReportFd, report.view());
  _exit(kLeaves);
}

[[noreturn]] void NotDispatched(absl::string_view step) {
  const ShortText text("worker: expected to be dispatched, found at ", step,
                       ": ", strerrordesc_np(errno),
                       "; next: it is tried again");
  Leave(WorkerChild::Outcome::kNotDispatched, text.view());
}

// Moves the parent's descriptors to 0 .. 3, and closes all others.
void KeepOnlyOwnDescriptors(const WorkerChild& child) {
  if (dup2(child.input, STDIN_FILENO) < 0 ||
      dup2(child.output, STDOUT_FILENO) < 0 ||
      dup2(child.errors, STDERR_FILENO) < 0 ||
      dup2(child.report, kReportFd) < 0) {
    _exit(kLeaves);  // cannot happen with open descriptors
  }
  fcntl(kReportFd, F_SETFD, FD_CLOEXEC);
  if (close_range(kReportFd + 1, ~0u, 0) != 0) NotDispatched("close_range");
}

void ResetSignalHandlers() {
  // Uses the kernel's call: the library's refuses two signals that it uses
  // itself, which may be ignored at our start. All zeros means the default
  // action on every architecture.
  constexpr size_t kSignalSetBytes = 8;
  const std::array<char, 64> by_default = {};
  for (int signal = 1; signal <= 64; ++signal) {
    syscall(SYS_rt_sigaction, signal, by_default.data(), nullptr,
            kSignalSetBytes);  // not SIGKILL and SIGSTOP
  }
}

// Sets the limit that marks the run's processes. If the hard limit is lower,
// only the environment marks them.
void SetRunLimit(rlim_t run_limit) {
  rlimit limit;
  if (getrlimit(RLIMIT_LOCKS, &limit) != 0) return;
  limit.rlim_cur = run_limit;
  setrlimit(RLIMIT_LOCKS, &limit);
}

// Decides which child is the worker: link(2) makes the record, or fails because
// a record exists.
void MakeRecord(const WorkerChild& child) {
  const std::optional<uint64_t> start_time = OwnStartTime();
  if (!start_time.has_value()) NotDispatched("/proc/self/stat");
  const ShortText record(static_cast<uint64_t>(getpid()), " ", *start_time, " ",
                         child.boot_id, "\n");
  ShortText beside;
  if (!WriteBeside(child.worker_path, record.view(), &beside)) {
    NotDispatched("writing its record");
  }
  const bool linked = link(beside.c_str(), child.worker_path) == 0;
  const int error = errno;
  unlink(beside.c_str());
  errno = error;
  if (linked) return;
  if (errno == EEXIST) Leave(WorkerChild::Outcome::kDispatchedBefore, "");
  NotDispatched("linking its record");
}

// The record exists, so no process tries again: `exit` must have the reason.
[[noreturn]] void NotExecuted(const WorkerChild& child, const char* beginning,
                              int error, const char* subject) {
  const char* const description = strerrordesc_np(error);
  const ShortText reason(
      beginning, description != nullptr ? description : "an unknown error",
      " (", subject, ")");
  const ShortText record("not_started ", reason.view(), "\n");
  ShortText beside;
  if (WriteBeside(child.exit_path, record.view(), &beside)) {
    rename(beside.c_str(), child.exit_path);
    SyncFolderOf(child.folder);
  }
  Leave(WorkerChild::Outcome::kNotExecuted, reason.view());
}

// Returns the most useful errno: that of the last candidate that exists.
int TryPrograms(const WorkerChild& child) {
  int error = ENOENT;
  for (char* const* program = child.programs; *program != nullptr; ++program) {
    execve(*program, child.argv, child.envp);
    if (errno != ENOENT && errno != ENOTDIR) error = errno;
    // As execvp: continues after a file without permission.
    if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) break;
  }
  return error;
}

}  // namespace

void WorkerChild::Become() const {
  // A session of its own: no terminal, and no signals of the parent's group.
  setsid();
  KeepOnlyOwnDescriptors(*this);
  ResetSignalHandlers();
  SetRunLimit(run_limit);
  MakeRecord(*this);
  if (!SyncFolderOf(folder)) {
    NotExecuted(*this, "worker: expected its record on disk, found: ", errno,
                folder);
  }
  if (chdir(working_directory) != 0) {
    NotExecuted(*this,
                "working_directory: expected a folder that may be entered, "
                "found: ",
                errno, working_directory);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  NotExecuted(*this, no_program, TryPrograms(*this), argv[0]);
}

}  // namespace tandem::slow_lane
