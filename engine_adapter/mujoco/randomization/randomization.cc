#include "engine_adapter/mujoco/randomization/randomization.h"

#include <utility>

#include "engine_adapter/mujoco/randomization/model_draws.h"
#include "engine_adapter/mujoco/randomization/state_noise.h"

namespace tandem {

Randomization::Randomization(std::shared_ptr<const mjModel> original,
                             std::shared_ptr<const ModelParts> parts,
                             const Contract& contract, const EnvRandom& random)
    : original_(std::move(original)),
      parts_(std::move(parts)),
      contract_(contract),
      random_(random) {}

void Randomization::DrawModel(mjModel* model, mjData* data) {
  RestoreModel(*original_, model);
  tandem::DrawModel(contract_, *parts_, random_, model, data);
}

void Randomization::ShakeState(const mjModel& model, mjData* data) {
  tandem::ShakeState(contract_, *parts_, random_, model, data);
  pushes_.Start(contract_, random_);
  command_.Start(contract_, random_);
}

void Randomization::BeforeStep(const mjModel& model, mjData* data) {
  pushes_.Push(contract_, parts_->base, random_, model, data);
}

void Randomization::AfterStep(const mjModel& model, const mjData& data) {
  command_.Update(contract_, random_, data.time, model.opt.timestep / 2);
}

}  // namespace tandem
