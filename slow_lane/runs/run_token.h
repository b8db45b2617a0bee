// RunToken: marks a run's processes in two ways that children inherit: a
// variable in their environment; and, for processes that clear the environment,
// a resource limit. RLIMIT_LOCKS limits nothing since Linux 2.4.25
// (getrlimit(2)); its soft value is computed from the token.
//
// Data flow: LaunchWorker sets both -> /proc/PID/environ, prlimit -> a process
// that searches for the run's processes.

#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "slow_lane/runs/process_identity.h"

namespace tandem::slow_lane {

// The environment variable.
inline constexpr char kRunTokenVariable[] = "TANDEM_RUN_TOKEN";

// Returns 128 random bits in hexadecimal, for runs and sessions. One system
// call.
std::string MakeToken();

// Returns the token in a process's environment; nullopt if there is none or it
// is unreadable. One file read.
std::optional<std::string> RunTokenOf(pid_t pid);

class RunToken {
 public:
  explicit RunToken(absl::string_view token);

  // The soft limit that LaunchWorker sets: never 0, and far below
  // RLIM_INFINITY.
  rlim_t limit() const { return limit_; }

  // Whether a process has the limit, or the token in its environment. If its
  // first thread has ended, the environments of all threads count. False for an
  // empty token, for an ended process, and for another user's. Reads at most
  // one file, except for processes without their first thread. An error: this
  // process cannot read it, for example without free descriptors.
  absl::StatusOr<bool> IsOf(const ProcessStat& stat) const;

 private:
  const std::string entry_;  // with a NUL before and after; empty: no token
  const rlim_t limit_;
};

}  // namespace tandem::slow_lane
