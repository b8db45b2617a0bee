#include "engine_adapter/services/mujoco_service.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/quoted.h"
#include "engine_adapter/services/env_selection.h"
#include "engine_adapter/services/moment_watch.h"

namespace tandem {
namespace {

using Items = std::vector<rpc::PayloadUnion>;

}  // namespace

absl::StatusOr<rpc::GetJointStateResponseT> MujocoService::GetJointState(
    const rpc::GetJointStateRequestT& request) const {
  TANDEM_ASSIGN_OR_RETURN(
      const std::vector<uint32_t> envs,
      SelectEnvs(request.env_ids, request.robot_name, num_envs_));
  return JointsOf(envs, /*list=*/!request.env_ids.empty());
}

absl::StatusOr<rpc::GetMujocoInfoResponseT> MujocoService::GetMujocoInfo(
    const rpc::GetMujocoInfoRequestT& request) const {
  TANDEM_ASSIGN_OR_RETURN(
      const std::vector<uint32_t> envs,
      SelectEnvs(request.env_ids, request.robot_name, num_envs_));
  const MujocoPort::Info& info = port_->info();
  rpc::GetMujocoInfoResponseT response;
  response.success = true;
  response.nq = info.nq;
  response.nv = info.nv;
  response.nu = static_cast<uint32_t>(info.actuators.size());
  response.joint_names = info.joint_names;
  for (const MujocoPort::Actuator& actuator : info.actuators) {
    response.actuator_names.push_back(actuator.name);
  }
  return response;
}

void MujocoService::SendControl(const rpc::SendControlRequestT& request,
                                RpcAnswer<rpc::SendControlResponseT> answer) {
  absl::StatusOr<rpc::SendControlResponseT> response = Write(request);
  if (!response.ok() || !request.wait_for_next_step) {
    return answer(std::move(response));
  }
  ForgetCancelled();
  waiting_.push_back({.steps = simulation_->steps(),
                      .response = *std::move(response),
                      .answer = std::move(answer)});
}

absl::StatusOr<RpcStream> MujocoService::StreamJointState(
    const rpc::GetJointStateRequestT& request) const {
  TANDEM_ASSIGN_OR_RETURN(
      std::vector<uint32_t> envs,
      SelectEnvs(request.env_ids, request.robot_name, num_envs_));
  const auto watch = std::make_shared<MomentWatch>(simulation_);
  return RpcStream{.hz = static_cast<double>(request.target_fps),
                   .next =
                       [this, envs = std::move(envs),
                        list = !request.env_ids.empty(), watch] {
                         Items items;
                         if (watch->IsNew()) {
                           items.emplace_back().Set(JointsOf(envs, list));
                         }
                         return absl::StatusOr<Items>(std::move(items));
                       },
                   .pass = [watch] { return size_t{watch->Pass()}; }};
}

void MujocoService::ForgetCancelled() {
  std::erase_if(waiting_, [](const Waiting& each) {
    return each.answer.wanted().expired();
  });
}

void MujocoService::AnswerWaiting() {
  if (waiting_.empty()) return;
  const uint64_t steps = simulation_->steps();
  const auto still = std::ranges::find_if(
      waiting_, [&](const Waiting& each) { return each.steps >= steps; });
  // An answer may cause another SendControl.
  std::vector<Waiting> done(std::make_move_iterator(waiting_.begin()),
                            std::make_move_iterator(still));
  waiting_.erase(waiting_.begin(), still);
  for (Waiting& each : done) each.answer(std::move(each.response));
}

rpc::GetJointStateResponseT MujocoService::JointsOf(
    const std::vector<uint32_t>& envs, bool list) const {
  rpc::GetJointStateResponseT response;
  response.success = true;
  response.state =
      std::make_unique<rpc::JointStateT>(port_->Joints(envs.front()));
  if (!list) return response;
  for (const uint32_t env : envs) {
    response.states.push_back(
        std::make_unique<rpc::JointStateT>(port_->Joints(env)));
  }
  return response;
}

absl::StatusOr<uint32_t> MujocoService::ActuatorNamed(
    const std::string& name) const {
  const std::vector<MujocoPort::Actuator>& actuators = port_->info().actuators;
  const auto found =
      std::ranges::find(actuators, name, &MujocoPort::Actuator::name);
  if (found != actuators.end() && !name.empty()) {
    return static_cast<uint32_t>(found - actuators.begin());
  }
  std::vector<std::string> names;
  for (const MujocoPort::Actuator& actuator : actuators) {
    if (!actuator.name.empty()) names.push_back(actuator.name);
  }
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat("actuator_name: expected ",
                   names.empty()
                       ? "none, since no actuator of this model has a name: "
                         "use indexed or bulk"
                       : absl::StrCat("one of ", absl::StrJoin(names, ", ")),
                   "; found ", Quoted(name)));
}

