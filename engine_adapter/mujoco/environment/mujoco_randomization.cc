#include "engine_adapter/mujoco/environment/mujoco_randomization.h"

#include <mujoco/mujoco.h>

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/os/available_memory.h"
#include "engine_adapter/core/env_random.h"
#include "engine_adapter/mujoco/randomization/contract.h"
#include "engine_adapter/mujoco/randomization/randomization.h"

namespace tandem {
namespace {

// Users often give a reset and a contract the same seed. This constant makes
// the draws of contract and task independent.
constexpr uint64_t kApart = 0x9e3779b97f4a7c15;

uint64_t ChooseSeed() {
  std::random_device entropy;
  return uint64_t{entropy()} << 32 | entropy();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> MujocoRandomization::SetContract(
    std::span<const uint32_t> envs, const rpc::SimulationContractT* contract,
    std::optional<uint64_t> seed) {
  Contract taken;
  if (contract != nullptr) {
    TANDEM_ASSIGN_OR_RETURN(taken, ReadContract(*contract));
    TANDEM_RETURN_IF_ERROR(MakeModels(envs));
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

absl::Status MujocoRandomization::MakeModels(std::span<const uint32_t> envs) {
  const mjModel& shared = task_->model();
  const auto lacks_own = [&](uint32_t env) {
    return &environments_[env]->model() == &shared;
  };
  // Refuses before the kernel would kill a process for lack of memory.
  const auto models =
      static_cast<uint64_t>(std::ranges::count_if(envs, lacks_own));
  const uint64_t bytes = models * static_cast<uint64_t>(mj_sizeModel(&shared));
  TANDEM_RETURN_IF_ERROR(CheckMemory(
      bytes,
      absl::StrCat("models of their own for ", models, " environments need"),
      "give fewer environments a contract"));
  for (const uint32_t env : envs) {
    TANDEM_RETURN_IF_ERROR(environments_[env]->MakeOwnModel());
  }
  return absl::OkStatus();
}

}  // namespace tandem
