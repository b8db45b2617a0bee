// RunEnds: the ends of runs: by themselves, by a cancel, by a limit, or without
// a proxy that reports them.
//
// Data flow: WorkerEnded, a cancel, the schedule's limits -> the run's
// processes -> TERM or FAULT in the table -> proxy, watchers and the callers of
// CancelRun.
// Ownership: the supervisor's; its thread (EventLoop) alone calls.
//
//   RunEnds ends(options, &loop, &runs, &starter, store, hub);
//   ends.WorkerEnded(run, message);
//   ends.Cancel(run, [](const absl::Status& status) { ... });
//   ends.CheckLimits(run);

#ifndef TANDEM_SLOW_LANE_DAEMON_RUN_ENDS_H_
#define TANDEM_SLOW_LANE_DAEMON_RUN_ENDS_H_

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "schema/protos/slow_lane.pb.h"
#include "slow_lane/daemon/event_loop.h"
#include "slow_lane/daemon/live_run.h"
#include "slow_lane/daemon/run_starter.h"
#include "slow_lane/daemon/watch_hub.h"
#include "slow_lane/runs/run_folder.h"
#include "slow_lane/runs/run_state.h"
#include "slow_lane/store/event_store.h"

namespace tandem::slow_lane {

class RunEnds {
 public:
  // All outlive it.
  RunEnds(const RunOptions& options, EventLoop* loop, LiveRuns* runs,
          RunStarter* starter, EventStore* store, WatchHub* hub)
      : options_(options),
        loop_(loop),
        runs_(runs),
        starter_(starter),
        store_(store),
        hub_(hub) {}

  // Frees the run's GPUs, dispatches, and moves it to a final state. Once that
  // is durable, informs proxy, watchers and callers of CancelRun.
  void End(LiveRun* run, RunState state, std::optional<std::string> reason);
  // As its proxy reports. If the exit status is unknown, the run's own
  // "run_completed" decides.
  void WorkerEnded(LiveRun* run, const v1::WorkerEnded& ended);
  // Ends the run's processes; `done` as RunSupervisor::Cancel.
  void Cancel(LiveRun* run, LiveRuns::Done done);
  // Ends the run's processes, or a run that is not dispatched at once.
  void StartEnding(LiveRun* run, const std::string& why);
  // StartEnding, if a limit of the run's schedule is reached.
  void CheckLimits(LiveRun* run);
  // Ends a run without a proxy, and without a folder in which one could start,
  // if it was cancelled or its worker is gone as well.
  void EndUnheard(LiveRun* run);
  // Of an ended run whose artifacts.persist_logs is false.
  void RemoveUnwantedLogs(const LiveRun& run);

 private:
  void EndByItsEvents(const std::string& run_id, RunOutcome otherwise);
  void TreeEnded(const std::string& run_id, const std::string& problem);
  // Nothing of the run is alive. Its last events may not be read yet, or the
  // disk may be full: after a while the callers get an answer all the same.
  void AnswerCancelInTime(const std::string& run_id);
  // The store closed before it had that the run was cancelled.
  void CancelIsLost(const std::string& run_id);
  RunFolder FolderOf(const LiveRun& run) const;

  const RunOptions& options_;
  EventLoop* const loop_;
  LiveRuns* const runs_;
  RunStarter* const starter_;
  EventStore* const store_;
  WatchHub* const hub_;
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_DAEMON_RUN_ENDS_H_
