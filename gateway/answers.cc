#include "gateway/answers.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/error.h"
#include "gateway/grpc_errors.h"
#include "gateway/images.h"
#include "gateway/info_names.h"
#include "gateway/relay_calls.h"
#include "gateway/task_contract.h"
#include "schema/layout/error_codes.h"
#include "schema/protos/hazel/mujoco_scene.pb.h"
#include "transport/rpc_client.h"

namespace tandem::gateway {
namespace {

namespace pb = hazel::rpc;
using google::protobuf::Message;

absl::Status AskEngine(const EngineCall& call, rpc::MethodId method,
                       const Message& request, Message* response) {
  const auto& [gateway, deadline, peer] = call;
  // As the client while the gateway is: the engine refuses some calls of
  // attendants beside a client.
  const std::shared_ptr<RpcClient> own = gateway->slot.Rpcs();
  absl::StatusOr<RpcMessage> answer =
      own != nullptr ? own->Call(CallOf(method, request), deadline)
                     : gateway->link.Call(CallOf(method, request), deadline);
  if (CodeOf(answer.status()) == ErrorCode::kClientClosed) {
    // The slot was released meanwhile.
    answer = gateway->link.Call(CallOf(method, request), deadline);
  }
  if (!answer.ok()) return answer.status();
  return TakeAnswer(method, &*answer, response);
}

absl::Status TakeTelemetry(const EngineCall& call, pb::TelemetryFrame* frame) {
  constexpr auto kMethod = rpc::MethodId::StreamTelemetry;
  TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<RpcClient> client,
                          call.gateway->link.Client());
  TANDEM_ASSIGN_OR_RETURN(
      const uint64_t stream,
      client->Open(CallOf(kMethod, pb::StreamTelemetryRequest())));
  absl::StatusOr<std::optional<RpcMessage>> item =
      client->Next(stream, call.deadline);
  client->Close(stream);
  if (!item.ok()) return item.status();
  if (!item->has_value()) {
    return MakeError(ErrorCode::kEngineFailed,
                     "expected a frame of telemetry, found that the stream "
                     "has ended");
  }
  return TakeAnswer(kMethod, &**item, frame);
}

template <typename Requests>
absl::Status TakeImages(
    const EngineCall& call, rpc::MethodId method, const Requests& requests,
    google::protobuf::RepeatedPtrField<pb::NamedImageFrame>* images) {
  for (const auto& request : requests) {
    TANDEM_RETURN_IF_ERROR(AskEngine(call, method, request, images->Add()));
    TANDEM_RETURN_IF_ERROR(CheckTotalSize(*images));
  }
  return absl::OkStatus();
}

absl::Status Observe(const EngineCall& call,
                     const pb::GetObservationRequest& request,
                     pb::GetObservationResponse* response) {
  if (request.include_joint_state()) {
    pb::GetJointStateRequest joints;
    joints.set_robot_name(request.robot_name());
    pb::GetJointStateResponse state;
    TANDEM_RETURN_IF_ERROR(
        AskEngine(call, rpc::MethodId::GetJointState, joints, &state));
    *response->mutable_joint_state() = state.state();
  }
  if (request.include_agent_frame()) {
    TANDEM_ASSIGN_OR_RETURN(
        const bool found,
        call.gateway->slot.Frame(request.agent_name(),
                                 response->mutable_agent_frame()));
    if (!found) {
      return MakeError(ErrorCode::kNoStepPending,
                       "include_agent_frame: expected that a program has "
                       "stepped, found none; next: ResetAgent, then Step");
    }
  }
  if (request.include_telemetry()) {
    TANDEM_RETURN_IF_ERROR(TakeTelemetry(call, response->mutable_telemetry()));
  }
  TANDEM_RETURN_IF_ERROR(TakeImages(call, rpc::MethodId::GetCameraFrame,
                                    request.cameras(),
                                    response->mutable_camera_frames()));
  return TakeImages(call, rpc::MethodId::GetViewportFrame, request.viewports(),
                    response->mutable_viewport_frames());
}

absl::StatusOr<TaskTerms> TermsOf(const EngineCall& call) {
  pb::GetAgentSchemaResponse agent;
  TANDEM_RETURN_IF_ERROR(AskEngine(call, rpc::MethodId::GetAgentSchema,
                                   pb::GetAgentSchemaRequest(), &agent));
  TANDEM_ASSIGN_OR_RETURN(const StepNames names, call.gateway->link.Names());
  return gateway::TermsOf(agent.schema(), names);
}

}  // namespace

