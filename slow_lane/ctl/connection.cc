#include "slow_lane/ctl/connection.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <cstddef>
#include <future>
#include <limits>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "slow_lane/wire/client_arguments.h"
#include "slow_lane/wire/token_file.h"

namespace tandem::slow_lane {
namespace {

using gymgui::trainer::ControlEvent;
using gymgui::trainer::TrainerService;

constexpr absl::Duration kBetweenTries = absl::Milliseconds(200);

void SetDeadline(grpc::ClientContext* context, absl::Duration deadline) {
  context->set_deadline(absl::ToChronoTime(absl::Now() + deadline));
}

// Whether somebody is there and says nothing, such as a daemon that is stopped:
// to a new connection, or on one that there was. gRPC has one code for these
// and for nobody being there; its words tell.
bool IsSilence(const grpc::Status& status) {
  return absl::StrContains(status.error_message(), "SETTINGS frame") ||
         absl::StrContains(status.error_message(), "keepalive watchdog");
}

// Where a stream goes on behind `batch`.
void MoveBehind(const v1::EventBatch& batch, v1::StreamEventsRequest* request) {
  if (batch.steps_size() > 0) {
    request->set_since_step(batch.steps().rbegin()->seq_id());
  }
  if (batch.episodes_size() > 0) {
    request->set_since_episode(batch.episodes().rbegin()->seq_id());
  }
  if (batch.lifecycle_size() > 0) {
    request->set_since_lifecycle(batch.lifecycle().rbegin()->seq_id());
  }
  if (batch.malformed_size() > 0) {
    request->set_since_malformed(batch.malformed().rbegin()->seq_id());
  }
}

}  // namespace

v1::StreamEventsRequest NoEventsOf(const std::string& run_id) {
  constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
  v1::StreamEventsRequest request;
  request.set_run_id(run_id);
  request.set_since_step(kNone);
  request.set_since_episode(kNone);
  request.set_since_lifecycle(kNone);
  request.set_since_malformed(kNone);
  return request;
}

Connection::Connection(const std::string& address, const std::string& source,
                       const std::string& token)
    : address_(address),
      source_(source),
      token_(token),
      channel_(grpc::CreateCustomChannel(
          address, grpc::InsecureChannelCredentials(), ClientArguments())),
      trainer_(TrainerService::NewStub(channel_)),
      slow_lane_(v1::SlowLane::NewStub(channel_)) {}

std::string Connection::Where() const {
  return absl::StrCat(address_, " (", source_, ")");
}

void Connection::ShowToken(grpc::ClientContext* context) const {
  if (!token_.empty()) context->AddMetadata(kTokenKey, BearerOf(token_));
}

absl::Status Connection::NoAnswer(absl::StatusCode code,
                                  absl::string_view more) const {
  return absl::Status(
      code,
      absl::StrCat("expected an answer of the daemon at ", Where(),
                   ", found no answer ", more,
                   "\nNext: look whether that is a tandem-daemon, and not "
                   "stopped"));
}

absl::Status Connection::ToStatus(const grpc::Status& status,
                                  absl::Duration deadline) const {
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
      return absl::OkStatus();
    case grpc::StatusCode::UNAVAILABLE:
      if (IsSilence(status)) {
        return NoAnswer(absl::StatusCode::kUnavailable,
                        absl::StrCat("though there is a connection: ",
                                     status.error_message()));
      }
      if (absl::StrContains(status.error_message(), "Permission denied")) {
        return absl::PermissionDeniedError(absl::StrCat(
            "expected a daemon's socket that this user may open at ", Where(),
            ", found: ", status.error_message(),
            "\nNext: run tandemctl as the daemon's user, or start the daemon "
            "with --allow_users and a --socket in a folder that both users "
            "can enter"));
      }
      return absl::UnavailableError(absl::StrCat(
          "expected a daemon at ", Where(),
          ", found none: ", status.error_message(),
          "\nNext: start one, tandem-daemon --data_dir DIR; or say where it "
          "is, --daemon ADDRESS or TANDEM_DAEMON"));
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return NoAnswer(absl::StatusCode::kDeadlineExceeded,
                      absl::StrCat("within ", absl::FormatDuration(deadline),
                                   "; what was asked for may still be done"));
    case grpc::StatusCode::UNIMPLEMENTED:
      return absl::UnimplementedError(
          absl::StrCat("expected a tandem-daemon of this version at ", Where(),
                       ", found a server that does not know the call: ",
                       status.error_message()));
    default:
      return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                          status.error_message());
  }
}

template <typename Stub, typename Request, typename Response>
absl::StatusOr<Response> Connection::Call(
    Stub& stub,
    grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                 Response*),
    const Request& request, absl::Duration deadline) {
  grpc::ClientContext context;
  ShowToken(&context);
  SetDeadline(&context, deadline);
  Response response;
  const grpc::Status status = (stub.*method)(&context, request, &response);
  if (!status.ok()) return ToStatus(status, deadline);
  return response;
}

