// What marks a run's processes: a variable in their environment, which each
// process hands down to its children.
//
// Data flow: LaunchWorker puts it in -> /proc/PID/environ -> whoever looks for
// the run's processes.
//
//   HasRunToken(stat, plan.token);
//   RunTokenOf(pid);  // "01ARZ3..." or nothing

#ifndef TANDEM_SLOW_LANE_RUNS_RUN_TOKEN_H_
#define TANDEM_SLOW_LANE_RUNS_RUN_TOKEN_H_

#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "slow_lane/runs/process_identity.h"

namespace tandem::slow_lane {

// The variable.
inline constexpr char kRunTokenVariable[] = "TANDEM_RUN_TOKEN";

// The token in a process's environment; nothing if there is none, or if that
// cannot be read: it is another user's, or gone. One file read.
std::optional<std::string> RunTokenOf(pid_t pid);

// Whether it is in the environment of a process, or of any thread of one whose
// first thread is gone. False for an empty token. One file read.
bool HasRunToken(const ProcessStat& stat, absl::string_view token);

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_RUNS_RUN_TOKEN_H_
