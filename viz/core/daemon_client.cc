#include "viz/core/daemon_client.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "schema/protos/slow_lane.grpc.pb.h"
#include "schema/protos/trainer.grpc.pb.h"
#include "transport/base/printable.h"

namespace tandem {
namespace {

namespace v1 = slow_lane::v1;
namespace trainer = gymgui::trainer;

// The numbers of both enumerations are gRPC's. The daemon's text may be
// anything.
absl::Status StatusOf(const grpc::Status& status, absl::string_view call,
                      const std::string& target) {
  if (status.ok()) return absl::OkStatus();
  absl::string_view next;
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    next = ". Start a daemon there, or set TANDEM_DAEMON to its address";
  }
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      absl::StrCat(call, " at ", Printable(target), ": ",
                                   Printable(status.error_message()), next));
}

void SetDeadline(grpc::ClientContext* context, double secs) {
  context->set_deadline(
      std::chrono::system_clock::now() +
      std::chrono::milliseconds(static_cast<int64_t>(secs * 1e3)));
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
  std::unique_ptr<v1::SlowLane::Stub> slow_lane;
  std::unique_ptr<trainer::TrainerService::Stub> trainer;
};

std::string DaemonTarget() {
  const char* const given = std::getenv("TANDEM_DAEMON");
  if (given != nullptr && *given != '\0') return given;
  return absl::StrCat("127.0.0.1:", int{v1::DEFAULT_PORT});
}

DaemonClient::DaemonClient(const std::string& target)
    : target_(target), stubs_(std::make_unique<Stubs>()) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(v1::MAX_MESSAGE_BYTES);
  arguments.SetMaxSendMessageSize(v1::MAX_MESSAGE_BYTES);
  // A restarted daemon is found within a second.
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  const auto channel = grpc::CreateCustomChannel(
      target, grpc::InsecureChannelCredentials(), arguments);
  stubs_->slow_lane = v1::SlowLane::NewStub(channel);
  stubs_->trainer = trainer::TrainerService::NewStub(channel);
}

DaemonClient::~DaemonClient() = default;

absl::StatusOr<DaemonRuns> DaemonClient::ListRuns() const {
  grpc::ClientContext context;
  SetDeadline(&context, kTimeoutSecs);
  v1::DescribeRunsResponse response;
  const absl::Status status =
      StatusOf(stubs_->slow_lane->DescribeRuns(
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
  SetDeadline(&context, kTimeoutSecs);
  trainer::SubmitRunRequest request;
  request.set_config_json(config_json);
  trainer::SubmitRunResponse response;
  const absl::Status status =
      StatusOf(stubs_->trainer->SubmitRun(&context, request, &response),
               "SubmitRun", target_);
  if (!status.ok()) return status;
  return response.run_id();
}

absl::Status DaemonClient::Cancel(const std::string& run_id) const {
  grpc::ClientContext context;
  SetDeadline(&context, kCancelSecs);
  trainer::CancelRunRequest request;
  request.set_run_id(run_id);
  trainer::CancelRunResponse response;
  return StatusOf(stubs_->trainer->CancelRun(&context, request, &response),
                  "CancelRun", target_);
}

absl::Status DaemonClient::SetPaused(const std::string& run_id,
                                     bool paused) const {
  grpc::ClientContext context;
  SetDeadline(&context, kTimeoutSecs);
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
  return StatusOf(stream->Finish(), "ControlStream", target_);
}

}  // namespace tandem
