// MujocoRandomization: applies contracts to MuJoCo environments.
//
// Data flow: SimulationContract -> Contract -> each environment's
// Randomization. Ownership: an engine's fitting; points into its environments.
//
//   EnvironmentFittings{.randomization = std::make_unique<MujocoRandomization>(
//       task, environments)};

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/mujoco/environment/mujoco_environment.h"
#include "engine_adapter/mujoco/model/task.h"
#include "engine_adapter/mujoco/randomization/model_parts.h"

namespace tandem {

class MujocoRandomization final : public RandomizationPort {
 public:
  // `task` is the one that all environments shared at first.
  MujocoRandomization(std::shared_ptr<const Task> task,
                      std::vector<MujocoEnvironment*> environments)
      : task_(std::move(task)),
        environments_(std::move(environments)),
        parts_(std::make_shared<const ModelParts>(
            FindModelParts(task_->model()))) {}

  // Errors: the port's; kOutOfSharedMemory or kEngineFailed if an environment
  // cannot have its own model. After an error no environment draws from the
  // contract.
  absl::StatusOr<std::vector<std::string>> SetContract(
      std::span<const uint32_t> envs, const rpc::SimulationContractT* contract,
      std::optional<uint64_t> seed) override;

 private:
  // Makes own models for environments that have none.
  absl::Status MakeModels(std::span<const uint32_t> envs);

  std::shared_ptr<const Task> task_;
  std::vector<MujocoEnvironment*> environments_;
  std::shared_ptr<const ModelParts> parts_;
};

}  // namespace tandem
