#include "engine_adapter/mujoco/randomization/mujoco_randomization.h"

#include <random>
#include <utility>

#include "absl/status/status.h"
#include "engine_adapter/core/env_random.h"
#include "engine_adapter/mujoco/randomization/contract.h"
#include "engine_adapter/mujoco/randomization/randomization.h"

namespace tandem {
namespace {

// A reset and a contract are often given the same seed. This keeps what the
// contract draws apart from what the task draws.
constexpr uint64_t kApart = 0x9e3779b97f4a7c15;

uint64_t ChooseSeed() {
  std::random_device entropy;
  return uint64_t{entropy()} << 32 | entropy();
}

}  // namespace

MujocoRandomization::MujocoRandomization(
    std::shared_ptr<const Task> task,
    std::vector<MujocoEnvironment*> environments)
    : task_(std::move(task)),
      environments_(std::move(environments)),
      parts_(
          std::make_shared<const ModelParts>(FindModelParts(task_->model()))) {}

absl::StatusOr<std::vector<std::string>> MujocoRandomization::SetContract(
    std::span<const uint32_t> envs, const rpc::SimulationContractT* contract,
    std::optional<uint64_t> seed) {
  Contract taken;
  if (contract != nullptr) {
    absl::StatusOr<Contract> read = ReadContract(*contract);
    if (!read.ok()) return read.status();
    taken = *read;
  }
  // All models before the first contract: one may not be had.
  for (const uint32_t env : envs) {
    MujocoEnvironment& environment = *environments_[env];
    if (contract == nullptr && !environment.is_randomized()) continue;
    if (const auto model = environment.OwnModel(); !model.ok()) {
      return model.status();
    }
  }
  const uint64_t first_seed = seed ? *seed : ChooseSeed();
  for (const uint32_t env : envs) {
    MujocoEnvironment& environment = *environments_[env];
    if (contract == nullptr && !environment.is_randomized()) continue;
    environment.SetRandomization(std::make_unique<Randomization>(
        task_->shared_model(), parts_, taken,
        EnvRandom((first_seed + env) ^ kApart)));
  }
  return UnusedFields(taken, *parts_, task_->FollowsVelocityCommand());
}

}  // namespace tandem
