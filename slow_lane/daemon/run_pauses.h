// RunPauses: stops and continues the processes of runs.
//
// Data flow: Pause -> the run's workers that support it, each by its
// ControlStream -> their answers, or kAnswerLimit -> SIGSTOP -> PAUSE in the
// table. Resume -> SIGCONT -> EXEC in the table -> the workers.
// Ownership: the supervisor owns it; only its thread (EventLoop) calls it.
//
// docs/decisions/0065-a-paused-worker-is-told-first.md has the reasons.

#pragma once

#include <string>

#include "absl/time/time.h"
#include "program/grpc/event_loop.h"
#include "schema/protos/trainer.pb.h"
#include "slow_lane/daemon/live_run.h"
#include "slow_lane/daemon/watch_hub.h"
#include "slow_lane/runs/run_state.h"

namespace tandem::slow_lane {

class RunPauses {
 public:
  using Done = LiveRuns::Done;

  // The time for the workers' answers to a pause.
  static constexpr absl::Duration kAnswerLimit = absl::Seconds(5);

  // Both must outlive this object.
  RunPauses(EventLoop* loop, LiveRuns* runs) : loop_(loop), runs_(runs) {}

  // Send SIGSTOP and SIGCONT to all processes of the run. Calls for one run
  // take effect in their order. kFailedPrecondition: the state is neither EXEC
  // nor PAUSE, or the run is being ended. kAborted: after Stop.
  void Pause(LiveRun* run, Done done);
  void Resume(LiveRun* run, Done done);

  // Handles a message of a worker that supports pauses. `pause: true` answers a
  // pause; each other message begins to listen. A listener gets `pause: true`
  // before the run is paused, and `resume: true` after it continues or if the
  // pause fails; first it gets one of them for the current state. It replaces
  // an earlier listener of that worker. `sink` must exist until Forget.
  void Handle(LiveRun* run, const std::string& worker_id,
              const gymgui::trainer::ControlEvent& event, ControlSink* sink);
  void Forget(const ControlSink* sink);

  // Ends the waits for answers, and refuses all pauses.
  void Stop();

 private:
  // Runs `task` after the pauses and the work on the run's processes that were
  // requested earlier; at once for a run that is being ended.
  void InTurn(LiveRun* run, EventLoop::Task task);
  // Tells the listeners of a pause; calls `then` when they have answered.
  void Tell(LiveRun* run, EventLoop::Task then);
  void StopWaiting(LiveRun* run);
  void StopWaitingIfAllAnswered(LiveRun* run);
  void TellResumed(LiveRun* run);
  void Signal(LiveRun* run, RunState from, RunState to, int signal, Done done);

  EventLoop* const loop_;
  LiveRuns* const runs_;
  bool stopping_ = false;
};

}  // namespace tandem::slow_lane
