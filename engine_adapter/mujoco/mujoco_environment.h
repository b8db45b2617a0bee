// MujocoEnvironment: one environment of a Task.
//
// Data flow: actions (float32) -> mjData.ctrl -> Task -> obs, infos, reward,
// end. Ownership: an EnvironmentEngine's; the Task and its mjModel are shared
// by all environments, each of which has its own mjData.
//
//   InstallMujocoLog(LogLine);
//   environments.push_back(std::make_unique<MujocoEnvironment>(
//       task, MakeData(task->model()).value(), reset_infos));

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_MUJOCO_ENVIRONMENT_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_MUJOCO_ENVIRONMENT_H_

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "engine_adapter/core/env_random.h"
#include "engine_adapter/core/environment.h"
#include "engine_adapter/mujoco/model_file.h"
#include "engine_adapter/mujoco/task.h"

namespace tandem {

// Values that cannot be, as MuJoCo handles them: an action row with a NaN, an
// infinity or a magnitude above 1e10 counts as a row of zeros; a state that
// becomes such is reset to the model's initial state, unless the model disables
// that, and the episode goes on. Each is warned about once. An error of
// MuJoCo's is thrown on as MujocoError; the environment is reset to the model's
// initial state.
class MujocoEnvironment final : public Environment {
 public:
  // `reset_infos` is how many of the infos' columns, the first, reset writes.
  MujocoEnvironment(std::shared_ptr<const Task> task, DataPtr data,
                    size_t reset_infos);

  void Reset(EnvRandom& random, const EnvironmentRow& row) override;
  StepOutcome Step(std::span<const float> actions,
                   const EnvironmentRow& row) override;

 private:
  void TakeActions(std::span<const float> actions);
  void PutRow(const EnvironmentRow& row) const;

  std::shared_ptr<const Task> task_;
  DataPtr data_;
  size_t reset_infos_;
  std::vector<float> action_;  // a copy that nobody scribbles over
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_MUJOCO_ENVIRONMENT_H_
