// MujocoEnvironment: one environment of a Task.
//
// Data flow: actions (float32) -> mjData.ctrl -> Task -> obs, infos, reward,
// end. Ownership: an EnvironmentEngine's; each environment has its own mjData.
// The Task and its mjModel are shared by all environments, but for those whose
// model was changed: they have their own.
//
//   InstallMujocoLog(LogLine);
//   environments.push_back(std::make_unique<MujocoEnvironment>(
//       task, make_task, MakeData(task->model()).value(), reset_infos));

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_ENVIRONMENT_MUJOCO_ENVIRONMENT_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_ENVIRONMENT_MUJOCO_ENVIRONMENT_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine_adapter/core/env_random.h"
#include "engine_adapter/core/environment.h"
#include "engine_adapter/mujoco/model/model_file.h"
#include "engine_adapter/mujoco/model/task.h"
#include "engine_adapter/mujoco/randomization/randomization.h"

namespace tandem {

// Makes the same task again, on a changed copy of its model. Throws if that has
// become impossible.
using TaskMaker = std::function<std::shared_ptr<const Task>(
    std::shared_ptr<const mjModel> model)>;

// Invalid values, as MuJoCo handles them: an action row with a NaN, an
// infinity or a magnitude above 1e10 counts as a row of zeros; a state that
// becomes such is reset to the model's initial state, unless the model disables
// that, and the episode goes on. Each is warned about once. An error of
// MuJoCo's is thrown on as MujocoError; the environment is reset to the model's
// initial state.
class MujocoEnvironment final : public Environment {
 public:
  // `reset_infos` is how many of the infos' columns, the first, reset writes.
  MujocoEnvironment(std::shared_ptr<const Task> task, TaskMaker make_task,
                    DataPtr data, size_t reset_infos);

  void Reset(EnvRandom& random, const EnvironmentRow& row) override;
  StepOutcome Step(std::span<const float> actions,
                   const EnvironmentRow& row) override;

  // Back to the shared model, without a contract or set controls.
  void ClearClientState() override;

  const mjModel& model() const { return task_->model(); }
  // Between two steps, for code that moves things; it calls mj_forward itself.
  mjData* data() { return data_.get(); }
  const mjData* data() const { return data_.get(); }

  // This environment's own copy of the model, made by the first call, to be
  // changed between two steps: all sizes have to stay. Kept until
  // ClearClientState. kEngineFailed with MuJoCo's words, and
  // kOutOfSharedMemory.
  absl::StatusOr<mjModel*> OwnModel();
  // Makes it in the same way for a contract alone: the reset that gives the
  // contract up frees it, unless OwnModel has been called.
  absl::Status MakeOwnModel();

  // This actuator's control in the next step, in place of its action's; resets
  // before it change nothing about that.
  void SetControl(size_t actuator, float value);
  // The last step's control, 0 after a reset; or what was set since.
  float Control(size_t actuator) const;

  // From the next reset on, in place of the one before. MakeOwnModel comes
  // first.
  void SetRandomization(std::unique_ptr<Randomization> next);
  // It has been called.
  bool is_randomized() const {
    return randomization_ != nullptr || next_randomization_ != nullptr;
  }

 private:
  void DrawModel();
  void ReturnToSharedModel();
  void TakeActions(std::span<const float> actions);
  void TakeSetControls();
  void PutRow(const EnvironmentRow& row) const;

  const std::shared_ptr<const Task> shared_task_;
  std::shared_ptr<const Task> task_;  // on a model of its own, or the shared
  TaskMaker make_task_;
  std::shared_ptr<mjModel> own_model_;  // of task_, or nullptr: it is shared
  bool is_model_changed_ = false;       // by the caller of OwnModel
  DataPtr data_;
  size_t reset_infos_;
  std::unique_ptr<Randomization> randomization_;       // of this episode
  std::unique_ptr<Randomization> next_randomization_;  // from the next one on
  std::vector<float> action_;  // a copy that the peer cannot change
  std::vector<std::optional<float>> set_controls_;  // by actuator
  bool any_set_ = false;                            // of them
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_ENVIRONMENT_MUJOCO_ENVIRONMENT_H_
