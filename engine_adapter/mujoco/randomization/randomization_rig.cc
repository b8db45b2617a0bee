#include "engine_adapter/mujoco/randomization/randomization_rig.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>

#include "engine_adapter/core/task_options.h"
#include "engine_adapter/mujoco/model_file.h"
#include "engine_adapter/mujoco/row_writer.h"
#include "engine_adapter/mujoco/task_setup.h"
#include "engine_adapter/mujoco/tasks/all_tasks.h"

namespace tandem {
namespace {

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

RandomizationRig RandomizationRig::OfTask(const std::string& name,
                                          uint32_t num_envs) {
  const auto* const found = std::ranges::find(
      kAllTasks, name, [](const TaskType* type) { return type->name; });
  return {**found, (*found)->xml_file, num_envs, "{}"};
}

RandomizationRig RandomizationRig::OfModel(const std::string& path,
                                           uint32_t num_envs, bool commanded) {
  return {kMjcfModel, "./" + path, num_envs,
          commanded ? R"({"velocity_command": true})" : "{}"};
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
