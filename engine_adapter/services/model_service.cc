#include "engine_adapter/services/model_service.h"

#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "engine_adapter/services/env_selection.h"
#include "engine_adapter/services/moment_watch.h"

namespace tandem {
namespace {

using Items = std::vector<rpc::PayloadUnion>;

std::vector<uint32_t> FirstNumbers(size_t count) {
  std::vector<uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0U);
  return numbers;
}

// `Request`: of GetFullState or StreamFullState.
template <typename Request>
rpc::GetFullStateResponseT StateOf(const MujocoModelPort& port, size_t joints,
                                   const SimulationPort& simulation,
                                   const Request& request) {
  auto state = std::make_unique<rpc::FullStateT>(port.State(request.env_id));
  rpc::GetFullStateResponseT response;
  const bool is_none = request.filter != nullptr &&
                       (request.filter->include_only_policy_claimed_joints ||
                        request.filter->filter_by_slot_id != 0);
  if (!is_none) {
    response.included_joint_indices = FirstNumbers(joints);
    response.included_actuator_indices = FirstNumbers(state->ctrl.size());
  }
  if (is_none || !request.include_qpos) state->qpos.clear();
  if (is_none || !request.include_qvel) state->qvel.clear();
  if (is_none || !request.include_ctrl) state->ctrl.clear();
  state->frame_number = simulation.frame_seq();
  response.success = true;
  response.state = std::move(state);
  return response;
}

}  // namespace

absl::StatusOr<rpc::GetModelInfoResponseT> ModelService::GetModelInfo(
    const rpc::GetModelInfoRequestT& /*request*/) const {
  rpc::GetModelInfoResponseT response = port_->Model();
  response.success = true;
  return response;
}

absl::StatusOr<rpc::GetFullStateResponseT> ModelService::GetFullState(
    const rpc::GetFullStateRequestT& request) const {
  TANDEM_RETURN_IF_ERROR(CheckEnv(request.env_id, num_envs_));
  return StateOf(*port_, port_->Model().njnt, *simulation_, request);
}

absl::StatusOr<RpcStream> ModelService::StreamFullState(
    const rpc::StreamFullStateRequestT& request) const {
  TANDEM_RETURN_IF_ERROR(CheckEnv(request.env_id, num_envs_));
  const auto watch = std::make_shared<MomentWatch>(simulation_);
  // std::function copies.
  const auto wanted = std::make_shared<rpc::StreamFullStateRequestT>(request);
  return RpcStream{.hz = static_cast<double>(request.target_fps),
                   .next =
                       [this, wanted, joints = port_->Model().njnt, watch] {
                         Items items;
                         if (watch->IsNew()) {
                           items.emplace_back().Set(
                               StateOf(*port_, joints, *simulation_, *wanted));
                         }
                         return absl::StatusOr<Items>(std::move(items));
                       },
                   .pass = [watch] { return size_t{watch->Pass()}; }};
}

absl::StatusOr<rpc::SetQposResponseT> ModelService::SetQpos(
    const rpc::SetQposRequestT& request) {
  TANDEM_RETURN_IF_ERROR(CheckEnv(request.env_id, num_envs_));
  const size_t nq = port_->Model().nq;
  if (request.bulk.size() > nq ||
      (request.bulk.empty() && request.indexed.empty())) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("bulk, indexed: expected one of the ", nq,
                     " positions at least, each once in bulk, found ",
                     request.bulk.size(), " in bulk and ",
                     request.indexed.size(), " by their index"));
  }
  std::map<uint32_t, float> positions;
  for (uint32_t i = 0; i < request.bulk.size(); ++i) {
    positions[i] = request.bulk[i];
  }
  for (const auto& entry : request.indexed) {
    if (entry->qpos_index >= nq) {
      return MakeError(ErrorCode::kInvalidArgument,
                       absl::StrCat("qpos_index: expected one below ", nq,
                                    ", found ", entry->qpos_index));
    }
    positions[entry->qpos_index] = entry->value;
  }
  for (const auto& [index, value] : positions) {
    if (std::isfinite(value)) continue;
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat("position ", index,
                                  ": expected a finite number, found ", value));
  }
  port_->SetPositions(request.env_id, positions);
  simulation_->NoteChange();
  rpc::SetQposResponseT response;
  response.success = true;
  response.values_written = static_cast<uint32_t>(positions.size());
  return response;
}

absl::StatusOr<rpc::GetActuatorGainsResponseT> ModelService::GetActuatorGains(
    const rpc::GetActuatorGainsRequestT& request) const {
  TANDEM_RETURN_IF_ERROR(CheckEnv(request.env_id, num_envs_));
  rpc::GetActuatorGainsResponseT response;
  response.success = true;
  for (rpc::ActuatorGainInfoT& gain : port_->Gains(request.env_id)) {
    response.actuators.push_back(
        std::make_unique<rpc::ActuatorGainInfoT>(std::move(gain)));
  }
  return response;
}

}  // namespace tandem
