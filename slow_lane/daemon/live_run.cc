#include "slow_lane/daemon/live_run.h"

#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "slow_lane/daemon/failure_line.h"
#include "slow_lane/runs/run_folder.h"
#include "slow_lane/runs/run_id.h"
#include "slow_lane/store/batch_writer.h"

namespace tandem::slow_lane {
namespace {

using google::protobuf::util::TimeUtil;
using enum gymgui::trainer::RunStatus;

void SetHeartbeat(const RunRow& row, gymgui::trainer::RunRecord* record) {
  if (row.last_beat_at_ns == 0) return;
  *record->mutable_last_heartbeat() =
      TimeUtil::NanosecondsToTimestamp(row.last_beat_at_ns);
}

}  // namespace

int64_t UnixNanos() { return static_cast<int64_t>(UnixMillis()) * 1'000'000; }

void NoteHeartbeat(LiveRun* run) {
  run->last_beat_ns = MonotonicNanos();
  run->row.last_beat_at_ns = UnixNanos();
  run->unreachable = false;
}

bool IsUnreachable(const LiveRun& run, int64_t now_ns, absl::Duration timeout) {
  const bool is_queued = run.config.on_ray && run.row.status == RUN_STATUS_INIT;
  return run.dispatched && !is_queued &&
         now_ns - run.last_beat_ns > absl::ToInt64Nanoseconds(timeout);
}

absl::Status CheckIsHere(const LiveRun& run) {
  if (!run.config.on_ray) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "expected a run whose processes this daemon may stop, found a job of Ray "
      "(metadata.tandem.ray)");
}

absl::Status CheckRunToken(const LiveRun& run, const std::string& run_token) {
  if (run_token == run.row.token) return absl::OkStatus();
  return absl::UnauthenticatedError(
      "expected the run's own token (launch.json in its folder), found another "
      "one");
}

absl::Status CheckGoesOn(const LiveRun& run) {
  if (!IsFinal(run.row.status)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "expected a run that goes on, found it ", NameOf(run.row.status)));
}

void NoteAttemptsBegin(LiveRun* run) {
  run->row.attempt_begin = run->last;
  run->row.attempt_printed = run->printed_steps;
}

void CountRate(LiveRun* run, int64_t now_ns) {
  if (run->counted_ns != 0) {
    const auto rate_of = [&](Stream stream) {
      return static_cast<double>(run->last[stream] - run->counted[stream]) *
             1e9 /
             static_cast<double>(
                 std::max<int64_t>(now_ns - run->counted_ns, 1));
    };
    run->steps_per_second = rate_of(Stream::kSteps);
    run->episodes_per_second = rate_of(Stream::kEpisodes);
  }
  run->counted = run->last;
  run->counted_ns = now_ns;
}

void AnswerCancel(LiveRun* run, const absl::Status& status) {
  for (auto& waiter : std::exchange(run->cancel_waiters, {})) waiter(status);
}

absl::StatusOr<std::string> WorkerOf(const LiveRun& run,
                                     const std::string& session_token) {
  for (const auto& [worker_id, token] : run.session_tokens) {
    if (token == session_token) return worker_id;
  }
  return absl::UnauthenticatedError(
      "expected in session-token what RegisterWorker gave out, found another "
      "token; call RegisterWorker (again, when the daemon was restarted)");
}

absl::Status CheckToken(const LiveRun& run, const std::string& session_token) {
  if (session_token.empty()) return absl::OkStatus();
  return WorkerOf(run, session_token).status();
}

RunOutcome OutcomeOf(const v1::WorkerEnded& ended, const LiveRun& run) {
  if (run.end_reason.has_value()) {
    return {run.end_state, run.end_reason, run.end_cause};
  }
  const WorkerExit exit = FromProto(ended);
  if (exit.how == WorkerExit::How::kExited && exit.number == 0) {
    return {RUN_STATUS_TERM, std::nullopt};
  }
  using How = WorkerExit::How;
  const std::string cause = exit.how == How::kSignalled ? "killed"
                            : exit.how == How::kExited  ? "fault"
                            : exit.how == How::kUnknown ? "machine"
                                                        : "";
  std::string reason = absl::StrCat("the worker ", exit.Describe());
  if (!ended.last_stderr().empty()) {
    absl::StrAppend(&reason, kStderrFollows, ended.last_stderr());
  }
  return {RUN_STATUS_FAULT, std::move(reason), cause};
}

TreeQuery QueryOf(const LiveRun& run) {
  std::optional<ProcessIdentity> worker;
  if (run.row.worker.pid() != 0) worker = FromProto(run.row.worker);
  return QueryOf(run.row.token, worker, run.proxy);
}

gymgui::trainer::RunRecord ToRecord(const RunRow& row) {
  gymgui::trainer::RunRecord record;
  record.set_run_id(row.run_id);
  record.set_status(row.status);
  record.set_digest(row.digest);
  *record.mutable_created_at() =
      TimeUtil::NanosecondsToTimestamp(row.created_at_ns);
  *record.mutable_updated_at() =
      TimeUtil::NanosecondsToTimestamp(row.updated_at_ns);
  if (row.failure_reason.has_value()) {
    record.set_failure_reason(*row.failure_reason);
  }
  for (const int32_t slot : row.gpu_slots) record.add_gpu_slots(slot);
  if (!row.gpu_slots.empty()) record.set_gpu_slot(row.gpu_slots.front());
  record.set_seq_id(row.update_seq);
  SetHeartbeat(row, &record);
  return record;
}

gymgui::trainer::RunRecord ToRecord(const LiveRun& run) {
  gymgui::trainer::RunRecord record = run.record;
  SetHeartbeat(run.row, &record);
  return record;
}

