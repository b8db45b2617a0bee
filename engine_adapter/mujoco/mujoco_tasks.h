// The MuJoCo tasks, with Gymnasium's names, and any MJCF file as a task.
//
// Data flow: name or file, and request -> model, Task -> Engine.
// Ownership: the caller owns the engine, and calls InstallMujocoLog before.
//
//   TaskRequest request = {.num_envs = 64, .threads = 2};
//   request.options = *TaskOptions::Parse(R"({"healthy_reward": 2})");
//   MakeMujocoEngine("Ant-v5", std::move(request));

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine_adapter/core/task_options.h"
#include "engine_adapter/engine.h"

namespace tandem {

// In alphabetical order.
std::vector<std::string> MujocoTasks();

// All tasks take Gymnasium's keyword options, except those of rendering. The
// option xml_file: see FindModelFile. The option state is a list of mjData's
// arrays (model/state_arrays.cc) that become infos.
//   kInvalidArgument     an unknown task or option (the text has the known
//                        ones), or a model that lacks what the task needs
//   kEngineFailed        MuJoCo cannot load or step the model
//   kOutOfSharedMemory   not enough memory for that many environments
absl::StatusOr<std::unique_ptr<Engine>> MakeMujocoEngine(
    const std::string& task, TaskRequest request);

// Makes a task of a model file. It observes qpos, then qvel. All rewards are 0.
// An episode ends only by max_episode_steps. The task's name is the file's,
// without folder and extension. Options and defaults:
//   keyframe           ""; name or index of the keyframe in which episodes
//                      start; "": the joints' reference positions
//   reset_noise_scale  0
//   frame_skip         1
//   velocity_command   false; true: also observes the velocity command
// Errors: as above; kInvalidArgument for a model without joints.
absl::StatusOr<std::unique_ptr<Engine>> MakeModelEngine(
    const std::string& mjcf_path, TaskRequest request);

// Writes the scene of a model file as glTF (.glb). `compiled_by`: as ModelFile.
// Errors: those of LoadModel and MujocoGlb; kInvalidArgument: `glb_path` cannot
// be written.
absl::Status SaveModelScene(const std::string& model_path,
                            const std::string& compiled_by,
                            const std::string& glb_path);

}  // namespace tandem
