#include "engine_adapter/gateway/answers.h"

#include <google/protobuf/descriptor.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine_adapter/gateway/grpc_errors.h"
#include "engine_adapter/gateway/message_conversion.h"
#include "flatbuffers/flatbuffers.h"
#include "schema/layout/error_codes.h"
#include "schema/messages/rpc_methods.h"
#include "schema/protos/hazel/mujoco.pb.h"
#include "transport/base/error.h"
#include "transport/rpc/packed_call.h"

namespace tandem::gateway {
namespace {

namespace pb = hazel::rpc;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Clears a robot's name of the program, such as "unitreego2": an engine knows
// agents' names only.
void ClearRobotsName(Message* request) {
  const FieldDescriptor* const field =
      request->GetDescriptor()->FindFieldByName("robot_name");
  if (field == nullptr) return;
  const auto& reflection = *request->GetReflection();
  if (!absl::StartsWith(reflection.GetString(*request, field), "agent_")) {
    reflection.ClearField(request, field);
  }
}

absl::Status AskEngine(Gateway* gateway, Deadline deadline,
                       rpc::MethodId method, const Message& request,
                       Message* response) {
  const MethodPayloads payloads = PayloadsOf(method);
  const std::unique_ptr<Message> question(request.New());
  question->CopyFrom(request);
  ClearRobotsName(question.get());
  flatbuffers::FlatBufferBuilder builder;
  const auto packed = Pack(*question, *TypeOf(payloads.request), &builder);
  PackedCall call(&builder, method, payloads.request, packed.Union());
  // As the client while the gateway is: the engine refuses some calls of
  // attendants beside a client.
  absl::StatusOr<RpcMessage> answer =
      gateway->slot.CallAsClient(&call, deadline);
  if (CodeOf(answer.status()) == ErrorCode::kClientClosed) {
    answer = gateway->link.Call(std::move(call), deadline);
  }
  if (!answer.ok()) return answer.status();
  const rpc::Envelope& envelope = answer->envelope();
  if (envelope.payload_type() != payloads.answer) {
    return MakeError(ErrorCode::kEngineFailed,
                     absl::StrCat("expected the engine's answer to ",
                                  rpc::EnumNameMethodId(method),
                                  ", found another kind of message"));
  }
  Unpack(*static_cast<const flatbuffers::Table*>(envelope.payload()),
         *TypeOf(payloads.answer), response);
  return absl::OkStatus();
}

}  // namespace

rpc::MethodId MethodOf(absl::string_view name) {
  // The name of the method, and of 0.1.84's RPC.
  if (name == "SetControl") return rpc::MethodId::SendControl;
  for (const rpc::MethodId method : rpc::EnumValuesMethodId()) {
    if (name == rpc::EnumNameMethodId(method)) return method;
  }
  return rpc::MethodId::NONE;
}

absl::Status Relay(Gateway* gateway, Deadline deadline, rpc::MethodId method,
                   const Message& request, Message* response) {
  const absl::Status status =
      AskEngine(gateway, deadline, method, request, response);
  if (status.ok() || method != rpc::MethodId::GetMujocoInfo) return status;
  auto* const info = static_cast<pb::GetMujocoInfoResponse*>(response);
  info->set_success(false);
  info->set_message(IsAway(status) ? NotReadyText(status)
                                   : std::string(status.message()));
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
