// RandomizationRig: MuJoCo environments and their RandomizationPort, for tests
// that read the models.
//
// Data flow: a test's contract -> the port -> each environment's next Reset.
// Ownership: a test; one thread.
//
//   RandomizationRig rig = RandomizationRig::Of("Ant-v5", /*num_envs=*/2);
//   ASSERT_TRUE(rig.Take(&contract, /*seed=*/1).ok());
//   rig.Reset(/*first_seed=*/0);

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine_adapter/core/env_random.h"
#include "engine_adapter/mujoco/environment/mujoco_environment.h"
#include "engine_adapter/mujoco/environment/mujoco_randomization.h"
#include "engine_adapter/mujoco/model/task.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// A contract with every field that changes the model; one with every field.
rpc::SimulationContractT ModelContract();
rpc::SimulationContractT WholeContract();

class RandomizationRig {
 public:
  // `name`: a task of Gymnasium, or a model in testdata/ as --model serves it:
  // "servo arm", "rover", "commanded rover" (it follows velocity commands).
  static RandomizationRig Of(const std::string& name, uint32_t num_envs);

  // Sets a contract for all environments, or for the given ones.
  absl::StatusOr<std::vector<std::string>> Take(
      const rpc::SimulationContractT* contract, std::optional<uint64_t> seed);
  absl::StatusOr<std::vector<std::string>> Take(
      const std::vector<uint32_t>& envs,
      const rpc::SimulationContractT* contract, std::optional<uint64_t> seed);

  // Resets all environments; environment i with seed first_seed + i.
  void Reset(uint64_t first_seed);
  // Steps environment `env` with every action equal to `action`.
  void Step(uint32_t env, float action = 0);

  const mjModel& original() const { return task_->model(); }
  const mjModel& model(uint32_t env) const {
    return environments_[env]->model();
  }
  mjModel* own_model(uint32_t env) {
    return environments_[env]->OwnModel().value();
  }
  const mjData& data(uint32_t env) const {
    return *static_cast<const MujocoEnvironment&>(*environments_[env]).data();
  }
  // The last observation.
  const std::vector<float>& obs(uint32_t env) const { return obs_[env]; }
  // Positions, velocities, and time.
  std::vector<double> State(uint32_t env) const;

 private:
  RandomizationRig(const TaskType& type, const std::string& path,
                   uint32_t num_envs, const std::string& options);

  std::shared_ptr<const Task> task_;
  size_t reset_infos_ = 0;
  std::vector<std::unique_ptr<MujocoEnvironment>> environments_;
  std::unique_ptr<MujocoRandomization> port_;
  std::vector<std::vector<float>> obs_;
  std::vector<double> infos_;
  std::vector<float> actions_;
};

}  // namespace tandem
