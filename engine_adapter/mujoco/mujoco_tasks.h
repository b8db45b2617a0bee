// The MuJoCo tasks, by Gymnasium's names, and any MJCF file as a task.
//
// Data flow: name or path, and request -> Engine. Call InstallMujocoLog first.
//
//   TaskRequest request = {.num_envs = 64, .threads = 2};
//   request.options = *TaskOptions::Parse(R"({"reset_noise_scale": 0})");
//   MakeMujocoEngine("HalfCheetah-v5", std::move(request));

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_MUJOCO_TASKS_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_MUJOCO_TASKS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine_adapter/core/engine.h"
#include "engine_adapter/core/task_request.h"

namespace tandem {

// In alphabetical order.
std::vector<std::string> MujocoTasks();

// kInvalidArgument for an unknown task or option, naming the known ones, and
// where a model file is missing; else what MuJoCo says of the model.
absl::StatusOr<std::unique_ptr<Engine>> MakeMujocoEngine(
    const std::string& task, TaskRequest request);

// The same for the MJCF file at `path`, as MjcfModel describes it.
absl::StatusOr<std::unique_ptr<Engine>> MakeModelEngine(const std::string& path,
                                                        TaskRequest request);

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_MUJOCO_TASKS_H_
