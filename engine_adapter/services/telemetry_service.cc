#include "engine_adapter/services/telemetry_service.h"

#include <memory>
#include <utility>

#include "engine_adapter/services/env_selection.h"
#include "engine_adapter/services/moment_watch.h"
#include "transport/base/clock.h"

namespace tandem {
namespace {

using Items = std::vector<rpc::PayloadUnion>;

}  // namespace

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
  struct State {
    std::vector<uint32_t> envs;
    MomentWatch watch;
    uint32_t number = 0;  // of the last moment, lost or not
  };
  const auto state = std::make_shared<State>(
      State{.envs = *std::move(envs), .watch = MomentWatch(simulation_)});
  return RpcStream{.hz = static_cast<double>(request.target_fps),
                   .next =
                       [this, state] {
                         return absl::StatusOr<Items>(
                             state->watch.IsNew()
                                 ? FramesOf(state->envs, ++state->number)
                                 : Items());
                       },
                   .pass =
                       [state] {
                         if (!state->watch.Pass()) return size_t{0};
                         ++state->number;
                         return state->envs.size();
                       }};
}

std::vector<rpc::PayloadUnion> TelemetryService::FramesOf(
    const std::vector<uint32_t>& envs, uint32_t number) const {
  Items items;
  items.reserve(envs.size());
  const uint64_t now_ms = UnixMillis();
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