absl::StatusOr<gymgui::trainer::SubmitRunResponse> Connection::SubmitRun(
    const std::string& config_json) {
  gymgui::trainer::SubmitRunRequest request;
  request.set_config_json(config_json);
  return Call(*trainer_, &TrainerService::Stub::SubmitRun, request);
}

absl::StatusOr<v1::DescribeRunsResponse> Connection::DescribeRuns(
    const std::vector<std::string>& run_ids, absl::Duration deadline) {
  v1::DescribeRunsRequest request;
  for (const std::string& run_id : run_ids) request.add_run_ids(run_id);
  return Call(*slow_lane_, &v1::SlowLane::Stub::DescribeRuns, request,
              deadline);
}

absl::StatusOr<v1::DescribeRunsResponse> Connection::DescribeRun(
    const std::string& run_id, absl::Duration deadline) {
  auto described = DescribeRuns({run_id}, deadline);
  if (described.ok() && described->runs_size() != 1) {
    return absl::InternalError(absl::StrCat(
        "expected run '", run_id, "' of the daemon at ", address_, ", found ",
        described->runs_size(),
        " runs in its answer; is it a tandem-daemon of this version?"));
  }
  return described;
}

absl::StatusOr<gymgui::trainer::HealthCheckResponse> Connection::GetHealth() {
  return Call(*trainer_, &TrainerService::Stub::GetHealth,
              gymgui::trainer::HealthCheckRequest());
}

std::vector<absl::Status> Connection::CancelRuns(
    const std::vector<std::string>& run_ids) {
  struct Cancel {
    grpc::ClientContext context;
    gymgui::trainer::CancelRunRequest request;
    gymgui::trainer::CancelRunResponse response;
    std::promise<grpc::Status> answer;
  };
  // Shared with gRPC's thread, which may still be leaving set_value.
  std::vector<std::shared_ptr<Cancel>> calls;
  for (const std::string& run_id : run_ids) {
    const auto call = calls.emplace_back(std::make_shared<Cancel>());
    ShowToken(&call->context);
    SetDeadline(&call->context, kCancelDeadline);
    call->request.set_run_id(run_id);
    trainer_->async()->CancelRun(
        &call->context, &call->request, &call->response,
        [call](const grpc::Status& status) { call->answer.set_value(status); });
  }
  std::vector<absl::Status> statuses;
  for (const auto& call : calls) {
    statuses.push_back(
        ToStatus(call->answer.get_future().get(), kCancelDeadline));
  }
  return statuses;
}

absl::Status Connection::Control(const ControlEvent& event) {
  grpc::ClientContext context;
  ShowToken(&context);
  SetDeadline(&context, kDeadline);
  const auto stream = trainer_->ControlStream(&context);
  // What cannot be written is told by Finish; so is what cannot be done.
  stream->Write(event);
  stream->WritesDone();
  ControlEvent said;
  while (stream->Read(&said)) {
  }
  return ToStatus(stream->Finish(), kDeadline);
}

absl::Status Connection::DeleteRun(const std::string& run_id) {
  v1::DeleteRunRequest request;
  request.set_run_id(run_id);
  return Call(*slow_lane_, &v1::SlowLane::Stub::DeleteRun, request).status();
}

absl::StatusOr<std::vector<gymgui::trainer::RunEpisode>>
Connection::LastEpisodes(const std::string& run_id, uint64_t last,
                         uint64_t count, absl::Duration deadline) {
  grpc::ClientContext context;
  ShowToken(&context);
  SetDeadline(&context, deadline);
  v1::StreamEventsRequest request = NoEventsOf(run_id);
  request.set_since_episode(last - std::min(last, count));
  const auto stream = slow_lane_->StreamEvents(&context, request);
  std::vector<gymgui::trainer::RunEpisode> episodes;
  v1::EventBatch batch;
  while (stream->Read(&batch)) {
    episodes.insert(episodes.end(), batch.episodes().begin(),
                    batch.episodes().end());
  }
  const grpc::Status status = stream->Finish();
  if (!status.ok()) return ToStatus(status, deadline);
  // Others may have come meanwhile.
  if (episodes.size() > count) {
    episodes.erase(episodes.begin(),
                   episodes.end() - static_cast<std::ptrdiff_t>(count));
  }
  return episodes;
}

absl::Status Connection::StreamEvents(
    v1::StreamEventsRequest request, absl::Duration patience,
    const std::function<bool(const v1::EventBatch&)>& take) {
  absl::Time last_heard = absl::Now();
  for (;;) {
    grpc::ClientContext context;
    ShowToken(&context);
    const auto stream = slow_lane_->StreamEvents(&context, request);
    v1::EventBatch batch;
    bool wanted = true;
    while (wanted && stream->Read(&batch)) {
      MoveBehind(batch, &request);
      wanted = take(batch);
      last_heard = absl::Now();
    }
    if (!wanted) context.TryCancel();
    const grpc::Status status = stream->Finish();
    if (!wanted) return absl::OkStatus();
    if (status.error_code() != grpc::StatusCode::UNAVAILABLE ||
        absl::Now() - last_heard >= patience) {
      return ToStatus(status, patience);
    }
    absl::SleepFor(kBetweenTries);
  }
}

}  // namespace tandem::slow_lane
