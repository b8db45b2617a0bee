#include "viz/core/daemon_client.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/clock.h"
#include "base/error.h"
#include "schema/protos/slow_lane.grpc.pb.h"
#include "schema/protos/trainer.grpc.pb.h"
#include "viz/core/daemon_channel.h"
#include "viz/core/quantities.h"

namespace tandem {
namespace {

namespace v1 = slow_lane::v1;
namespace trainer = gymgui::trainer;

// A call to a daemon that is not there takes so long.
constexpr double kConnectSecs = 0.5;

// Prepares a call.
absl::Status Begin(grpc::Channel* channel, grpc::ClientContext* context,
                   double secs) {
  AwaitConnection(channel, kConnectSecs);
  context->set_deadline(
      std::chrono::system_clock::now() +
      std::chrono::milliseconds(static_cast<int64_t>(secs * 1e3)));
  return AddDaemonToken(context);
}

double SecsOf(const google::protobuf::Timestamp& time) {
  return static_cast<double>(time.seconds()) + time.nanos() * 1e-9;
}

// "learner (MOSAIC/1.0, pause)".
std::string TextOf(const v1::RegisteredWorker& worker) {
  std::vector<absl::string_view> facts;
  for (const std::string* fact :
       {&worker.worker_kind(), &worker.proto_version()}) {
    if (!fact->empty()) facts.push_back(*fact);
  }
  if (worker.supports_pause()) facts.push_back("pause");
  if (worker.supports_checkpoint()) facts.push_back("checkpoint");
  if (facts.empty()) return worker.worker_id();
  return absl::StrCat(worker.worker_id(), " (", absl::StrJoin(facts, ", "),
                      ")");
}

DaemonRun RunOf(const v1::RunDescription& from) {
  const trainer::RunRecord& record = from.record();
  DaemonRun run;
  run.run_id = record.run_id();
  run.name = from.run_name();
  const std::string& state = trainer::RunStatus_Name(record.status());
  run.state = std::string(absl::StripPrefix(state, "RUN_STATUS_"));
  run.has_ended = record.status() == trainer::RUN_STATUS_TERM ||
                  record.status() == trainer::RUN_STATUS_FAULT;
  run.reason = record.has_failure_reason() ? record.failure_reason()
                                           : from.waiting_for();
  if (from.starved_watchers() > 0) {
    absl::StrAppend(&run.reason, run.reason.empty() ? "" : "; ",
                    from.starved_watchers(),
                    " of its watchers STARVED, without credits");
  }
  run.failure_line = from.failure_line();
  run.remark = from.remark();
  run.folder = from.folder();
  run.created_secs = SecsOf(record.created_at());
  run.steps = from.steps_printed();
  run.episodes = from.episodes();
  run.scalars = from.scalars();
  if (from.has_max_steps()) run.max_steps = from.max_steps();
  // NaN equals no other value: the run would never be as it was.
  if (from.has_mean_return() && !std::isnan(from.mean_return())) {
    run.mean_return = from.mean_return();
  }
  run.mean_of = from.mean_of();
  run.steps_per_second = from.steps_per_second();
  run.episodes_per_second = from.episodes_per_second();
  for (const v1::Attempt& attempt : from.attempts()) {
    run.attempts.push_back({.number = attempt.number(),
                            .started_secs = SecsOf(attempt.started()),
                            .ended_secs = SecsOf(attempt.ended()),
                            .reason = attempt.reason(),
                            .episodes_before = attempt.episodes(),
                            .scalars_before = attempt.scalars()});
  }
  const v1::Attempt& last = from.attempts().empty()
                                ? v1::Attempt::default_instance()
                                : from.attempts(from.attempts_size() - 1);
  run.attempt_steps = std::max(from.steps_printed() - last.steps_printed(),
                               from.steps() - last.steps());
  run.parameters.insert(from.parameters().begin(), from.parameters().end());
  run.unreachable = from.unreachable();
  run.worker_pid = from.worker_pid();
  for (const v1::RegisteredWorker& worker : from.workers()) {
    run.workers.push_back(TextOf(worker));
  }
  return run;
}

// NaN: the worker printed none.
template <typename Event>
double TimeOf(const Event& event) {
  return event.has_timestamp() ? SecsOf(event.timestamp())
                               : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

std::string StateText(const DaemonRun& run) {
  return absl::StrCat(run.state, run.unreachable ? ", unreachable" : "");
}

std::string FactsText(const DaemonRun& run) {
  std::string text;
  // Some runs print episodes only.
  if (run.steps > 0 || run.episodes == 0) {
    text = run.max_steps.has_value()
               ? absl::StrCat(CountText(run.attempt_steps), " of ",
                              CountText(*run.max_steps))
               : CountText(run.steps);
    absl::StrAppend(&text, " steps, ", RoundedText(run.steps_per_second),
                    "/s, ");
  }
  absl::StrAppend(&text, CountText(run.episodes), " episodes");
  if (run.mean_return.has_value()) {
    absl::StrAppendFormat(&text, ", mean return %.6g of the last %d",
                          *run.mean_return, run.mean_of);
  }
  return text;
}

struct DaemonClient::Stubs {
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::SlowLane::Stub> slow_lane;
  std::unique_ptr<trainer::TrainerService::Stub> trainer;
};

DaemonClient::DaemonClient(const std::string& target)
    : target_(target), stubs_(std::make_unique<Stubs>()) {
  stubs_->channel = NewDaemonChannel(target);
  stubs_->slow_lane = v1::SlowLane::NewStub(stubs_->channel);
  stubs_->trainer = trainer::TrainerService::NewStub(stubs_->channel);
}

DaemonClient::~DaemonClient() = default;

absl::StatusOr<DaemonRuns> DaemonClient::ListRuns() const {
  grpc::ClientContext context;
  TANDEM_RETURN_IF_ERROR(Begin(stubs_->channel.get(), &context, kTimeoutSecs));
  v1::DescribeRunsResponse response;
  const absl::Status status =
      DaemonStatus(stubs_->slow_lane->DescribeRuns(
                       &context, v1::DescribeRunsRequest(), &response),
                   "DescribeRuns", target_);
  if (!status.ok()) return status;
  DaemonRuns runs;
  runs.state = response.daemon_state();
  for (const v1::RunDescription& run : response.runs()) {
    runs.runs.push_back(RunOf(run));
  }
  return runs;
}

absl::StatusOr<bool> DaemonClient::ReadCurves(const std::string& run_id,
                                              bool with_scalars,
                                              RunCurves* curves) const {
  constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
  grpc::ClientContext context;
  TANDEM_RETURN_IF_ERROR(Begin(stubs_->channel.get(), &context, kTimeoutSecs));
  v1::StreamEventsRequest request;
  request.set_run_id(run_id);
  request.set_since_step(kNone);
  request.set_since_episode(curves->last_episode());
  request.set_since_lifecycle(kNone);
  request.set_since_malformed(kNone);
  if (with_scalars) request.set_since_scalars(curves->last_scalars());
  const Deadline enough = Deadline::After(kCurvesSecs);
  const auto reader = stubs_->slow_lane->StreamEvents(&context, request);
  v1::EventBatch batch;
  while (reader->Read(&batch)) {
    for (const trainer::RunEpisode& episode : batch.episodes()) {
      curves->AddEpisode(episode.seq_id(), TimeOf(episode),
                         episode.total_reward(), episode.steps());
    }
    for (const v1::Scalars& row : batch.scalars()) {
      const CurvePlace at = {
          .step = static_cast<double>(row.step()),
          .episode = std::numeric_limits<double>::quiet_NaN(),
          .time_secs = TimeOf(row)};
      for (int i = 0; i < std::min(row.names_size(), row.values_size()); ++i) {
        curves->AddScalar(row.seq_id(), at, row.names(i), row.values(i));
      }
    }
    if (enough.PassedAt(MonotonicNanos())) {
      context.TryCancel();
      (void)reader->Finish();  // "cancelled"
      return false;
    }
  }
  TANDEM_RETURN_IF_ERROR(
      DaemonStatus(reader->Finish(), "StreamEvents", target_));
  return true;
}

absl::StatusOr<std::string> DaemonClient::Submit(
    const std::string& config_json) const {
  grpc::ClientContext context;
  TANDEM_RETURN_IF_ERROR(Begin(stubs_->channel.get(), &context, kTimeoutSecs));
  trainer::SubmitRunRequest request;
  request.set_config_json(config_json);
  trainer::SubmitRunResponse response;
  TANDEM_RETURN_IF_ERROR(
      DaemonStatus(stubs_->trainer->SubmitRun(&context, request, &response),
                   "SubmitRun", target_));
  return response.run_id();
}

absl::Status DaemonClient::Cancel(const std::string& run_id) const {
  grpc::ClientContext context;
  TANDEM_RETURN_IF_ERROR(Begin(stubs_->channel.get(), &context, kCancelSecs));
  trainer::CancelRunRequest request;
  request.set_run_id(run_id);
  trainer::CancelRunResponse response;
  return DaemonStatus(stubs_->trainer->CancelRun(&context, request, &response),
                      "CancelRun", target_);
}

absl::Status DaemonClient::SetPaused(const std::string& run_id,
                                     bool paused) const {
  grpc::ClientContext context;
  TANDEM_RETURN_IF_ERROR(Begin(stubs_->channel.get(), &context, kTimeoutSecs));
  const auto stream = stubs_->trainer->ControlStream(&context);
  trainer::ControlEvent event;
  event.set_run_id(run_id);
  if (paused) {
    event.set_pause(true);
  } else {
    event.set_resume(true);
  }
  // The daemon refuses by the stream's status, which Finish returns.
  if (stream->Write(event)) stream->WritesDone();
  while (stream->Read(&event)) {
  }
  return DaemonStatus(stream->Finish(), "ControlStream", target_);
}

}  // namespace tandem
