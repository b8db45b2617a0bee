// The RPCs of package hazel.rpc, version 0.5.0 and three of 0.1.84: one row
// each.
//
// Data flow: rows -> the classes of the services (services.cc), the texts of
// refusals, `tandem-gateway --list_rpcs`, which tests read.
//
//   for (const RpcRow& row : AllRpcs()) Print(row.service, row.rpc);

#ifndef TANDEM_ENGINE_ADAPTER_GATEWAY_RPC_TABLE_H_
#define TANDEM_ENGINE_ADAPTER_GATEWAY_RPC_TABLE_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

// Each macro has the rows of a service: U(...) of an RPC with one response,
// S(...) of an RPC with a stream of responses.
// Arguments: (rpc, request, response, door).

#define TANDEM_AGENT_RPCS(U, S)                                                \
  U(GetAgentSchema, GetAgentSchemaRequest, GetAgentSchemaResponse, kEngine)    \
  U(ResetAgent, ResetAgentRequest, ResetAgentResponse, kStep)                  \
  U(Step, StepRequest, StepResponse, kStep)                                    \
  U(SetActionGroup, SetActionGroupRequest, SetActionGroupResponse, kStep)      \
  U(ReportProgress, ProgressReport, ProgressAck, kGateway)                     \
  U(GetCapabilityManifest, GetCapabilityManifestRequest,                       \
    GetCapabilityManifestResponse, kGateway)                                   \
  U(ValidateTaskContract, ValidateTaskContractRequest,                         \
    ValidateTaskContractResponse, kGateway)                                    \
  U(NegotiateTask, NegotiateTaskRequest, NegotiateTaskResponse, kGateway)      \
  U(ListRobotControllers, ListRobotControllersRequest,                         \
    ListRobotControllersResponse, kGateway)                                    \
  U(GetRobotController, GetRobotControllerRequest, GetRobotControllerResponse, \
    kNone)                                                                     \
  U(ListPolicyDescriptors, ListPolicyDescriptorsRequest,                       \
    ListPolicyDescriptorsResponse, kGateway)                                   \
  U(SetPolicyActive, SetPolicyActiveRequest, PolicyOperationAck, kNone)        \
  U(SetPolicyDescriptor, SetPolicyDescriptorRequest, PolicyOperationAck,       \
    kNone)                                                                     \
  U(SetPolicyDrivenJoints, SetPolicyDrivenJointsRequest, PolicyOperationAck,   \
    kNone)                                                                     \
  U(SetPolicyClampObservation, SetPolicyClampObservationRequest,               \
    PolicyOperationAck, kNone)                                                 \
  U(SetPolicyPriority, SetPolicyPriorityRequest, PolicyOperationAck, kNone)    \
  U(SetPolicyCommandFloat, SetPolicyCommandFloatRequest, PolicyOperationAck,   \
    kNone)                                                                     \
  U(SetPolicyCommandBool, SetPolicyCommandBoolRequest, PolicyOperationAck,     \
    kNone)                                                                     \
  U(SetPolicyGains, SetPolicyGainsRequest, PolicyOperationAck, kNone)          \
  U(ClearPolicyGains, ClearPolicyGainsRequest, PolicyOperationAck, kNone)      \
  U(GetPolicyCommandFloat, GetPolicyCommandFloatRequest,                       \
    PolicyCommandFloatValue, kNone)                                            \
  U(GetPolicyCommandBool, GetPolicyCommandBoolRequest, PolicyCommandBoolValue, \
    kNone)                                                                     \
  U(SetMotionGraphActive, SetMotionGraphActiveRequest, PolicyOperationAck,     \
    kNone)                                                                     \
  U(GetMotionGraphActive, GetMotionGraphActiveRequest,                         \
    GetMotionGraphActiveResponse, kNone)                                       \
  U(SetMotionGraphInput, SetMotionGraphInputRequest, PolicyOperationAck,       \
    kNone)                                                                     \
  U(GetMotionGraphInput, GetMotionGraphInputRequest,                           \
    GetMotionGraphInputResponse, kNone)                                        \
  U(FireMotionGraphTrigger, FireMotionGraphTriggerRequest, PolicyOperationAck, \
    kNone)                                                                     \
  U(GetPolicyBasePose, GetPolicyBasePoseRequest, PolicyBasePose, kNone)        \
  U(GetPolicyLastAction, GetPolicyLastActionRequest, PolicyLastAction, kNone)  \
  S(StreamPolicySlotState, StreamPolicySlotStateRequest, PolicySlotSummary,    \
    kNone)                                                                     \
  S(StreamRobotController, StreamRobotControllerRequest,                       \
    RobotControllerSummary, kNone)                                             \
  U(GetObservation, GetObservationRequest, GetObservationResponse, kGateway)   \
  S(StreamAgent, StreamAgentRequest, AgentFrame, kGateway)

#define TANDEM_MUJOCO_RPCS(U, S)                                            \
  U(GetJointState, GetJointStateRequest, GetJointStateResponse, kEngine)    \
  U(GetMujocoInfo, GetMujocoInfoRequest, GetMujocoInfoResponse, kEngine)    \
  S(StreamJointState, GetJointStateRequest, GetJointStateResponse, kEngine) \
  U(SendControl, SendControlRequest, SendControlResponse, kGateway)

