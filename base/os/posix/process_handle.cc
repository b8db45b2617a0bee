#include "base/os/process_handle.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/os/posix/descriptors.h"

namespace tandem {
namespace {

constexpr size_t kLongestLine = 4096;

// Returns nullopt if the process has not ended before the deadline.
std::optional<ProcessEnd> WaitUntil(pid_t pid, Deadline deadline) {
  constexpr useconds_t kLookUs = 5'000;
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(pid, &status, WNOHANG);
    if (ended == pid) {
      const bool exited = WIFEXITED(status);
      return ProcessEnd{exited,
                        exited ? WEXITSTATUS(status) : WTERMSIG(status)};
    }
    // Another part of the program has waited for it.
    if (ended < 0 && errno != EINTR) return ProcessEnd{};
    if (deadline.PassedAt(MonotonicNanos())) return std::nullopt;
    usleep(kLookUs);
  }
}

}  // namespace

std::string EnvironmentVariable(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here changes the environment
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

uint32_t ProcessId() { return static_cast<uint32_t>(getpid()); }

absl::StatusOr<ProcessHandle> ProcessHandle::Start(
    const std::vector<std::string>& words) {
  std::array<int, 2> ends = {-1, -1};
  if (!OpenPipe(&ends)) {
    return MakeSystemError("pipe", words[0], errno);
  }
  UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  std::vector<char*> argv;
  for (const std::string& word : words) {
    argv.push_back(const_cast<char*>(word.c_str()));
  }
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, writer.get(), STDOUT_FILENO);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, argv[0], &actions, /*attrp=*/nullptr,
                                argv.data(), Environment());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return MakeSystemError("posix_spawn", words[0], error);
  return ProcessHandle(pid, std::move(reader));
}

std::string ProcessHandle::ReadFirstLine() {
  std::string line;
  char byte = 0;
  while (line.size() <= kLongestLine) {
    const ssize_t count = read(output_.get(), &byte, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return "";
    if (byte == '\n') {
      output_.reset();
      return line;
    }
    line += byte;
  }
  return "";
}

ProcessEnd ProcessHandle::Stop(double grace_secs) {
  const pid_t pid = std::exchange(id_, -1);
  if (pid < 0 || born_in_ != ForkCount()) return {};
  kill(pid, SIGTERM);
  if (const auto end = WaitUntil(pid, Deadline::After(grace_secs))) return *end;
  kill(pid, SIGKILL);
  return WaitUntil(pid, Deadline::Infinite()).value_or(ProcessEnd{});
}

}  // namespace tandem