absl::Status Relay(const EngineCall& call, rpc::MethodId method,
                   const Message& request, Message* response) {
  const absl::Status status = AskEngine(call, method, request, response);
  if (status.ok() || method != rpc::MethodId::GetMujocoInfo) return status;
  auto* const info = static_cast<pb::GetMujocoInfoResponse*>(response);
  info->set_success(false);
  info->set_message(IsAway(status) ? NotReadyText(status)
                                   : std::string(status.message()));
  return absl::OkStatus();
}

absl::Status Answer(const EngineCall& call,
                    const pb::GetCapabilityManifestRequest& /*request*/,
                    pb::GetCapabilityManifestResponse* response) {
  TANDEM_ASSIGN_OR_RETURN(const TaskTerms terms, TermsOf(call));
  *response->mutable_manifest() = ManifestOf(terms);
  return absl::OkStatus();
}

absl::Status Answer(const EngineCall& call,
                    const pb::ValidateTaskContractRequest& request,
                    pb::ValidateTaskContractResponse* response) {
  TANDEM_ASSIGN_OR_RETURN(const TaskTerms terms, TermsOf(call));
  *response->mutable_result() = Validate(request.contract(), terms);
  return absl::OkStatus();
}

absl::Status Answer(const EngineCall& call,
                    const pb::NegotiateTaskRequest& request,
                    pb::NegotiateTaskResponse* response) {
  TANDEM_ASSIGN_OR_RETURN(const TaskTerms terms, TermsOf(call));
  *response->mutable_validation() = Validate(request.contract(), terms);
  if (!response->validation().is_valid()) {
    // Programs show the message only.
    std::vector<std::string> problems;
    for (const auto& error : response->validation().errors()) {
      problems.push_back(
          absl::StrCat(error.message(), "; ", error.suggestion()));
    }
    response->set_message(absl::StrJoin(problems, "\n"));
    return absl::OkStatus();
  }
  pb::NegotiatedTaskSession session = SessionOf(request.contract(), terms);
  TANDEM_ASSIGN_OR_RETURN(const std::string id,
                          call.gateway->connections.BeginTask(
                              call.peer, {session.reward_terms().begin(),
                                          session.reward_terms().end()}));
  session.set_session_id(id);
  *response->mutable_session() = std::move(session);
  response->set_success(true);
  return absl::OkStatus();
}

absl::Status Answer(const EngineCall& call,
                    const pb::SendControlRequest& request,
                    pb::SendControlResponse* response) {
  pb::SetControlRequest controls;
  *controls.mutable_bulk() = request.controls();
  pb::SetControlResponse set;
  TANDEM_RETURN_IF_ERROR(
      AskEngine(call, rpc::MethodId::SendControl, controls, &set));
  response->set_success(set.success());
  response->set_message(set.message());
  return absl::OkStatus();
}

absl::Status Answer(const EngineCall& call,
                    const pb::GetObservationRequest& request,
                    pb::GetObservationResponse* response) {
  const absl::Status status = Observe(call, request, response);
  response->set_success(status.ok());
  response->set_message(IsAway(status) ? NotReadyText(status)
                                       : std::string(status.message()));
  response->set_timestamp_ms(UnixMillis());
  response->set_frame_number(response->agent_frame().frame_number());
  return absl::OkStatus();
}

absl::Status Answer(const pb::ProgressReport& /*request*/,
                    pb::ProgressAck* response) {
  response->set_accepted(true);
  return absl::OkStatus();
}

absl::Status Answer(const pb::ListRobotControllersRequest& /*request*/,
                    pb::ListRobotControllersResponse* /*response*/) {
  return absl::OkStatus();
}

absl::Status Answer(const pb::ListPolicyDescriptorsRequest& /*request*/,
                    pb::ListPolicyDescriptorsResponse* /*response*/) {
  return absl::OkStatus();
}

absl::Status Answer(const pb::EnterPlayModeRequest& /*request*/,
                    pb::EnterPlayModeResponse* response) {
  response->set_success(true);
  return absl::OkStatus();
}

absl::Status Answer(const pb::ExitPlayModeRequest& /*request*/,
                    pb::ExitPlayModeResponse* response) {
  response->set_success(true);
  return absl::OkStatus();
}

absl::Status Answer(const pb::GetCameraConfigRequest& /*request*/,
                    pb::CameraConfigResponse* response) {
  response->set_found(false);
  return absl::OkStatus();
}

absl::Status Answer(const pb::SetCameraConfigRequest& /*request*/,
                    pb::CameraConfigAck* response) {
  response->set_ok(false);
  response->set_message(
      "expected a camera with a configuration, found that cameras of Tandem's "
      "engines have none; next: set width, height and format in the request of "
      "an image");
  return absl::OkStatus();
}

}  // namespace tandem::gateway