#define TANDEM_MUJOCO_SCENE_RPCS(U, S)                                      \
  U(GetModelInfo, GetModelInfoRequest, GetModelInfoResponse, kEngine)       \
  U(GetFullState, GetFullStateRequest, GetFullStateResponse, kEngine)       \
  S(StreamFullState, StreamFullStateRequest, GetFullStateResponse, kEngine) \
  U(SetControl, SetControlRequest, SetControlResponse, kEngine)             \
  U(SetQpos, SetQposRequest, SetQposResponse, kEngine)                      \
  U(GetActuatorGains, GetActuatorGainsRequest, GetActuatorGainsResponse,    \
    kEngine)                                                                \
  U(ResetScene, ResetSceneRequest, ResetSceneResponse, kStep)

#define TANDEM_TELEMETRY_RPCS(U, S)                                            \
  U(GetTelemetrySchema, GetTelemetrySchemaRequest, GetTelemetrySchemaResponse, \
    kEngine)                                                                   \
  S(StreamTelemetry, StreamTelemetryRequest, TelemetryFrame, kEngine)

#define TANDEM_SCENE_RPCS(U, S)                                                \
  U(GetSceneInfo, GetSceneInfoRequest, GetSceneInfoResponse, kEngine)          \
  U(ListEntities, ListEntitiesRequest, ListEntitiesResponse, kEngine)          \
  U(GetEntity, GetEntityRequest, GetEntityResponse, kEngine)                   \
  U(SetEntityTransform, SetEntityTransformRequest, SetEntityTransformResponse, \
    kEngine)                                                                   \
  U(SetSimulationMode, SetSimulationModeRequest, SetSimulationModeResponse,    \
    kEngine)                                                                   \
  U(GetSimulationMode, GetSimulationModeRequest, GetSimulationModeResponse,    \
    kEngine)                                                                   \
  U(EnterPlayMode, EnterPlayModeRequest, EnterPlayModeResponse, kGateway)      \
  U(ExitPlayMode, ExitPlayModeRequest, ExitPlayModeResponse, kGateway)

#define TANDEM_CAMERA_RPCS(U, S)                                             \
  U(ListCameras, ListCamerasRequest, ListCamerasResponse, kEngine)           \
  S(StreamCamera, StreamCameraRequest, ImageFrame, kEngine)                  \
  U(GetCameraConfig, GetCameraConfigRequest, CameraConfigResponse, kGateway) \
  U(SetCameraConfig, SetCameraConfigRequest, CameraConfigAck, kGateway)

#define TANDEM_VIEWPORT_RPCS(U, S)                                             \
  U(GetViewportInfo, GetViewportInfoRequest, GetViewportInfoResponse, kEngine) \
  S(StreamViewport, StartViewportStreamRequest, ImageFrame, kEngine)

#define TANDEM_DEBUG_RPCS(U, S) \
  U(Draw, DebugDrawRequest, DebugDrawResponse, kEngine)

#define TANDEM_LIDAR_RPCS(U, S)                                             \
  U(SetLidarLive, SetLidarLiveRequest, LidarAck, kNone)                     \
  U(SetLidarConfig, SetLidarConfigRequest, LidarAck, kNone)                 \
  U(GetLidarConfig, LidarSensorRequest, LidarConfigResponse, kNone)         \
  U(SetLidarReturnParams, SetLidarReturnParamsRequest, LidarAck, kNone)     \
  U(GetLidarReturnParams, GetLidarReturnParamsRequest,                      \
    LidarReturnParamsResponse, kNone)                                       \
  U(SetLidarPreset, SetLidarPresetRequest, LidarAck, kNone)                 \
  U(SetLidarSecondaryCapture, SetLidarSecondaryCaptureRequest, LidarAck,    \
    kNone)                                                                  \
  U(BakeLidarMaterial, BakeLidarMaterialRequest, LidarAck, kNone)           \
  U(GetLidarBakeStatus, LidarSensorRequest, LidarBakeStatusResponse, kNone) \
  U(LoadLidarBake, LoadLidarBakeRequest, LidarAck, kNone)                   \
  U(SaveLidarBake, SaveLidarBakeRequest, LidarAck, kNone)                   \
  U(GetLidarScan, GetLidarScanRequest, LidarScanResponse, kNone)            \
  U(GetLidarBeamCount, LidarSensorRequest, LidarBeamCountResponse, kNone)   \
  U(GetLidarBeamAngles, LidarSensorRequest, LidarBeamAnglesResponse, kNone)

namespace tandem::gateway {

// What answers an RPC.
enum class Door : uint8_t {
  kEngine,   // one call of a method of hazel_rpc.fbs
  kStep,     // an exchange, or a call in the order of the exchanges
  kGateway,  // the gateway itself
  kNone,     // UNIMPLEMENTED: engines of Tandem have nothing like it
};

struct RpcRow {
  absl::string_view service;  // without its package
  absl::string_view rpc;
  Door door;
  bool streams;  // its responses
};

// Of all services.
absl::Span<const RpcRow> AllRpcs();

// Returns "engine", "step", "gateway" or "none".
absl::string_view NameOf(Door door);

}  // namespace tandem::gateway

#endif  // TANDEM_ENGINE_ADAPTER_GATEWAY_RPC_TABLE_H_
