#include "viz/core/daemon_client.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <utility>

#include "absl/strings/strip.h"
#include "schema/protos/slow_lane.grpc.pb.h"
#include "schema/protos/trainer.grpc.pb.h"
#include "transport/base/error.h"
#include "viz/core/daemon_channel.h"

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
  run.folder = from.folder();
  run.created_secs = static_cast<double>(record.created_at().seconds()) +
                     record.created_at().nanos() * 1e-9;
  run.steps = from.steps_printed();
  run.episodes = from.episodes();
  if (from.has_max_steps()) run.max_steps = from.max_steps();
  if (from.has_last_return()) run.last_return = from.last_return();
  run.steps_per_second = from.steps_per_second();
  run.unreachable = from.unreachable();
  run.worker_pid = from.worker_pid();
  return run;
}

}  // namespace

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
