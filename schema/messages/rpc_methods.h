// The methods of the services, with the payloads of each.
//
// Data flow: TANDEM_RPC_METHODS -> PayloadsOf -> code that packs calls and
// checks answers. Numbers are hazel_rpc.fbs's.
//
//   PayloadsOf(rpc::MethodId::GetEntity).answer;  // Payload::GetEntityResponse
//   IsStream(rpc::MethodId::StreamCamera);        // true

#ifndef TANDEM_SCHEMA_MESSAGES_RPC_METHODS_H_
#define TANDEM_SCHEMA_MESSAGES_RPC_METHODS_H_

#include "schema/messages/hazel_rpc_generated.h"

// X(method, payload of its request, payload of its answer or stream's items)
#define TANDEM_RPC_METHODS(X)                                                  \
  X(GetAgentSchema, GetAgentSchemaRequest, GetAgentSchemaResponse)             \
  X(ResetAgent, ResetAgentRequest, ResetAgentResponse)                         \
  X(GetJointState, GetJointStateRequest, GetJointStateResponse)                \
  X(GetMujocoInfo, GetMujocoInfoRequest, GetMujocoInfoResponse)                \
  X(SendControl, SendControlRequest, SendControlResponse)                      \
  X(StreamJointState, GetJointStateRequest, GetJointStateResponse)             \
  X(GetModelInfo, GetModelInfoRequest, GetModelInfoResponse)                   \
  X(GetFullState, GetFullStateRequest, GetFullStateResponse)                   \
  X(StreamFullState, StreamFullStateRequest, GetFullStateResponse)             \
  X(SetQpos, SetQposRequest, SetQposResponse)                                  \
  X(GetActuatorGains, GetActuatorGainsRequest, GetActuatorGainsResponse)       \
  X(GetTelemetrySchema, GetTelemetrySchemaRequest, GetTelemetrySchemaResponse) \
  X(StreamTelemetry, StreamTelemetryRequest, TelemetryFrame)                   \
  X(GetSceneInfo, GetSceneInfoRequest, GetSceneInfoResponse)                   \
  X(ListEntities, ListEntitiesRequest, ListEntitiesResponse)                   \
  X(GetEntity, GetEntityRequest, GetEntityResponse)                            \
  X(SetEntityTransform, SetEntityTransformRequest, SetEntityTransformResponse) \
  X(SetSimulationMode, SetSimulationModeRequest, SetSimulationModeResponse)    \
  X(GetSimulationMode, GetSimulationModeRequest, GetSimulationModeResponse)    \
  X(SetPaused, SetPausedRequest, SetPausedResponse)                            \
  X(SingleStep, SingleStepRequest, SingleStepResponse)                         \
  X(ListCameras, ListCamerasRequest, ListCamerasResponse)                      \
  X(GetCameraFrame, GetCameraFrameRequest, NamedImageFrame)                    \
  X(StreamCamera, StreamCameraRequest, ImageFrame)                             \
  X(GetViewportInfo, GetViewportInfoRequest, GetViewportInfoResponse)          \
  X(GetViewportFrame, GetViewportFrameRequest, NamedImageFrame)                \
  X(StreamViewport, StartViewportStreamRequest, ImageFrame)                    \
  X(Draw, DebugDrawRequest, DebugDrawResponse)                                 \
  X(CancelStream, CancelStreamRequest, CancelStreamResponse)                   \
  X(GetServices, GetServicesRequest, GetServicesResponse)                      \
  X(SetService, SetServiceRequest, SetServiceResponse)

namespace tandem {

struct MethodPayloads {
  rpc::Payload request = rpc::Payload::NONE;
  rpc::Payload answer = rpc::Payload::NONE;  // or a stream's item
};

// Returns {NONE, NONE} for an unknown method.
constexpr MethodPayloads PayloadsOf(rpc::MethodId method) {
  switch (method) {
#define TANDEM_PAYLOADS(method, request, answer) \
  case rpc::MethodId::method:                    \
    return {rpc::Payload::request, rpc::Payload::answer};
    TANDEM_RPC_METHODS(TANDEM_PAYLOADS)
#undef TANDEM_PAYLOADS
    case rpc::MethodId::NONE:
      break;
  }
  return {};
}

// Whether the method answers with a stream; false for an unknown method.
constexpr bool IsStream(rpc::MethodId method) {
  switch (method) {
    case rpc::MethodId::StreamFullState:
    case rpc::MethodId::StreamJointState:
    case rpc::MethodId::StreamTelemetry:
    case rpc::MethodId::StreamCamera:
    case rpc::MethodId::StreamViewport:
      return true;
    default:
      return false;
  }
}

}  // namespace tandem

#endif  // TANDEM_SCHEMA_MESSAGES_RPC_METHODS_H_
