// Randomization: one environment's contract, and what it has drawn.
//
// Data flow: the contract and a random stream -> the environment's own model,
// its initial state, pushes, the velocity command.
// Ownership: a MujocoEnvironment, whose thread calls: once an episode
//   DrawModel, mj_resetData, Task::Reset, ShakeState, mj_forward
// and around each step BeforeStep, AfterStep. No call allocates.
//
//   environment.SetRandomization(std::make_unique<Randomization>(
//       original, parts, contract, EnvRandom(seed)));

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_RANDOMIZATION_RANDOMIZATION_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_RANDOMIZATION_RANDOMIZATION_H_

#include <mujoco/mujoco.h>

#include <array>
#include <memory>

#include "engine_adapter/core/env_random.h"
#include "engine_adapter/mujoco/randomization/contract.h"
#include "engine_adapter/mujoco/randomization/model_parts.h"
#include "engine_adapter/mujoco/randomization/pushes.h"
#include "engine_adapter/mujoco/randomization/velocity_command.h"

namespace tandem {

// With an empty contract everything is as `original`, the task's own model, has
// it.
class Randomization {
 public:
  Randomization(std::shared_ptr<const mjModel> original,
                std::shared_ptr<const ModelParts> parts,
                const Contract& contract, const EnvRandom& random);

  // Its contract asks for nothing.
  bool is_empty() const { return contract_ == Contract(); }

  // Of the environment's own model; `data` is scratch. Throws MujocoError.
  void DrawModel(mjModel* model, mjData* data);
  void ShakeState(const mjModel& model, mjData* data);
  void BeforeStep(const mjModel& model, mjData* data);
  void AfterStep(const mjModel& model, const mjData& data);

  const std::array<double, 3>& velocity_command() const {
    return command_.values();
  }

 private:
  std::shared_ptr<const mjModel> original_;
  std::shared_ptr<const ModelParts> parts_;
  Contract contract_;
  EnvRandom random_;
  Pushes pushes_;
  VelocityCommand command_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_RANDOMIZATION_RANDOMIZATION_H_
