// RunEnds: handles the ends of runs: by their own exit, by a cancel, by a
// limit, or without a report of a proxy.
//
// Data flow: WorkerEnded, a cancel, the schedule's limits -> the run's
// processes -> TERM or FAULT in the table -> proxy, watchers and the callers of
// CancelRun.
// Ownership: the supervisor owns it; only its thread (EventLoop) calls it.
//
// The states of a run on the way to its end, and where a call leads from them;
// "-": no effect.
//
//   state    condition            StartEnding  WorkerEnded    CheckLimits
//   waiting  not `dispatched`     -> final     -              -
//   alive    no `end_reason`      -> ending    -> final       -> ending, if
//                                                             over a limit
//   ending   `ending`             -            -> final       -
//   drained  `end_reason`, and    -            -> final       -
//            no process is left
//   final    TERM or FAULT        -            answers the    -
//                                              proxy
//
// A run is drained when its last process has ended: its last events may be
// unread. Cancel is StartEnding with an answer: in "final", or in "drained"
// after a time limit, or an error if a process survives. EndWithoutProxy leads
// from "alive" and "drained" to "final". If the configuration restarts the run
// after such an end, WorkerEnded leads to "waiting" in place of "final".

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "program/grpc/event_loop.h"
#include "schema/protos/slow_lane.pb.h"
#include "slow_lane/daemon/live_run.h"
#include "slow_lane/daemon/run_starter.h"
#include "slow_lane/daemon/watch_hub.h"
#include "slow_lane/runs/run_folder.h"
#include "slow_lane/runs/run_state.h"
#include "slow_lane/store/event_store.h"

namespace tandem::slow_lane {

class RunEnds {
 public:
  // All arguments must outlive this object.
  RunEnds(const RunOptions& options, EventLoop* loop, LiveRuns* runs,
          RunStarter* starter, EventStore* store, WatchHub* hub,
          FolderSweeper* sweeper)
      : options_(options),
        loop_(loop),
        runs_(runs),
        starter_(starter),
        store_(store),
        hub_(hub),
        sweeper_(sweeper) {}

  // Frees the run's GPUs, dispatches waiting runs, and moves this run to a
  // final state. When that is durable, informs proxy, watchers and callers of
  // CancelRun.
  void End(LiveRun* run, RunState state, std::optional<std::string> reason);
  // Ends the run after an end of its worker, or begins its next attempt: the
  // run is INIT and in the queue again, once that is durable.
  // No effect if it is not the run's current attempt any more.
  void EndOrRestart(LiveRun* run, uint32_t attempt, RunOutcome outcome);
  // Handles the proxy's report. If the exit status is unknown, the run's own
  // "run_completed" event decides.
  void WorkerEnded(LiveRun* run, const v1::WorkerEnded& ended);
  // Ends the run's processes; `done` as RunSupervisor::Cancel.
  void Cancel(LiveRun* run, LiveRuns::Done done);
  // Ends the run's processes; the run's state is then `state`. A run that is
  // not dispatched ends at once.
  void StartEnding(LiveRun* run, const std::string& why,
                   RunState state = gymgui::trainer::RUN_STATUS_TERM);
  // Calls StartEnding if a limit of the run's schedule is reached.
  void CheckSchedule(LiveRun* run);
  // The same; and with FAULT, if a worker from which signs of life are expected
  // is silent for longer than its configuration or the daemon allows, or if
  // with enforce_resources the run's processes use too much memory. `passed`:
  // since the last call.
  void CheckLimits(LiveRun* run, absl::Duration passed);
  // Ends a run without a proxy, in whose folder none can start, if it was
  // cancelled or its worker has ended.
  void EndWithoutProxy(LiveRun* run);
  // Removes the logs of an ended run with artifacts.persist_logs false, and the
  // checkpoints of one with keep_checkpoints false.
  void RemoveUnwantedFiles(const LiveRun& run);

 private:
  // Adds up the memory on the run's own thread.
  void CheckMemory(LiveRun* run);
  void CheckSilence(LiveRun* run, absl::Duration passed);
  void EndByItsEvents(const std::string& run_id, RunOutcome otherwise);
  void TreeEnded(const std::string& run_id, const std::string& problem);
  // Called when no process of the run is alive. Its last events may be unread,
  // or the disk may be full; the callers get an answer after a time limit.
  void AnswerCancelInTime(const std::string& run_id);
  // Called if the store closed before the cancellation was durable.
  void CancelIsLost(const std::string& run_id);
  RunFolder FolderOf(const LiveRun& run) const;

  const RunOptions& options_;
  EventLoop* const loop_;
  LiveRuns* const runs_;
  RunStarter* const starter_;
  EventStore* const store_;
  WatchHub* const hub_;
  FolderSweeper* const sweeper_;
};

}  // namespace tandem::slow_lane
