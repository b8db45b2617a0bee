#include "slow_lane/daemon/run_pauses.h"

#include <algorithm>
#include <csignal>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "slow_lane/runs/process_tree.h"

namespace tandem::slow_lane {
namespace {

using gymgui::trainer::ControlEvent;
using enum gymgui::trainer::RunStatus;

void Send(const std::string& run_id, bool pause, PauseListener* listener) {
  listener->told = pause;
  listener->answered = false;
  ControlEvent event;
  event.set_run_id(run_id);
  pause ? event.set_pause(true) : event.set_resume(true);
  listener->sink->Send(event);
}

absl::Status Refusal(const LiveRun& run, RunState expected) {
  return absl::FailedPreconditionError(
      absl::StrCat("expected the run to be ", NameOf(expected), ", found it ",
                   NameOf(run.row.status),
                   run.end_reason.has_value() ? ", being ended" : ""));
}

}  // namespace

void RunPauses::Pause(LiveRun* run, Done done) {
  if (const absl::Status here = CheckIsHere(*run); !here.ok()) {
    return done(here);
  }
  InTurn(run, [this, run, done = std::move(done)]() mutable {
    auto stop = [this, run, done = std::move(done)]() mutable {
      Signal(run, RUN_STATUS_EXEC, RUN_STATUS_PAUSE, SIGSTOP, std::move(done));
    };
    if (run->row.status != RUN_STATUS_EXEC || run->end_reason.has_value() ||
        run->pause_listeners.empty() || stopping_) {
      return stop();
    }
    Tell(run, std::move(stop));
  });
}

void RunPauses::Resume(LiveRun* run, Done done) {
  if (const absl::Status here = CheckIsHere(*run); !here.ok()) {
    return done(here);
  }
  InTurn(run, [this, run, done = std::move(done)]() mutable {
    Signal(run, RUN_STATUS_PAUSE, RUN_STATUS_EXEC, SIGCONT, std::move(done));
  });
}

void RunPauses::Handle(LiveRun* run, const std::string& worker_id,
                       const ControlEvent& event, ControlSink* sink) {
  const auto is_this = [sink](const PauseListener& listener) {
    return listener.sink == sink;
  };
  const auto found = std::ranges::find_if(run->pause_listeners, is_this);
  if (found != run->pause_listeners.end()) {
    if (!event.pause()) return;
    found->answered = true;
    return StopWaitingIfAllAnswered(run);
  }
  if (event.pause()) return;  // of a stream that another one has replaced
  for (PauseListener& listener : run->pause_listeners) {
    if (listener.worker_id == worker_id)
      Send(run->row.run_id, false, &listener);
  }
  std::erase_if(run->pause_listeners, [&](const PauseListener& listener) {
    return listener.worker_id == worker_id;
  });
  run->pause_listeners.push_back({.worker_id = worker_id, .sink = sink});
  Send(run->row.run_id,
       run->answer_limit.has_value() || run->row.status == RUN_STATUS_PAUSE,
       &run->pause_listeners.back());
}

void RunPauses::Forget(const ControlSink* sink) {
  for (auto& [run_id, run] : runs_->all()) {
    const size_t erased = std::erase_if(
        run.pause_listeners,
        [sink](const PauseListener& each) { return each.sink == sink; });
    if (erased > 0) StopWaitingIfAllAnswered(&run);
  }
}

void RunPauses::Stop() {
  stopping_ = true;
  for (auto& [run_id, run] : runs_->all()) StopWaiting(&run);
}

void RunPauses::InTurn(LiveRun* run, EventLoop::Task task) {
  if (run->end_reason.has_value()) return task();
  if (run->answer_limit.has_value()) {
    return run->when_answered.push_back(std::move(task));
  }
  if (!run->busy) return task();
  runs_->WhenFree(run, [this, run, task = std::move(task)]() mutable {
    InTurn(run, std::move(task));
  });
}

void RunPauses::Tell(LiveRun* run, EventLoop::Task then) {
  run->when_answered.push_back(std::move(then));
  run->answer_limit =
      loop_->After(kAnswerLimit, [this, run_id = run->row.run_id] {
        if (LiveRun* const still = runs_->Find(run_id); still != nullptr) {
          StopWaiting(still);
        }
      });
  for (PauseListener& listener : run->pause_listeners) {
    Send(run->row.run_id, true, &listener);
  }
}

void RunPauses::StopWaitingIfAllAnswered(LiveRun* run) {
  if (std::ranges::all_of(run->pause_listeners, &PauseListener::answered)) {
    StopWaiting(run);
  }
}

void RunPauses::StopWaiting(LiveRun* run) {
  if (!run->answer_limit.has_value()) return;
  loop_->Cancel(*run->answer_limit);
  run->answer_limit.reset();
  // The first stops the processes. The next ones wait for that.
  for (EventLoop::Task& task : std::exchange(run->when_answered, {})) {
    InTurn(run, std::move(task));
  }
}

void RunPauses::TellResumed(LiveRun* run) {
  for (PauseListener& listener : run->pause_listeners) {
    if (listener.told) Send(run->row.run_id, false, &listener);
  }
}

void RunPauses::Signal(LiveRun* run, RunState from, RunState to, int signal,
                       Done done) {
  if (stopping_) {
    return done(absl::AbortedError(
        "the daemon is stopping; repeat the call with the next daemon"));
  }
  if (run->row.status == to) return done(absl::OkStatus());
  if (run->row.status != from || run->end_reason.has_value()) {
    TellResumed(run);
    return done(Refusal(*run, from));
  }
  runs_->WorkOn(run, [this, run, from, to, signal, query = QueryOf(*run),
                      done = std::move(done)]() mutable {
    const absl::Status signalled = SignalTree(query, signal).status();
    return [this, run, from, to, signalled, done = std::move(done)]() mutable {
      if (signalled.ok()) runs_->MoveTo(run, to);
      if (run->row.status != RUN_STATUS_PAUSE) TellResumed(run);
      if (!signalled.ok()) return done(signalled);
      if (run->row.status != to) return done(Refusal(*run, from));
      // Watchers get the state when it is durable.
      runs_->WhenDurable(std::move(done));
    };
  });
}

}  // namespace tandem::slow_lane
