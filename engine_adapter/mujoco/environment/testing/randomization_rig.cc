#include "engine_adapter/mujoco/environment/testing/randomization_rig.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>

#include "engine_adapter/core/task_options.h"
#include "engine_adapter/mujoco/model/model_file.h"
#include "engine_adapter/mujoco/model/row_writer.h"
#include "engine_adapter/mujoco/model/task_setup.h"
#include "engine_adapter/mujoco/tasks/all_tasks.h"

namespace tandem {
namespace {

constexpr char kRover[] =
    "./engine_adapter/mujoco/randomization/testdata/rover.xml";
constexpr char kServoArm[] =
    "./engine_adapter/mujoco/randomization/testdata/servo_arm.xml";

std::shared_ptr<const Task> MakeTheTask(const TaskType& type,
                                        std::shared_ptr<const mjModel> model,
                                        const std::string& path,
                                        const std::string& options) {
  TaskOptions parsed = TaskOptions::Parse(options).value();
  TaskSetup setup(std::move(model), path, type.frame_skip, &parsed);
  std::shared_ptr<const Task> task = type.make(setup);
  if (!setup.status().ok()) throw std::logic_error(setup.status().ToString());
  return task;
}

}  // namespace

rpc::SimulationContractT ModelContract() {
  rpc::SimulationContractT contract;
  contract.friction_range = {0.2F, 0.6F};
  contract.restitution_range = {0.1F, 0.9F};
  contract.mass_scale_range = {0.5F, 2};
  contract.com_offset_range = {-0.01F, 0.02F};
  contract.motor_strength_range = {0.7F, 1.3F};
  contract.motor_offset_range = {-0.1F, 0.1F};
  contract.terrain_type = "rough";
  contract.terrain_difficulty = 0.5F;
  return contract;
}

rpc::SimulationContractT WholeContract() {
  rpc::SimulationContractT contract = ModelContract();
  contract.pose_position_noise = {0.01F, 0.02F, 0.03F};
  contract.pose_orientation_noise = 0.1F;
  contract.joint_position_noise = 0.05F;
  contract.joint_velocity_noise = 0.1F;
  contract.push_interval_range = {0.1F, 0.3F};
  contract.push_velocity_range = {0.5F, 1};
  contract.vel_command_x_range = {0.5F, 1};
  contract.vel_command_y_range = {-1, -0.5F};
  contract.vel_command_yaw_range = {2, 3};
  contract.vel_command_resampling_time_range = {0.1F, 0.2F};
  contract.vel_command_standing_probability = 0.25F;
  return contract;
}

RandomizationRig::RandomizationRig(const TaskType& type,
                                   const std::string& path, uint32_t num_envs,
                                   const std::string& options) {
  const ModelFile file = FindModelFile(path, "").value();
  std::shared_ptr<const mjModel> model = LoadModel(file).value();
  const auto make_task = [&type, path,
                          options](std::shared_ptr<const mjModel> changed) {
    return MakeTheTask(type, std::move(changed), path, options);
  };
  task_ = make_task(model);
  actions_.resize(static_cast<size_t>(model->nu));

  const DataPtr data = MakeData(*model).value();
  EnvRandom random(0);
  task_->Reset(data.get(), random);
  mj_forward(model.get(), data.get());
  InfoWriter infos{std::span<double>()};
  task_->PutResetInfos(*data, infos);
  reset_infos_ = infos.count();
  task_->Step(actions_, data.get(), infos);
  infos_.resize(infos.count());
  ObsWriter obs({});
  task_->Observe(*data, obs);
  const size_t command = task_->FollowsVelocityCommand() ? 3 : 0;
  obs_.assign(num_envs, std::vector<float>(obs.count() + command));

  std::vector<MujocoEnvironment*> environments;
  for (uint32_t i = 0; i < num_envs; ++i) {
    environments_.push_back(std::make_unique<MujocoEnvironment>(
        task_, make_task, MakeData(*model).value(), reset_infos_));
    environments.push_back(environments_.back().get());
  }
  port_ = std::make_unique<MujocoRandomization>(task_, environments);
}

RandomizationRig RandomizationRig::Of(const std::string& name,
                                      uint32_t num_envs) {
  if (name == "servo arm") return {kMjcfModel, kServoArm, num_envs, "{}"};
  if (name == "rover") return {kMjcfModel, kRover, num_envs, "{}"};
  if (name == "commanded rover") {
    return {kMjcfModel, kRover, num_envs, R"({"velocity_command": true})"};
  }
  const auto* const found = std::ranges::find(
      kAllTasks, name, [](const TaskType* type) { return type->name; });
  return {**found, (*found)->xml_file, num_envs, "{}"};
}

absl::StatusOr<std::vector<std::string>> RandomizationRig::Take(
    const rpc::SimulationContractT* contract, std::optional<uint64_t> seed) {
  std::vector<uint32_t> all(environments_.size());
  std::iota(all.begin(), all.end(), 0);
  return Take(all, contract, seed);
}

absl::StatusOr<std::vector<std::string>> RandomizationRig::Take(
    const std::vector<uint32_t>& envs, const rpc::SimulationContractT* contract,
    std::optional<uint64_t> seed) {
  return port_->SetContract(envs, contract, seed);
}

void RandomizationRig::Reset(uint64_t first_seed) {
  for (size_t i = 0; i < environments_.size(); ++i) {
    EnvRandom random(first_seed + i);
    environments_[i]->Reset(random, {.obs = obs_[i], .infos = infos_});
  }
}

void RandomizationRig::Step(uint32_t env, float action) {
  std::ranges::fill(actions_, action);
  environments_[env]->Step(actions_, {.obs = obs_[env], .infos = infos_});
}

std::vector<double> RandomizationRig::State(uint32_t env) const {
  const mjModel& of = model(env);
  std::vector<double> state(data(env).qpos, data(env).qpos + of.nq);
  state.insert(state.end(), data(env).qvel, data(env).qvel + of.nv);
  state.push_back(data(env).time);
  return state;
}

}  // namespace tandem
