// Starts a run's worker, at most once ever, and finds it again.
//
// Data flow: LaunchPlan -> LaunchWorker -> fork -> the child writes its
// identity into the folder's `worker` by link(2), which fails if one exists ->
// exec. If any process is killed at any point, a second launch finds the record
// and executes nothing.
// Ownership: no process owns the worker. It leads its own session, writes to
// files, has no descriptor of its launcher, and does not end with it.
//
//   absl::StatusOr<AdoptedWorker> found = AdoptWorker(folder, plan.token);
//   if (found->state == AdoptedWorker::State::kNeverStarted) {
//     absl::StatusOr<RunningWorker> worker = LaunchWorker(folder, plan);
//     if (absl::IsAlreadyExists(worker.status())) ...  // AdoptWorker again
//   }
//   ... poll(worker.pidfd) ...
//   std::optional<WorkerExit> end = EndOf(worker);  // still a zombie
//   EndTree(...); Reap(worker); folder.WriteExit(*end);

#pragma once

#include <signal.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/os/unique_fd.h"
#include "slow_lane/runs/process_identity.h"
#include "slow_lane/runs/run_folder.h"

namespace tandem::slow_lane {

// Returns pointers to strings for exec and posix_spawn, with a null pointer at
// the end. The caller keeps the strings unchanged while the pointers are used.
inline std::vector<char*> ExecPointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& each : strings) pointers.push_back(each.data());
  pointers.push_back(nullptr);
  return pointers;
}

struct RunningWorker {
  ProcessIdentity identity;
  UniqueFd pidfd;  // readable after its end
};

// Starts plan.argv in plan.working_directory. It searches the program in the
// PATH of plan.environment, and adds TANDEM_RUN_TOKEN to the environment.
// Standard input is empty; output and errors are appended to the folder's
// files. Blocks until exec has succeeded or failed. Other threads of the caller
// may run.
//  - kAlreadyExists: a worker was dispatched before; nothing was executed.
//  - kFailedPrecondition: the program cannot be executed. The dispatch is used;
//    the folder's `exit` has the status's text as reason.
//  - any other error: nothing was dispatched; a retry is possible.
absl::StatusOr<RunningWorker> LaunchWorker(const RunFolder& folder,
                                           const LaunchPlan& plan);

// Prevents every later launch of a worker in this folder; its `exit` has
// `reason`. kAlreadyExists: a worker was dispatched before, and may live.
absl::Status PreventLaunch(const RunFolder& folder, absl::string_view reason);

struct AdoptedWorker {
  enum class State {
    kNeverStarted,  // no record: a launch is possible
    kRunning,       // as `worker`
    kEnded,         // as worker.identity; `exit` if it was recorded
  };
  State state = State::kNeverStarted;
  RunningWorker worker;
  std::optional<WorkerExit> exit;
};

// Returns the state of the folder's worker. The same process counts as running,
// unless its environment has another run's token. A zombie counts as running,
// too, with a readable pidfd; EndOf returns its end. kDataLoss: a record exists
// and is unreadable.
absl::StatusOr<AdoptedWorker> AdoptWorker(const RunFolder& folder,
                                          absl::string_view token);

// Converts waitid's report.
WorkerExit ExitOf(const siginfo_t& child);

// Returns the worker's end; nullopt while it runs. Does not block. The worker
// stays a zombie, so that its pid and session remain its own. kUnknown if it is
// not this process's child, and the kernel does not report its end.
std::optional<WorkerExit> EndOf(const RunningWorker& worker);

// Removes the zombie if it is this process's child. Does not block.
void Reap(const RunningWorker& worker);

// Makes this process a subreaper: orphans below it become its children, not
// those of process 1.
absl::Status BecomeSubreaper();

// Removes such children after their end, but not the worker. Does not block.
void ReapOrphans(pid_t worker);

}  // namespace tandem::slow_lane
