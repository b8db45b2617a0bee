// The RPCs of package hazel.rpc that the gateway serves, of version 0.5.0 and
// three of 0.1.84: one row each. Engines of Tandem have nothing like the
// others.
//
// Data flow: rows -> the services (services.cc), `tandem-gateway --list_rpcs`,
// which tests read.
//
//   for (const RpcRow& row : AllRpcs()) Print(row.service, row.rpc);

#ifndef TANDEM_GATEWAY_RPC_TABLE_H_
#define TANDEM_GATEWAY_RPC_TABLE_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

// U(...): an RPC with one response. S(...): one with a stream of responses.
// Arguments: (service, rpc, request, response, door). The rows of a service
// follow each other.
#define TANDEM_RPCS(U, S)                                                      \
  U(AgentService, GetAgentSchema, GetAgentSchemaRequest,                       \
    GetAgentSchemaResponse, kEngine)                                           \
  U(AgentService, ResetAgent, ResetAgentRequest, ResetAgentResponse, kStep)    \
  U(AgentService, Step, StepRequest, StepResponse, kStep)                      \
  U(AgentService, SetActionGroup, SetActionGroupRequest,                       \
    SetActionGroupResponse, kStep)                                             \
  U(AgentService, ReportProgress, ProgressReport, ProgressAck, kGateway)       \
  U(AgentService, GetCapabilityManifest, GetCapabilityManifestRequest,         \
    GetCapabilityManifestResponse, kGateway)                                   \
  U(AgentService, ValidateTaskContract, ValidateTaskContractRequest,           \
    ValidateTaskContractResponse, kGateway)                                    \
  U(AgentService, NegotiateTask, NegotiateTaskRequest, NegotiateTaskResponse,  \
    kGateway)                                                                  \
  U(AgentService, ListRobotControllers, ListRobotControllersRequest,           \
    ListRobotControllersResponse, kGateway)                                    \
  U(AgentService, ListPolicyDescriptors, ListPolicyDescriptorsRequest,         \
    ListPolicyDescriptorsResponse, kGateway)                                   \
  U(AgentService, GetObservation, GetObservationRequest,                       \
    GetObservationResponse, kGateway)                                          \
  S(AgentService, StreamAgent, StreamAgentRequest, AgentFrame, kGateway)       \
  U(MujocoService, GetJointState, GetJointStateRequest, GetJointStateResponse, \
    kEngine)                                                                   \
  U(MujocoService, GetMujocoInfo, GetMujocoInfoRequest, GetMujocoInfoResponse, \
    kEngine)                                                                   \
  S(MujocoService, StreamJointState, GetJointStateRequest,                     \
    GetJointStateResponse, kEngine)                                            \
  U(MujocoService, SendControl, SendControlRequest, SendControlResponse,       \
    kGateway)                                                                  \
  U(MujocoSceneService, GetModelInfo, GetModelInfoRequest,                     \
    GetModelInfoResponse, kEngine)                                             \
  U(MujocoSceneService, GetFullState, GetFullStateRequest,                     \
    GetFullStateResponse, kEngine)                                             \
  S(MujocoSceneService, StreamFullState, StreamFullStateRequest,               \
    GetFullStateResponse, kEngine)                                             \
  U(MujocoSceneService, SetControl, SetControlRequest, SetControlResponse,     \
    kEngine)                                                                   \
  U(MujocoSceneService, SetQpos, SetQposRequest, SetQposResponse, kEngine)     \
  U(MujocoSceneService, GetActuatorGains, GetActuatorGainsRequest,             \
    GetActuatorGainsResponse, kEngine)                                         \
  U(MujocoSceneService, ResetScene, ResetSceneRequest, ResetSceneResponse,     \
    kStep)                                                                     \
  U(TelemetryService, GetTelemetrySchema, GetTelemetrySchemaRequest,           \
    GetTelemetrySchemaResponse, kEngine)                                       \
  S(TelemetryService, StreamTelemetry, StreamTelemetryRequest, TelemetryFrame, \
    kEngine)                                                                   \
  U(SceneService, GetSceneInfo, GetSceneInfoRequest, GetSceneInfoResponse,     \
    kEngine)                                                                   \
  U(SceneService, ListEntities, ListEntitiesRequest, ListEntitiesResponse,     \
    kEngine)                                                                   \
  U(SceneService, GetEntity, GetEntityRequest, GetEntityResponse, kEngine)     \
  U(SceneService, SetEntityTransform, SetEntityTransformRequest,               \
    SetEntityTransformResponse, kEngine)                                       \
  U(SceneService, SetSimulationMode, SetSimulationModeRequest,                 \
    SetSimulationModeResponse, kEngine)                                        \
  U(SceneService, GetSimulationMode, GetSimulationModeRequest,                 \
    GetSimulationModeResponse, kEngine)                                        \
  U(SceneService, EnterPlayMode, EnterPlayModeRequest, EnterPlayModeResponse,  \
    kGateway)                                                                  \
  U(SceneService, ExitPlayMode, ExitPlayModeRequest, ExitPlayModeResponse,     \
    kGateway)                                                                  \
  U(CameraService, ListCameras, ListCamerasRequest, ListCamerasResponse,       \
    kEngine)                                                                   \
  S(CameraService, StreamCamera, StreamCameraRequest, ImageFrame, kEngine)     \
  U(CameraService, GetCameraConfig, GetCameraConfigRequest,                    \
    CameraConfigResponse, kGateway)                                            \
  U(CameraService, SetCameraConfig, SetCameraConfigRequest, CameraConfigAck,   \
    kGateway)                                                                  \
  U(ViewportService, GetViewportInfo, GetViewportInfoRequest,                  \
    GetViewportInfoResponse, kEngine)                                          \
  S(ViewportService, StreamViewport, StartViewportStreamRequest, ImageFrame,   \
    kEngine)                                                                   \
  U(DebugService, Draw, DebugDrawRequest, DebugDrawResponse, kEngine)

namespace tandem::gateway {

// What answers an RPC.
enum class Door : uint8_t {
  kEngine,   // one call of a method of hazel_rpc.fbs
  kStep,     // an exchange, or a call in the order of the exchanges
  kGateway,  // the gateway itself
};

struct RpcRow {
  absl::string_view service;  // without its package
  absl::string_view rpc;
  Door door;
  bool streams;  // its responses
};

// All rows.
absl::Span<const RpcRow> AllRpcs();

// Returns "engine", "step" or "gateway".
absl::string_view NameOf(Door door);

}  // namespace tandem::gateway

#endif  // TANDEM_GATEWAY_RPC_TABLE_H_
