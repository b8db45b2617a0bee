// States of MujocoEnvironment.
#include <mujoco/mujoco.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "engine_adapter/core/state_bytes.h"
#include "engine_adapter/mujoco/environment/mujoco_environment.h"
#include "engine_adapter/mujoco/model/model_changes.h"
#include "engine_adapter/mujoco/model/robot_body.h"
#include "engine_adapter/mujoco/randomization/model_parts.h"

namespace tandem {

// A state that was read and checked.
struct MujocoEnvironment::Saved {
  std::vector<mjtNum> physics;
  std::vector<mjtNum> read_before_step;
  std::vector<float> action;
  std::vector<std::optional<float>> set_controls;
  bool has_own_model = false;
  bool is_model_changed = false;
  ModelChanges changes;
  std::optional<Randomization> randomization;
  std::optional<Randomization> next_randomization;
};

namespace {

size_t StateSize(const mjModel& model) {
  return static_cast<size_t>(mj_stateSize(&model, mjSTATE_INTEGRATION));
}

// The cursors of MuJoCo's history buffers, the second number of each, are
// indices. Time, positions, velocities and activations precede the buffers.
bool CursorsFit(const mjModel& model, std::span<const mjtNum> physics) {
  const std::span<const mjtNum> history =
      physics.subspan(static_cast<size_t>(mj_stateSize(
          &model, mjSTATE_TIME | mjSTATE_QPOS | mjSTATE_QVEL | mjSTATE_ACT)));
  const auto fit = [&](const int* addresses, const int* samples,
                       mjtSize count) {
    for (mjtSize i = 0; i < count; ++i) {
      if (addresses[i] < 0) continue;
      const mjtNum cursor = history[static_cast<size_t>(addresses[i]) + 1];
      if (!(cursor >= 0 && cursor < samples[2 * i])) return false;
    }
    return true;
  };
  return fit(model.actuator_historyadr, model.actuator_history,
             model.nactuator) &&
         fit(model.sensor_historyadr, model.sensor_history, model.nsensor);
}

std::unique_ptr<Randomization> CopyOf(
    const std::optional<Randomization>& randomization) {
  return randomization ? std::make_unique<Randomization>(*randomization)
                       : nullptr;
}

}  // namespace

absl::Status MujocoEnvironment::SaveState(StateWriter* to) const {
  const mjModel& model = task_->model();
  if (model.nflex > 0 || (model.opt.enableflags & mjENBL_SLEEP) != 0) {
    return MakeError(ErrorCode::kUnsupported,
                     absl::StrCat("state: expected a model without flexible "
                                  "and sleeping bodies, found one with ",
                                  model.nflex > 0 ? "flexible" : "sleeping",
                                  " ones; MuJoCo's states of them are not "
                                  "complete"));
  }
  std::vector<mjtNum> physics(StateSize(model));
  mj_getState(&model, data_.get(), physics.data(), mjSTATE_INTEGRATION);
  to->Row(std::span<const mjtNum>(physics));
  to->Row(std::span<const mjtNum>(task_->ReadBeforeStep(data_.get())));
  to->Row(std::span<const float>(action_));
  for (const std::optional<float>& control : set_controls_) to->Values(control);
  to->Values(needs_own_model());
  if (!needs_own_model()) return absl::OkStatus();
  to->Values(is_model_changed_);
  for (const auto* const each : {&randomization_, &next_randomization_}) {
    to->Values(*each != nullptr);
    if (*each != nullptr) (*each)->Save(to);
  }
  return SaveModelChanges(shared_task_->model(), model, to);
}

absl::StatusOr<std::function<void()>> MujocoEnvironment::StageState(
    StateReader* from) {
  const mjModel& model = shared_task_->model();
  auto saved = std::make_shared<Saved>();
  saved->physics.resize(StateSize(model));
  saved->read_before_step.resize(task_->ReadBeforeStep(data_.get()).size());
  saved->action.resize(action_.size());
  saved->set_controls.resize(set_controls_.size());
  from->Row(std::span(saved->physics));
  if (!CursorsFit(model, saved->physics)) from->Refuse();
  from->Row(std::span(saved->read_before_step));
  from->Row(std::span(saved->action));
  for (std::optional<float>& control : saved->set_controls) {
    from->Values(control);
  }
  from->Values(saved->has_own_model);
  if (saved->has_own_model) {
    from->Values(saved->is_model_changed);
    const auto parts =
        std::make_shared<const ModelParts>(FindModelParts(model));
    for (std::optional<Randomization>* const each :
         {&saved->randomization, &saved->next_randomization}) {
      bool has_one = false;
      from->Values(has_one);
      if (!has_one) continue;
      each->emplace(shared_task_->shared_model(), parts, Contract(),
                    EnvRandom(0));
      (*each)->Read(from);
    }
    saved->changes = ReadModelChanges(model, from);
  }
  TANDEM_RETURN_IF_ERROR(from->Finish());
  if (saved->has_own_model) TANDEM_RETURN_IF_ERROR(MakeOwnModel());
  return [this, saved] { Load(*saved); };
}

void MujocoEnvironment::Load(const Saved& saved) {
  if (saved.has_own_model) {
    ApplyModelChanges(saved.changes, shared_task_->model(), own_model_.get());
    randomization_ = CopyOf(saved.randomization);
    is_model_changed_ = saved.is_model_changed;
  } else {
    ReturnToSharedModel();
  }
  next_randomization_ = CopyOf(saved.next_randomization);
  action_ = saved.action;
  set_controls_ = saved.set_controls;
  any_set_ = true;  // maybe; the next step looks
  const mjModel& model = task_->model();
  mj_resetData(&model, data_.get());
  SetPhysics(saved.physics, mjSTATE_INTEGRATION);
  std::ranges::copy(saved.read_before_step,
                    task_->ReadBeforeStep(data_.get()).begin());
}

void MujocoEnvironment::SetPhysics(std::span<const mjtNum> values,
                                   mjtState part) {
  const mjModel& model = task_->model();
  mj_setState(&model, data_.get(), values.data(), part);
  ComputeTransmission(model, data_.get());
  mj_flex(&model, data_.get());
  mj_camlight(&model, data_.get());
}

}  // namespace tandem