absl::StatusOr<MujocoService::Controls> MujocoService::ControlsOf(
    const rpc::SendControlRequestT& request) const {
  const std::vector<MujocoPort::Actuator>& actuators = port_->info().actuators;
  if (request.bulk.size() > actuators.size()) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("bulk: expected at most ", actuators.size(),
                     " controls, one for each actuator, found ",
                     request.bulk.size(), "; GetMujocoInfo names them"));
  }
  if (request.bulk.empty() && request.indexed.empty() &&
      request.named.empty()) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("controls: expected one at least, of the model's ",
                     actuators.size(),
                     " actuators, found none; give them in bulk, by index or "
                     "by name"));
  }
  Controls controls;
  for (uint32_t i = 0; i < request.bulk.size(); ++i) {
    controls[i] = request.bulk[i];
  }
  for (const auto& entry : request.indexed) {
    if (entry->actuator_index >= actuators.size()) {
      return MakeError(
          ErrorCode::kInvalidArgument,
          absl::StrCat("actuator_index: expected one below ", actuators.size(),
                       ", found ", entry->actuator_index));
    }
    controls[entry->actuator_index] = entry->value;
  }
  for (const auto& entry : request.named) {
    TANDEM_ASSIGN_OR_RETURN(const uint32_t actuator,
                            ActuatorNamed(entry->actuator_name));
    controls[actuator] = entry->value;
  }
  for (auto& [actuator, value] : controls) {
    if (!std::isfinite(value)) {
      return MakeError(
          ErrorCode::kInvalidArgument,
          absl::StrCat("control of actuator ", actuator,
                       ": expected a finite number, found ", value));
    }
    if (request.skip_range_clamp) continue;
    value =
        std::clamp(value, actuators[actuator].low, actuators[actuator].high);
  }
  return controls;
}

absl::StatusOr<rpc::SendControlResponseT> MujocoService::Write(
    const rpc::SendControlRequestT& request) {
  TANDEM_ASSIGN_OR_RETURN(
      const std::vector<uint32_t> envs,
      SelectEnvs(request.env_ids, request.robot_name, num_envs_));
  TANDEM_ASSIGN_OR_RETURN(const Controls controls, ControlsOf(request));
  simulation_->NoteChange();  // SetControl may fail behind the first ones
  for (const uint32_t env : envs) {
    for (const auto& [actuator, value] : controls) {
      port_->SetControl(env, actuator, value);
    }
  }
  rpc::SendControlResponseT response;
  response.success = true;
  response.actuators_written = static_cast<uint32_t>(controls.size());
  return response;
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
  TANDEM_ASSIGN_OR_RETURN(std::vector<uint32_t> envs,
                          SelectEnvs(request.env_ids, /*name=*/"", num_envs_));
  struct State {
    std::vector<uint32_t> envs;
    MomentWatch watch;
    uint32_t number = 0;  // of the last moment, lost ones included
  };
  const auto state = std::make_shared<State>(
      State{.envs = std::move(envs), .watch = MomentWatch(simulation_)});
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
