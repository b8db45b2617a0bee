// This process, and the processes that it starts.
//
// Data flow: a program's path and arguments -> ProcessHandle -> its first line
// of output, its end.
// Ownership: the object owns the process, which its destructor ends.
//
//   TANDEM_ASSIGN_OR_RETURN(ProcessHandle gateway,
//                           ProcessHandle::Start({path, "--name=demo"}));
//   const std::string address = gateway.ReadFirstLine();

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/os/fork_guard.h"
#include "base/os/unique_fd.h"

namespace tandem {

uint32_t ProcessId();

// Returns the absolute path of this process's program; "": unknown.
std::string ProgramPath();

// Returns the value of a variable of this process's environment, whichever C
// library set it; "" if there is none.
std::string EnvironmentVariable(const char* name);

// How WaitForInput ended. kTimedOut: also after an error.
enum class InputWait : uint8_t { kTimedOut, kReadable, kSignal };

// Waits until `handle`, a descriptor, is readable, for `wait_ns` at most, which
// is not negative; without a handle, -1, sleeps. kSignal: a signal handler ran.
InputWait WaitForInput(int handle, int64_t wait_ns);

// How a process ended: its exit code, or the signal that ended it.
struct ProcessEnd {
  bool exited = true;
  int number = 0;
};

// Move-only. Not thread-safe. In a forked child nothing ends the process.
class ProcessHandle {
 public:
  // Starts the program with the path words[0]. Its standard output is a pipe;
  // it inherits the other streams and the environment. kSystemCallFailed.
  static absl::StatusOr<ProcessHandle> Start(
      const std::vector<std::string>& words);

  ProcessHandle(ProcessHandle&& other) noexcept
      : id_(std::exchange(other.id_, -1)),
        born_in_(other.born_in_),
        output_(std::move(other.output_)) {}
  ProcessHandle& operator=(ProcessHandle&&) = delete;
  ~ProcessHandle() {
    if (id_ >= 0) Stop(kStopSecs);
  }

  // Returns the first line of its output without the line's end; "" if the
  // output ends before, or the line has over 4,096 bytes. Blocks. Closes the
  // pipe after a whole line.
  std::string ReadFirstLine();

  // Asks the process to end, and kills it if it has not ended after
  // `grace_secs`. Blocks. An unknown end counts as exit code 0, as does a
  // second call, which does nothing.
  ProcessEnd Stop(double grace_secs);

  static constexpr double kStopSecs = 5;

 private:
  ProcessHandle(int id, UniqueFd output)
      : id_(id), born_in_(ForkCount()), output_(std::move(output)) {}

  int id_;  // -1: moved from, or ended
  uint32_t born_in_;
  UniqueFd output_;
};

}  // namespace tandem
