#include "engine_adapter/gateway/rpc_table.h"

namespace tandem::gateway {

absl::Span<const RpcRow> AllRpcs() {
#define TANDEM_UNARY(rpc, request, response, door) \
  {TANDEM_SERVICE, #rpc, Door::door, false},
#define TANDEM_STREAM(rpc, request, response, door) \
  {TANDEM_SERVICE, #rpc, Door::door, true},
  // clang-format off
  static constexpr RpcRow kRows[] = {
#define TANDEM_SERVICE "AgentService"
      TANDEM_AGENT_RPCS(TANDEM_UNARY, TANDEM_STREAM)
#undef TANDEM_SERVICE
#define TANDEM_SERVICE "MujocoService"
      TANDEM_MUJOCO_RPCS(TANDEM_UNARY, TANDEM_STREAM)
#undef TANDEM_SERVICE
#define TANDEM_SERVICE "MujocoSceneService"
      TANDEM_MUJOCO_SCENE_RPCS(TANDEM_UNARY, TANDEM_STREAM)
#undef TANDEM_SERVICE
#define TANDEM_SERVICE "TelemetryService"
      TANDEM_TELEMETRY_RPCS(TANDEM_UNARY, TANDEM_STREAM)
#undef TANDEM_SERVICE
#define TANDEM_SERVICE "SceneService"
      TANDEM_SCENE_RPCS(TANDEM_UNARY, TANDEM_STREAM)
#undef TANDEM_SERVICE
#define TANDEM_SERVICE "CameraService"
      TANDEM_CAMERA_RPCS(TANDEM_UNARY, TANDEM_STREAM)
#undef TANDEM_SERVICE
#define TANDEM_SERVICE "ViewportService"
      TANDEM_VIEWPORT_RPCS(TANDEM_UNARY, TANDEM_STREAM)
#undef TANDEM_SERVICE
#define TANDEM_SERVICE "DebugService"
      TANDEM_DEBUG_RPCS(TANDEM_UNARY, TANDEM_STREAM)
#undef TANDEM_SERVICE
#define TANDEM_SERVICE "LidarService"
      TANDEM_LIDAR_RPCS(TANDEM_UNARY, TANDEM_STREAM)
#undef TANDEM_SERVICE
  };
  // clang-format on
#undef TANDEM_UNARY
#undef TANDEM_STREAM
  return kRows;
}

absl::string_view NameOf(Door door) {
  switch (door) {
    case Door::kEngine:
      return "engine";
    case Door::kStep:
      return "step";
    case Door::kGateway:
      return "gateway";
    case Door::kNone:
      return "none";
  }
  return "";
}

}  // namespace tandem::gateway
