// A run's worker: started once ever, and found again.
//
// Data flow: LaunchPlan -> LaunchWorker -> fork -> the child writes its
// identity into the folder's `worker` by link(2), which fails where one is ->
// exec. Whichever process is killed at any point, a second launch finds the
// record and executes nothing.
// Ownership: the worker has no owner: it leads a session of its own, writes to
// files, holds no descriptor of ours and does not end with its launcher.
//
//   absl::StatusOr<AdoptedWorker> found = AdoptWorker(folder, plan.token);
//   if (found->state == AdoptedWorker::State::kNeverStarted) {
//     absl::StatusOr<RunningWorker> worker = LaunchWorker(folder, plan);
//     if (absl::IsAlreadyExists(worker.status())) ...  // AdoptWorker again
//   }
//   ... poll(worker.pidfd) ...
//   std::optional<WorkerExit> end = EndOf(worker);  // still a zombie
//   EndTree(...); Reap(worker); folder.WriteExit(*end);

#ifndef TANDEM_SLOW_LANE_RUNS_WORKER_LAUNCH_H_
#define TANDEM_SLOW_LANE_RUNS_WORKER_LAUNCH_H_

#include <signal.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "slow_lane/runs/process_identity.h"
#include "slow_lane/runs/run_folder.h"
#include "transport/base/unique_fd.h"

namespace tandem::slow_lane {

// Strings as exec and posix_spawn take them, with a null pointer behind the
// last. They stay the caller's, unchanged while the pointers are used.
inline std::vector<char*> ExecPointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& each : strings) pointers.push_back(each.data());
  pointers.push_back(nullptr);
  return pointers;
}

struct RunningWorker {
  ProcessIdentity identity;
  UniqueFd pidfd;  // readable once it has ended
};

// Starts plan.argv in plan.working_directory, found by the PATH of
// plan.environment, with TANDEM_RUN_TOKEN added to that, standard input empty,
// output and errors appended to the folder's files. Returns once exec has
// worked or failed.
// kAlreadyExists: a worker was dispatched before; nothing was executed.
// kFailedPrecondition: it cannot be executed; the dispatch is used up, and the
//   folder's `exit` says why, in the status's words.
// All else: nothing was dispatched; it may be tried again.
// Threads of the caller may do whatever they do meanwhile.
absl::StatusOr<RunningWorker> LaunchWorker(const RunFolder& folder,
                                           const LaunchPlan& plan);

// From now on no process launches a worker in this folder; its `exit` says
// `reason`. kAlreadyExists: one was dispatched before, and may live.
absl::Status PreventLaunch(const RunFolder& folder, absl::string_view reason);

struct AdoptedWorker {
  enum class State {
    kNeverStarted,  // no record: it may be launched
    kRunning,       // `worker` is it
    kEnded,         // worker.identity was it; `exit`, if that was written down
  };
  State state = State::kNeverStarted;
  RunningWorker worker;
  std::optional<WorkerExit> exit;
};

// What became of the folder's worker. That very process counts as running,
// unless its environment holds another run's token; a zombie counts as
// running, too, and its pidfd is readable: EndOf knows how it ended.
// kDataLoss: a record is there and cannot be read.
absl::StatusOr<AdoptedWorker> AdoptWorker(const RunFolder& folder,
                                          absl::string_view token);

// As waitid reports it.
WorkerExit ExitOf(const siginfo_t& child);

// How it ended; nothing while it runs. Does not block. The worker stays a
// zombie, so that its number and session remain its own; of a worker that is
// not this process's child, where the kernel does not say it either, kUnknown.
std::optional<WorkerExit> EndOf(const RunningWorker& worker);

// Takes the zombie away, if it is this process's. Does not block.
void Reap(const RunningWorker& worker);

// Orphans below this process become its children rather than process 1's.
absl::Status BecomeSubreaper();

// Takes away such children that have ended, but not the worker. Does not block.
void ReapOrphans(pid_t worker);

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_RUNS_WORKER_LAUNCH_H_
