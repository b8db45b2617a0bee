#include "engine_adapter/services/telemetry_service.h"

#include <chrono>
#include <memory>
#include <utility>

#include "engine_adapter/services/env_selection.h"
#include "engine_adapter/services/moment_watch.h"

namespace tandem {
namespace {

using Items = std::vector<rpc::PayloadUnion>;

uint64_t WallClockMs() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

}  // namespace

void TelemetryService::Register(RpcDispatcher* dispatcher) {
  dispatcher->Serve<rpc::GetTelemetrySchemaRequestT,
                    rpc::GetTelemetrySchemaResponseT>(
      rpc::MethodId::GetTelemetrySchema,
      [this](const auto& request) { return GetTelemetrySchema(request); });
  dispatcher->ServeStream<rpc::StreamTelemetryRequestT>(
      rpc::MethodId::StreamTelemetry,
      [this](const auto& request) { return StreamTelemetry(request); });
}

absl::StatusOr<rpc::GetTelemetrySchemaResponseT>
TelemetryService::GetTelemetrySchema(
    const rpc::GetTelemetrySchemaRequestT& /*request*/) const {
  const MujocoPort::Info& info = port_->info();
  auto schema = std::make_unique<rpc::TelemetrySchemaT>();
  schema->nq = info.nq;
  schema->nu = static_cast<uint32_t>(info.actuators.size());
  schema->observation_names = info.position_names;
  for (const MujocoPort::Actuator& actuator : info.actuators) {
    schema->action_names.push_back(actuator.name);
  }
  rpc::GetTelemetrySchemaResponseT response;
  response.schema = std::move(schema);
  return response;
}

absl::StatusOr<RpcStream> TelemetryService::StreamTelemetry(
    const rpc::StreamTelemetryRequestT& request) const {
  absl::StatusOr<std::vector<uint32_t>> envs =
      SelectEnvs(request.env_ids, /*name=*/"", num_envs_);
  if (!envs.ok()) return envs.status();
  return RpcStream{.hz = static_cast<double>(request.target_fps),
                   .next = [this, envs = *std::move(envs), number = uint32_t{0},
                            watch = MomentWatch(simulation_)]() mutable {
                     return absl::StatusOr<Items>(
                         watch.IsNew() ? FramesOf(envs, ++number) : Items());
                   }};
}

std::vector<rpc::PayloadUnion> TelemetryService::FramesOf(
    const std::vector<uint32_t>& envs, uint32_t number) const {
  Items items;
  items.reserve(envs.size());
  const uint64_t now_ms = WallClockMs();
  for (const uint32_t env : envs) {
    rpc::TelemetryFrameT frame;
    frame.timestamp_ms = now_ms;
    frame.frame_number = number;
    frame.observation_qpos = port_->Joints(env).positions;
    frame.action_ctrl = port_->Controls(env);
    frame.env_id = env;
    frame.frame_seq = simulation_->frame_seq();
    items.emplace_back().Set(std::move(frame));
  }
  return items;
}

}  // namespace tandem