v1::RunDescription Describe(const LiveRun& run, const std::string& folder) {
  v1::RunDescription description;
  *description.mutable_record() = ToRecord(run);
  description.set_run_name(run.row.run_name);
  description.set_config_json(run.row.config_json);
  description.set_folder(folder);
  description.set_waiting_for(run.waiting_for);
  description.set_unreachable(run.unreachable);
  description.set_proxy_starts(run.row.proxy_starts);
  if (run.config.max_steps.has_value()) {
    description.set_max_steps(*run.config.max_steps);
  }
  for (const auto& [worker_id, worker] : run.row.workers) {
    *description.add_workers() = worker;
  }
  description.mutable_parameters()->insert(run.config.parameters.begin(),
                                           run.config.parameters.end());
  description.set_sweep(run.config.sweep);
  description.set_priority(run.config.priority);
  if (run.record.status() == RUN_STATUS_FAULT) {
    description.set_failure_line(FailureLine(run.record.failure_reason()));
  }
  if (IsFinal(run.record.status())) return description;
  description.set_steps_per_second(run.steps_per_second);
  description.set_episodes_per_second(run.episodes_per_second);
  description.set_worker_pid(run.row.worker.pid());
  description.set_output_problem(run.output_problem);
  return description;
}

void AddProgress(const RunProgress& progress, v1::RunDescription* run) {
  run->set_steps(progress.last[Stream::kSteps]);
  run->set_episodes(progress.last[Stream::kEpisodes]);
  run->set_lifecycle(progress.last[Stream::kLifecycle]);
  run->set_malformed(progress.last[Stream::kMalformed]);
  run->set_scalars(progress.last[Stream::kScalars]);
  run->set_text_lines(progress.position.text_lines());
  run->set_steps_printed(progress.position.steps());
  run->set_bytes_read(progress.position.offset());
  if (progress.last_return.has_value()) {
    run->set_last_return(*progress.last_return);
  }
  if (progress.dropped_scalars > 0) {
    run->set_remark(absl::StrCat(
        run->remark(), run->remark().empty() ? "" : "; ",
        progress.dropped_scalars, " scalars dropped, of names after the first ",
        kMostScalarNames));
  }
  if (progress.last_event_ns.has_value()) {
    *run->mutable_last_event() =
        TimeUtil::NanosecondsToTimestamp(*progress.last_event_ns);
  }
}

LiveRun* LiveRuns::Add(RunRow row) {
  LiveRun& run = runs_[row.run_id];
  run.row = std::move(row);
  run.record = ToRecord(run.row);
  run.order = ++last_order_;
  return &run;
}

LiveRun* LiveRuns::Find(const std::string& run_id) {
  const auto found = runs_.find(run_id);
  return found == runs_.end() ? nullptr : &found->second;
}

absl::StatusOr<LiveRun*> LiveRuns::FindOrError(const std::string& run_id) {
  LiveRun* const run = Find(run_id);
  if (run == nullptr) return NoSuchRun(run_id);
  return run;
}

std::vector<LiveRun*> LiveRuns::InOrder() {
  std::vector<LiveRun*> runs;
  for (auto& [run_id, run] : runs_) runs.push_back(&run);
  std::ranges::sort(runs, {}, &LiveRun::order);
  return runs;
}

void LiveRuns::MoveTo(LiveRun* run, RunState state,
                      std::optional<std::string> reason,
                      absl::AnyInvocable<void()> durable) {
  if (!MayFollow(run->row.status, state)) return;
  run->row.status = state;
  run->row.failure_reason = std::move(reason);
  run->row.updated_at_ns = UnixNanos();
  auto row = std::make_shared<RunRow>(run->row);
  Store([row](Database& database) { return UpdateRun(database, row.get()); },
        [this, row,
         durable = std::move(durable)](const absl::Status& status) mutable {
          // The store is closing: the next daemon finds the earlier state.
          if (!status.ok()) return;
          if (LiveRun* const still = Find(row->run_id); still != nullptr) {
            still->record = ToRecord(*row);
          }
          hub_->Updated(row->update_seq);
          durable();
        });
}

void LiveRuns::Save(const LiveRun& run, Done saved) {
  Store([row = run.row](Database& database) { return SaveRun(database, row); },
        std::move(saved));
}

void LiveRuns::WhenDurable(Done done) {
  Store([](Database&) { return absl::OkStatus(); }, std::move(done));
}

void LiveRuns::Store(EventStore::Change change, Done done) {
  store_->Post(std::move(change), [this, done = std::move(done)](
                                      const absl::Status& status) mutable {
    loop_->Post([status, done = std::move(done)]() mutable { done(status); });
  });
}

void LiveRuns::WorkOn(LiveRun* run,
                      absl::AnyInvocable<EventLoop::Task()> work) {
  run->busy = true;
  run->helper = std::thread(
      [this, run_id = run->row.run_id, work = std::move(work)]() mutable {
        loop_->Post([this, run_id, then = work()]() mutable {
          WorkDone(run_id, std::move(then));
        });
      });
}

void LiveRuns::WorkDone(const std::string& run_id, EventLoop::Task then) {
  LiveRun* const run = Find(run_id);  // not deleted while it is busy
  run->helper.join();
  run->busy = false;
  then();
  while (!run->busy && !run->when_free.empty()) {
    EventLoop::Task next = std::move(run->when_free.front());
    run->when_free.pop_front();
    next();
  }
}

void LiveRuns::WhenFree(LiveRun* run, EventLoop::Task task) {
  if (run->busy) return run->when_free.push_back(std::move(task));
  task();
}

void LiveRuns::JoinWork() {
  for (auto& [run_id, run] : runs_) {
    if (run.helper.joinable()) run.helper.join();
  }
}

}  // namespace tandem::slow_lane
