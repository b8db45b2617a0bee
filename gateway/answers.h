// The answers to calls that need no exchange.
//
// Data flow: request -> Relay, or a function of its own -> response.

#pragma once

#include <google/protobuf/message.h>

#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "gateway/gateway.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "schema/protos/hazel/agent.pb.h"
#include "schema/protos/hazel/camera.pb.h"
#include "schema/protos/hazel/mujoco.pb.h"
#include "schema/protos/hazel/scene.pb.h"

namespace tandem::gateway {

// A program's call that needs the engine.
struct EngineCall {
  Gateway* gateway;
  Deadline deadline;
  std::string peer;  // the program's connection
};

// Calls the engine's method by CallOf and TakeAnswer, and blocks until the
// answer. Errors: those of EngineLink::Call and TakeAnswer. None for
// GetMujocoInfo, whose errors programs take for a dead server: they are
// success=false.
absl::Status Relay(const EngineCall& call, rpc::MethodId method,
                   const google::protobuf::Message& request,
                   google::protobuf::Message* response);

// Task contracts (task_contract.h): the terms are those of the engine's task.
// Both functions block. Errors: as Relay.
absl::Status Answer(const EngineCall& call,
                    const hazel::rpc::GetCapabilityManifestRequest& request,
                    hazel::rpc::GetCapabilityManifestResponse* response);
absl::Status Answer(const EngineCall& call,
                    const hazel::rpc::ValidateTaskContractRequest& request,
                    hazel::rpc::ValidateTaskContractResponse* response);
// success=false: the contract is not valid. CANCELLED: the connection has
// ended.
absl::Status Answer(const EngineCall& call,
                    const hazel::rpc::NegotiateTaskRequest& request,
                    hazel::rpc::NegotiateTaskResponse* response);

// Sets the controls of actuators 0, 1 and so on, as SetControl. Blocks. Errors:
// as Relay.
absl::Status Answer(const EngineCall& call,
                    const hazel::rpc::SendControlRequest& request,
                    hazel::rpc::SendControlResponse* response);

// The parts that the request names: each by a call of its own. success=false:
// the first part that is not to be had; the message says why. The agent's frame
// is that of the gateway's last step. Blocks.
absl::Status Answer(const EngineCall& call,
                    const hazel::rpc::GetObservationRequest& request,
                    hazel::rpc::GetObservationResponse* response);

// The answers of the gateway alone. None of them blocks.

// Accepts each report; nothing shows it.
absl::Status Answer(const hazel::rpc::ProgressReport& request,
                    hazel::rpc::ProgressAck* response);
// Engines of Tandem have no policies: the lists are empty.
absl::Status Answer(const hazel::rpc::ListRobotControllersRequest& request,
                    hazel::rpc::ListRobotControllersResponse* response);
absl::Status Answer(const hazel::rpc::ListPolicyDescriptorsRequest& request,
                    hazel::rpc::ListPolicyDescriptorsResponse* response);
// As for other engines without an editor: success, without an effect.
absl::Status Answer(const hazel::rpc::EnterPlayModeRequest& request,
                    hazel::rpc::EnterPlayModeResponse* response);
absl::Status Answer(const hazel::rpc::ExitPlayModeRequest& request,
                    hazel::rpc::ExitPlayModeResponse* response);
// Cameras have no configuration: not found, not set.
absl::Status Answer(const hazel::rpc::GetCameraConfigRequest& request,
                    hazel::rpc::CameraConfigResponse* response);
absl::Status Answer(const hazel::rpc::SetCameraConfigRequest& request,
                    hazel::rpc::CameraConfigAck* response);

}  // namespace tandem::gateway
