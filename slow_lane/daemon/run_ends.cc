#include "slow_lane/daemon/run_ends.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "slow_lane/daemon/failure_line.h"
#include "slow_lane/runs/process_memory.h"
#include "slow_lane/runs/process_tree.h"
#include "slow_lane/runs/worker_launch.h"

namespace tandem::slow_lane {
namespace {

using enum gymgui::trainer::RunStatus;

// The maximum time from the death of a cancelled run's last process to the
// answer of CancelRun. After it, the answer does not wait for the last events.
constexpr absl::Duration kDrainLimit = absl::Seconds(10);
// The same for a run on Ray, whose processes end within this time, too.
constexpr absl::Duration kRayLimit = absl::Seconds(50);

// Ends all processes of the run except its proxy, and prevents a later launch
// of the worker. Blocks. Returns "", or the remaining processes and the reason.
std::string EndRunProcesses(const RunFolder& folder, TreeQuery query,
                            double grace_secs) {
  // Continues after an error, such as a full disk, to end living processes.
  const absl::Status prevented =
      PreventLaunch(folder, "cancelled before it was started");
  // A worker may have been launched just before.
  const absl::StatusOr<std::optional<ProcessIdentity>> worker =
      folder.ReadWorker();
  if (worker.ok() && worker->has_value() && (*worker)->pid != 0) {
    query.roots.push_back(**worker);
  }
  const absl::StatusOr<TreeEnd> end = EndTree(query, grace_secs);
  if (!end.ok()) return std::string(end.status().message());
  if (!end->left.empty()) return end->Describe();
  // No later launch: it was prevented, a worker was launched before, or the
  // folder does not exist.
  std::error_code error;
  if (prevented.ok() || absl::IsAlreadyExists(prevented) ||
      (worker.ok() && worker->has_value()) ||
      !std::filesystem::exists(folder.path(), error)) {
    return {};
  }
  return absl::StrCat("a worker may still be launched: ", prevented.message());
}

// Makes the process that watches a run's job of Ray end the job. Blocks.
// Returns
// "", or the reason why it does not.
std::string EndRayJob(const RunFolder& folder) {
  const absl::Status prevented =
      PreventLaunch(folder, "cancelled before it was started");
  if (prevented.ok() || absl::IsAlreadyExists(prevented)) return "";
  return absl::StrCat("its job of Ray may go on: ", prevented.message());
}

// Returns whether the worker is gone; if so, ends the processes that it left.
// pid 0: the worker is unknown; returns whether no process of the run lives.
// Blocks.
bool EndOrphans(const RunFolder& folder, const ProcessIdentity& worker,
                const TreeQuery& query, double grace_secs) {
  const absl::StatusOr<std::vector<TreeMember>> alive = FindTree(query);
  if (!alive.ok()) return false;
  const auto is_worker = [&worker](const TreeMember& member) {
    return worker.pid == 0 || member.identity == worker;
  };
  if (std::ranges::any_of(*alive, is_worker)) return false;
  return EndRunProcesses(folder, query, grace_secs).empty();
}

// Clears the state of an attempt that has ended, and notes its end in the row:
// the line of its exception stands for all of its stderr.
void NoteAttemptsEnd(LiveRun* run, const std::optional<std::string>& reason) {
  run->row.attempt_ended_ns = UnixNanos();
  const std::string text = reason.value_or("");
  const std::string line = FailureLine(text);
  run->row.attempt_reason =
      absl::StrCat(text.substr(0, text.find(kStderrFollows)),
                   line.empty() ? "" : ": ", line);
  run->session_tokens.clear();
  run->unreachable = false;
  run->waiting_for.clear();
}

}  // namespace

RunFolder RunEnds::FolderOf(const LiveRun& run) const {
  return RunFolder::At(options_.data_dir, run.row.run_id);
}

void RunEnds::End(LiveRun* run, RunState state,
                  std::optional<std::string> reason) {
  starter_->Forget(run);
  // Rows are missing, also after success: adds that to the reason.
  if (!run->output_problem.empty() &&
      !absl::StrContains(reason.value_or(""), run->output_problem)) {
    reason = absl::StrCat(reason.value_or(""), reason.has_value() ? "; " : "",
                          run->output_problem);
  }
  NoteAttemptsEnd(run, reason);
  runs_->MoveTo(run, state, std::move(reason),
                [this, run_id = run->row.run_id] {
                  hub_->RunEnded(run_id);
                  LiveRun* const still = runs_->Find(run_id);
                  if (still == nullptr) return;
                  still->ended_ns = MonotonicNanos();
                  if (still->link != nullptr) still->link->Recorded();
                  RemoveUnwantedFiles(*still);
                  if (!still->ending) AnswerCancel(still, absl::OkStatus());
                });
  starter_->Dispatch();
}

void RunEnds::EndOrRestart(LiveRun* run, uint32_t attempt, RunOutcome outcome) {
  // A second report of the same end.
  if (IsFinal(run->row.status) || run->row.attempt != attempt) return;
  // Without its last output, a next attempt would continue from a wrong place.
  if ((run->end_reason.has_value() && run->end_cause.empty()) ||
      !run->output_problem.empty() ||
      !run->config.restart_on.contains(outcome.cause) ||
      run->row.attempt > run->config.restart_max) {
    return End(run, outcome.state, std::move(outcome.reason));
  }
  // What ends its processes would end those of the next attempt, too.
  if (run->busy) {
    return runs_->WhenFree(run, [this, run, attempt, outcome]() mutable {
      EndOrRestart(run, attempt, std::move(outcome));
    });
  }
  starter_->Release(run);
  NoteAttemptsEnd(run, outcome.reason);
  runs_->Save(*run);
  run->end_reason.reset();
  run->end_cause.clear();
  run->row.gpu_slots.clear();
  run->row.worker.Clear();
  run->row.proxy_starts = 0;
  ++run->row.attempt;
  run->row.attempt_started_ns = run->row.attempt_ended_ns = 0;
  run->row.attempt_reason.clear();
  NoteAttemptsBegin(run);
  run->dispatched = run->is_awaited = false;
  run->silence = absl::ZeroDuration();
  runs_->MoveTo(run, RUN_STATUS_INIT, std::nullopt,
                [this, run_id = run->row.run_id] {
                  LiveRun* const still = runs_->Find(run_id);
                  if (still == nullptr) return;
                  // The last attempt's proxy exits.
                  if (still->link != nullptr) still->link->Recorded();
                  still->link.reset();
                  starter_->Enqueue(still);
                  starter_->Dispatch();
                });
}

void RunEnds::RemoveUnwantedFiles(const LiveRun& run) {
  const RunFolder folder = FolderOf(run);
  if (!run.config.persist_logs) {
    unlink(folder.stdout_path().c_str());
    unlink(folder.stderr_path().c_str());
  }
  if (!run.config.keep_checkpoints) {
    folder.SetCheckpointsAside().IgnoreError();
    sweeper_->Sweep();
  }
}

void RunEnds::WorkerEnded(LiveRun* run, const v1::WorkerEnded& ended) {
  if (IsFinal(run->row.status)) {
    if (run->link != nullptr) run->link->Recorded();
    return;
  }
  RunOutcome outcome = OutcomeOf(ended, *run);
  if (ended.has_unknown() && !run->end_reason.has_value()) {
    return EndByItsEvents(run->row.run_id, std::move(outcome));
  }
  EndOrRestart(run, run->row.attempt, std::move(outcome));
}

void RunEnds::EndByItsEvents(const std::string& run_id, RunOutcome otherwise) {
  const LiveRun* const ended = runs_->Find(run_id);
  hub_->Read([this, run_id, attempt = ended->row.attempt,
              begin = ended->row.attempt_begin[Stream::kLifecycle],
              otherwise = std::move(otherwise)](EventReader& reader) mutable {
    bool completed = false;
    v1::EventBatch lifecycle;
    uint64_t since = begin;
    // A run has few lifecycle events.
    while (reader.Read(run_id, Stream::kLifecycle, since, {}, &lifecycle)
               .value_or(0) > 0) {
      since = lifecycle.lifecycle().rbegin()->seq_id();
      for (const v1::LifecycleEvent& event : lifecycle.lifecycle()) {
        completed |= event.event() == "run_completed";
      }
      lifecycle.Clear();
    }
    if (completed) otherwise = {RUN_STATUS_TERM, std::nullopt};
    loop_->Post(
        [this, run_id, attempt, otherwise = std::move(otherwise)]() mutable {
          LiveRun* const run = runs_->Find(run_id);
          if (run == nullptr) return;
          EndOrRestart(run, attempt, std::move(otherwise));
        });
  });
}

void RunEnds::Cancel(LiveRun* run, LiveRuns::Done done) {
  if (IsFinal(run->record.status())) return done(absl::OkStatus());
  run->cancel_waiters.push_back(std::move(done));
  const std::string run_id = run->row.run_id;
  if (IsFinal(run->row.status)) {  // not durable yet
    return AnswerCancelInTime(run_id);
  }
  if (!std::exchange(run->row.cancel_requested, true)) {
    runs_->Save(*run, [this, run_id](const absl::Status& saved) {
      if (!saved.ok()) CancelIsLost(run_id);
    });
  }
  run->end_cause.clear();
  StartEnding(run, "cancelled");
}

void RunEnds::CancelIsLost(const std::string& run_id) {
  LiveRun* const run = runs_->Find(run_id);
  if (run == nullptr) return;
  run->row.cancel_requested = false;
  AnswerCancel(run, absl::AbortedError(
                        "the daemon is stopping; the run is being ended, but "
                        "its cancellation is not written down: cancel it "
                        "again once the next daemon runs"));
}

void RunEnds::StartEnding(LiveRun* run, const std::string& why,
                          RunState state) {
  if (!run->end_reason.has_value()) {
    run->end_reason = why;
    run->end_state = state;
  }
  if (run->ending || IsFinal(run->row.status)) return;
  if (!run->dispatched) {
    End(run, run->end_state, run->end_reason);
    return AnswerCancelInTime(run->row.run_id);
  }
  run->ending = true;
  // A proxy stopped by SIGSTOP could not report the end.
  if (run->process.valid()) {
    SignalProcess(run->process.get(), SIGCONT).IgnoreError();
  }
  runs_->WhenFree(run, [this, run] {
    runs_->WorkOn(run, [this, run_id = run->row.run_id, query = QueryOf(*run),
                        folder = FolderOf(*run), on_ray = run->config.on_ray] {
      const std::string problem =
          on_ray ? EndRayJob(folder)
                 : EndRunProcesses(folder, query,
                                   absl::ToDoubleSeconds(options_.kill_grace));
      return [this, run_id, problem] { TreeEnded(run_id, problem); };
    });
  });
}

void RunEnds::TreeEnded(const std::string& run_id, const std::string& problem) {
  LiveRun* const run = runs_->Find(run_id);
  run->ending = false;
  if (!problem.empty()) {
    AnswerCancel(run, absl::InternalError(absl::StrCat(
                          "expected nothing of the run to be alive after "
                          "SIGKILL; ",
                          problem)));
  } else if (IsFinal(run->record.status())) {
    AnswerCancel(run, absl::OkStatus());
  } else if (!run->cancel_waiters.empty()) {
    AnswerCancelInTime(run_id);
  }
}

void RunEnds::AnswerCancelInTime(const std::string& run_id) {
  const bool on_ray = runs_->Find(run_id)->config.on_ray;
  loop_->After(on_ray ? kRayLimit : kDrainLimit, [this, run_id] {
    LiveRun* const run = runs_->Find(run_id);
    if (run == nullptr) return;
    if (run->config.on_ray && run->dispatched &&
        !IsFinal(run->record.status())) {
      return AnswerCancel(
          run, absl::AbortedError(absl::StrCat(
                   "expected Ray to end the run's job within ",
                   absl::FormatDuration(kRayLimit),
                   ", found no end yet; it is being ended; proxy.log of its "
                   "folder may say why: ",
                   FolderOf(*run).path())));
    }
    if (run->dispatched || IsFinal(run->record.status())) {
      return AnswerCancel(run, absl::OkStatus());
    }
    // The run was not dispatched, and this daemon will not start it.
    AnswerCancel(run,
                 absl::AbortedError(absl::StrCat(
                     "cancelled before its start, but the cancel could not be "
                     "stored: ",
                     store_->state().message(),
                     ". A later daemon would start the run; next: cancel it "
                     "again when the daemon can write")));
  });
}

void RunEnds::CheckSchedule(LiveRun* run) {
  if (IsFinal(run->row.status) || run->end_reason.has_value()) return;
  const uint64_t steps = std::max(
      run->printed_steps - run->row.attempt_printed,
      run->last[Stream::kSteps] - run->row.attempt_begin[Stream::kSteps]);
  if (run->config.max_steps.has_value() && steps >= *run->config.max_steps) {
    StartEnding(run, absl::StrCat("schedule.max_steps = ",
                                  *run->config.max_steps, " reached"));
  } else if (run->config.max_duration_secs.has_value() &&
             run->row.worker.pid() != 0 &&
             SecondsSinceStart(FromProto(run->row.worker)) >=
                 static_cast<double>(*run->config.max_duration_secs)) {
    StartEnding(run, absl::StrCat("schedule.max_duration_seconds = ",
                                  *run->config.max_duration_secs, " reached"));
  }
}

void RunEnds::CheckLimits(LiveRun* run, absl::Duration passed) {
  CheckSchedule(run);
  CheckSilence(run, passed);
  CheckMemory(run);
}

void RunEnds::CheckMemory(LiveRun* run) {
  if (!run->config.enforce_resources || run->row.worker.pid() == 0 ||
      run->busy || run->end_reason.has_value()) {
    return;
  }
  runs_->WorkOn(run, [this, run, query = QueryOf(*run)] {
    const absl::StatusOr<std::vector<TreeMember>> members = FindTree(query);
    const uint64_t bytes = members.ok() ? SumOfPss(*members) : 0;
    return [this, run, bytes] {
      const uint64_t limit = run->config.memory_mb;
      if (bytes >> 20 <= limit || IsFinal(run->row.status)) return;
      StartEnding(run,
                  absl::StrCat("its processes used ", bytes >> 20,
                               " MiB (PSS), more than resources.memory_mb = ",
                               limit, " (metadata.tandem.enforce_resources)"),
                  RUN_STATUS_FAULT);
    };
  });
}

void RunEnds::CheckSilence(LiveRun* run, absl::Duration passed) {
  const std::optional<uint64_t>& own = run->config.fault_after_secs;
  const absl::Duration limit =
      own.has_value() ? absl::Seconds(*own) : options_.fault_after;
  if (!run->is_awaited || limit == absl::ZeroDuration() ||
      run->end_reason.has_value() || run->row.status == RUN_STATUS_PAUSE) {
    return;
  }
  // What the worker prints does not arrive, or waits for a slow disk.
  if (run->link == nullptr || !store_->state().ok()) return;
  run->silence += passed;
  if (run->silence < limit) return;
  StartEnding(
      run,
      absl::StrCat(own.has_value()
                       ? "its worker has printed or sent heartbeats, and then "
                         "neither for "
                       : "its worker has sent heartbeats, and then none for ",
                   absl::FormatDuration(limit),
                   own.has_value() ? " (metadata.tandem.fault_after)"
                                   : " (--fault_after)"),
      RUN_STATUS_FAULT);
  run->end_cause = "fault";
}

void RunEnds::EndWithoutProxy(LiveRun* run) {
  if (!run->dispatched || run->busy || run->link != nullptr) return;
  // A living proxy will connect, unless the run is being ended.
  if (run->process.valid() && !run->end_reason.has_value()) return;
  const RunFolder folder = FolderOf(*run);
  std::string what;
  std::error_code error;
  if (!std::filesystem::exists(folder.path(), error) && !error) {
    what =
        absl::StrCat("its folder is gone, and with it what was not read yet: ",
                     folder.path());
  } else if (run->vain_starts >= kVainStarts) {
    what = run->config.on_ray
               ? absl::StrCat(
                     "the process that watches its job of Ray does not start "
                     "(proxy.log in its folder says why): ",
                     folder.path())
               : absl::StrCat(
                     "its folder is damaged, no proxy starts in it (proxy.log "
                     "there says why), and what was not read yet stays there: ",
                     folder.path());
  } else {
    return;
  }
  run->output_problem = what;
  if (run->end_reason.has_value()) {
    return End(run, run->end_state, run->end_reason);
  }
  runs_->WorkOn(run, [this, run, folder, query = QueryOf(*run),
                      worker = FromProto(run->row.worker)] {
    const bool gone = EndOrphans(folder, worker, query,
                                 absl::ToDoubleSeconds(options_.kill_grace));
    return [this, run, gone] {
      if (!gone || run->end_reason.has_value()) return;
      EndByItsEvents(run->row.run_id,
                     {RUN_STATUS_FAULT, "the worker has ended"});
    };
  });
}

}  // namespace tandem::slow_lane
