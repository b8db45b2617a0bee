#include "engine_adapter/mujoco/mujoco_tasks.h"

#include <utility>

#include "engine_adapter/mujoco/mjcf_model.h"
#include "engine_adapter/mujoco/mujoco_engine.h"
#include "engine_adapter/mujoco/task.h"
#include "engine_adapter/mujoco/task_registry.h"

namespace tandem {
namespace {

absl::StatusOr<MujocoTaskOptions> Options(TaskRequest& request,
                                          double default_noise) {
  MujocoTaskOptions options = {.assets_folder = request.assets_folder,
                               .reset_noise_scale = request.options.Number(
                                   "reset_noise_scale", default_noise, 0),
                               .max_episode_steps = request.max_episode_steps};
  if (absl::Status status = request.options.Finish(); !status.ok()) {
    return status;
  }
  return options;
}

absl::StatusOr<std::unique_ptr<Engine>> MakeEngine(
    absl::StatusOr<std::unique_ptr<Task>> task, const TaskRequest& request) {
  if (!task.ok()) return task.status();
  return MujocoEngine::Create(*std::move(task), request.num_envs,
                              request.threads);
}

}  // namespace

std::vector<std::string> MujocoTasks() { return KnownTasks(); }

absl::StatusOr<std::unique_ptr<Engine>> MakeMujocoEngine(
    const std::string& task, TaskRequest request) {
  const absl::StatusOr<MujocoTaskOptions> options = Options(request, 0.1);
  if (!options.ok()) return options.status();
  return MakeEngine(MakeTask(task, *options), request);
}

absl::StatusOr<std::unique_ptr<Engine>> MakeModelEngine(const std::string& path,
                                                        TaskRequest request) {
  absl::StatusOr<MujocoTaskOptions> options = Options(request, 0);
  if (!options.ok()) return options.status();
  options->model_path = path;
  return MakeEngine(MjcfModel::Create(*options), request);
}

}  // namespace tandem
