#include "engine_adapter/conformance/server_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "base/os/end_with_parent.h"
#include "base/os/stop_signals.h"
#include "engine_adapter/conformance/suite_arguments.h"

namespace tandem {
namespace {

// The processes that are not reaped; 0: a free place. All accesses are relaxed:
// the signal handlers that read them interrupt the only thread.
std::array<std::atomic<pid_t>, 8> running{};
static_assert(std::atomic<pid_t>::is_always_lock_free);
// Writer: OnAlarm and RuleWatchdog; reader: the same thread.
std::atomic<bool> has_killed{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void Replace(pid_t from, pid_t to) {
  for (std::atomic<pid_t>& place : running) {
    // relaxed: see running.
    if (place.load(std::memory_order_relaxed) != from) continue;
    place.store(to, std::memory_order_relaxed);
    return;
  }
  std::abort();  // no rule has so many
}

void SignalAll(int signal_number) {
  for (const std::atomic<pid_t>& place : running) {
    // relaxed: see running.
    const pid_t pid = place.load(std::memory_order_relaxed);
    if (pid > 0) kill(pid, signal_number);
  }
}

void OnAlarm(int) {
  const int error = errno;
  // relaxed: the reader is the thread that this handler interrupts.
  has_killed.store(true, std::memory_order_relaxed);
  SignalAll(SIGKILL);
  alarm(1);  // the rule may start others before it ends
  errno = error;
}

std::string TextOf(const UniqueFd& file) {
  std::string text;
  std::array<char, 4096> part;
  for (;;) {
    const ssize_t count = pread(file.get(), part.data(), part.size(),
                                static_cast<off_t>(text.size()));
    if (count <= 0) return text;
    text.append(part.data(), static_cast<size_t>(count));
  }
}

}  // namespace

ServerProcess::ServerProcess(std::vector<std::string> command, int inherited_fd)
    : stdout_(memfd_create("stdout", MFD_CLOEXEC)),
      stderr_(memfd_create("stderr", MFD_CLOEXEC)) {
  if (!stdout_.valid() || !stderr_.valid()) std::abort();
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) std::abort();
  if (pid_ > 0) {
    Replace(0, pid_);
    return;
  }
  // From here to exec only what is async-signal-safe.
  alarm(0);
  EndWithParent(SIGKILL, parent);
  dup2(stdout_.get(), STDOUT_FILENO);
  dup2(stderr_.get(), STDERR_FILENO);
  if (inherited_fd >= 0) fcntl(inherited_fd, F_SETFD, 0);
  execv(argv[0], argv.data());
  WriteToStandardError("expected a program that this machine can execute\n");
  _exit(127);
}

ServerProcess::~ServerProcess() {
  if (exit_code_) return;
  kill(pid_, SIGKILL);
  (void)ExitCode();
}

void ServerProcess::Signal(int signal_number) const {
  if (!exit_code_) kill(pid_, signal_number);
}

bool ServerProcess::HasEnded() const {
  siginfo_t ended = {};
  return exit_code_ ||
         waitid(P_PID, static_cast<id_t>(pid_), &ended,
                WEXITED | WNOHANG | WNOWAIT) != 0 ||
         ended.si_pid == pid_;
}

int ServerProcess::ExitCode() {
  if (exit_code_) return *exit_code_;
  // Reaped only after no handler can signal its process id any more.
  siginfo_t ended;
  while (waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOWAIT) !=
             0 &&
         errno == EINTR) {
  }
  Replace(pid_, 0);
  int status = 0;
  if (waitpid(pid_, &status, 0) != pid_) std::abort();
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return *exit_code_;
}

std::string ServerProcess::Stdout() const { return TextOf(stdout_); }
std::string ServerProcess::Stderr() const { return TextOf(stderr_); }

std::string ServerProcess::LastLines() const {
  constexpr int kLines = 10;
  const std::string text = Stderr();
  size_t begin = text.size();
  for (int line = 0; line <= kLines && begin != std::string::npos; ++line) {
    begin = begin == 0 ? std::string::npos : text.rfind('\n', begin - 1);
  }
  return begin == std::string::npos ? text : text.substr(begin + 1);
}

void ServerProcess::EndSuite(int signal_number) {
  constexpr int kSlices = 500;
  SignalAll(SIGTERM);
  const timespec slice = {.tv_sec = 0, .tv_nsec = 10'000'000};
  for (int i = 0; i < kSlices && waitpid(-1, nullptr, WNOHANG) >= 0; ++i) {
    nanosleep(&slice, nullptr);
  }
  EndBySignal(signal_number);  // and with it what is left: EndWithParent
}

RuleWatchdog::RuleWatchdog() {
  // relaxed: see has_killed.
  has_killed.store(false, std::memory_order_relaxed);
  struct sigaction action = {};
  action.sa_handler = OnAlarm;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  alarm(SuiteArguments::Get().rule_secs);
}

RuleWatchdog::~RuleWatchdog() { alarm(0); }

bool RuleWatchdog::HasKilled() {
  // relaxed: see has_killed.
  return has_killed.load(std::memory_order_relaxed);
}

}  // namespace tandem
