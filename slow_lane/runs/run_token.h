// What marks a run's processes, each of which hands it down to its children: a
// variable in their environment, and for those that clear that, a resource
// limit. RLIMIT_LOCKS limits nothing since Linux 2.4.25 (getrlimit(2)); its
// soft value is made from the token.
//
// Data flow: LaunchWorker sets both -> /proc/PID/environ, prlimit -> a process
// that searches the run's processes.
//
//   const RunToken token(plan.token);
//   token.IsOf(stat);
//   RunTokenOf(pid);  // "01ARZ3..." or nothing

#ifndef TANDEM_SLOW_LANE_RUNS_RUN_TOKEN_H_
#define TANDEM_SLOW_LANE_RUNS_RUN_TOKEN_H_

#include <sys/resource.h>
#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "slow_lane/runs/process_identity.h"

namespace tandem::slow_lane {

// The variable.
inline constexpr char kRunTokenVariable[] = "TANDEM_RUN_TOKEN";

// The token in a process's environment; nothing if there is none, or if that
// cannot be read. One file read.
std::optional<std::string> RunTokenOf(pid_t pid);

class RunToken {
 public:
  explicit RunToken(absl::string_view token);

  // What LaunchWorker sets: never 0, and far below RLIM_INFINITY.
  rlim_t limit() const { return limit_; }

  // Whether a process has the limit, or the token is in its environment or in
  // that of any thread of one whose first thread is gone. False for an empty
  // token, and of a process that is gone or another user's. At most one file is
  // read, but for those without their first thread. An error: this process
  // cannot read it, such as without descriptors.
  absl::StatusOr<bool> IsOf(const ProcessStat& stat) const;

 private:
  const std::string entry_;  // with a NUL before and behind; empty: no token
  const rlim_t limit_;
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_RUNS_RUN_TOKEN_H_
