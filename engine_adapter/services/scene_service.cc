#include "engine_adapter/services/scene_service.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/error.h"
#include "engine_adapter/services/env_selection.h"

namespace tandem {
namespace {

constexpr float kLeastRealtimeFactor = 0.1F;
constexpr float kMostRealtimeFactor = 10;

}  // namespace

absl::StatusOr<rpc::GetSceneInfoResponseT> SceneService::GetSceneInfo(
    const rpc::GetSceneInfoRequestT& request) const {
  TANDEM_RETURN_IF_ERROR(Check(request.env_id));
  rpc::GetSceneInfoResponseT response;
  response.scene_name = port_->scene_name();
  response.scene_path = port_->scene_path();
  response.entity_count = port_->entity_count();
  return response;
}

absl::StatusOr<rpc::ListEntitiesResponseT> SceneService::ListEntities(
    const rpc::ListEntitiesRequestT& request) const {
  TANDEM_RETURN_IF_ERROR(Check(request.env_id));
  rpc::ListEntitiesResponseT response;
  for (rpc::EntityInfoT& entity : port_->Entities(
           request.env_id, {.transforms = request.include_transforms,
                           .components = request.include_components})) {
    response.entities.push_back(
        std::make_unique<rpc::EntityInfoT>(std::move(entity)));
  }
  return response;
}

absl::StatusOr<rpc::GetEntityResponseT> SceneService::GetEntity(
    const rpc::GetEntityRequestT& request) const {
  TANDEM_RETURN_IF_ERROR(Check(request.env_id));
  rpc::GetEntityResponseT response;
  const std::optional<uint64_t> id =
      request.name.empty() ? request.id : port_->IdOf(request.name);
  if (!id) return response;
  std::optional<rpc::EntityInfoT> entity = port_->Entity(request.env_id, *id);
  response.found = entity.has_value();
  if (entity) {
    response.entity = std::make_unique<rpc::EntityInfoT>(*std::move(entity));
  }
  return response;
}

absl::StatusOr<rpc::SetEntityTransformResponseT>
SceneService::SetEntityTransform(
    const rpc::SetEntityTransformRequestT& request) {
  TANDEM_RETURN_IF_ERROR(Check(request.env_id));
  if (request.id == 0 || request.id > port_->entity_count()) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("id: expected 1 to ", port_->entity_count(), ", found ",
                     request.id, "; ListEntities says which is which"));
  }
  const rpc::TransformT* const to = request.transform.get();
  if (to == nullptr || (to->position == nullptr && to->rotation == nullptr &&
                        to->scale == nullptr)) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "transform: expected a position, a rotation or a scale, "
                     "found none");
  }
  TANDEM_RETURN_IF_ERROR(port_->SetTransform(request.env_id, request.id, *to));
  simulation_->NoteChange();
  rpc::SetEntityTransformResponseT response;
  response.success = true;
  return response;
}

absl::StatusOr<rpc::SetSimulationModeResponseT> SceneService::SetSimulationMode(
    const rpc::SetSimulationModeRequestT& request) {
  if (request.mode > rpc::SimulationMode::MAX) {
    const auto name = [](std::string* out, rpc::SimulationMode mode) {
      absl::StrAppend(out, static_cast<int>(mode), " (",
                      rpc::EnumNameSimulationMode(mode), ")");
    };
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("mode: expected one of ",
                     absl::StrJoin(rpc::EnumValuesSimulationMode(), ", ", name),
                     "; found ", static_cast<int>(request.mode)));
  }
  // Written so that NaN is refused.
  if (request.mode == rpc::SimulationMode::REALTIME &&
      !(request.realtime_factor >= kLeastRealtimeFactor &&
        request.realtime_factor <= kMostRealtimeFactor)) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("realtime_factor: expected ", kLeastRealtimeFactor, " to ",
                     kMostRealtimeFactor, ", found ", request.realtime_factor));
  }
  TANDEM_RETURN_IF_ERROR(
      simulation_->SetMode(request.mode, double{request.realtime_factor}));
  rpc::SetSimulationModeResponseT response;
  response.success = true;
  response.current_mode = simulation_->mode();
  response.realtime_factor = static_cast<float>(simulation_->realtime_factor());
  return response;
}

absl::StatusOr<rpc::GetSimulationModeResponseT> SceneService::GetSimulationMode(
    const rpc::GetSimulationModeRequestT& /*request*/) const {
  rpc::GetSimulationModeResponseT response;
  response.mode = simulation_->mode();
  response.paused = simulation_->paused();
  response.realtime_factor = static_cast<float>(simulation_->realtime_factor());
  return response;
}

absl::StatusOr<rpc::SetPausedResponseT> SceneService::SetPaused(
    const rpc::SetPausedRequestT& request) {
  simulation_->SetPaused(request.paused);
  rpc::SetPausedResponseT response;
  response.success = true;
  response.paused = simulation_->paused();
  return response;
}

void SceneService::SingleStep(const rpc::SingleStepRequestT& request,
                              RpcAnswer<rpc::SingleStepResponseT> answer) {
  if (request.steps == 0) {
    return answer(MakeError(ErrorCode::kInvalidArgument,
                            "steps: expected 1 or more, found 0"));
  }
  const auto done =
      [answer, wanted = request.steps](const absl::StatusOr<uint32_t>& steps) {
        if (!steps.ok()) return answer(steps.status());
        rpc::SingleStepResponseT response;
        response.success = true;
        response.steps = *steps;
        if (*steps < wanted) {
          response.message = absl::StrCat("paused again or resumed after ",
                                          *steps, " of ", wanted, " steps");
        }
        answer(std::move(response));
      };
  absl::Status status = simulation_->SingleStep(request.steps, done);
  if (!status.ok()) answer(std::move(status));
}

absl::Status SceneService::Check(uint32_t env) const {
  if (port_ == nullptr) {
    return MakeError(ErrorCode::kUnsupported, "this engine has no entities");
  }
  return CheckEnv(env, num_envs_);
}

}  // namespace tandem
