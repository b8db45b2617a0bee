// MujocoEnvironment: one environment of a Task.
//
// Data flow: actions (float32) -> mjData.ctrl -> Task -> obs, infos, reward,
// end.
// Ownership: an EnvironmentEngine owns it; each environment has its own mjData.
// All environments share the Task and its mjModel, except those with a changed
// model, which have their own.
//
//   InstallMujocoLog(LogLine);
//   environments.push_back(std::make_unique<MujocoEnvironment>(
//       task, make_task, MakeData(task->model()).value(), reset_infos));

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine_adapter/core/env_random.h"
#include "engine_adapter/core/environment.h"
#include "engine_adapter/core/state_bytes.h"
#include "engine_adapter/mujoco/model/model_file.h"
#include "engine_adapter/mujoco/model/task.h"
#include "engine_adapter/mujoco/randomization/randomization.h"

namespace tandem {

// Makes the same task for a changed copy of its model. Throws if the copy does
// not fit the task.
using TaskMaker = std::function<std::shared_ptr<const Task>(
    std::shared_ptr<const mjModel> model)>;

// Invalid values are handled as in MuJoCo. An action row with a NaN, an
// infinity or a magnitude above 1e10 counts as a row of zeros. A state with
// such a value is reset to the model's initial state, unless the model disables
// that, and the episode continues. Each case causes one warning. An error of
// MuJoCo is thrown as MujocoError; the environment is then reset to the model's
// initial state.
class MujocoEnvironment final : public Environment {
 public:
  // `reset_infos` is the number of the first infos columns that a reset writes.
  MujocoEnvironment(std::shared_ptr<const Task> task, TaskMaker make_task,
                    DataPtr data, size_t reset_infos)
      : shared_task_(std::move(task)),
        task_(shared_task_),
        make_task_(std::move(make_task)),
        data_(std::move(data)),
        reset_infos_(reset_infos),
        action_(static_cast<size_t>(task_->model().nu)),
        set_controls_(action_.size()) {}

  void Reset(EnvRandom& random, const EnvironmentRow& row) override;
  StepOutcome Step(std::span<const float> actions,
                   const EnvironmentRow& row) override;

  // kUnsupported: a model with flexible or sleeping bodies, of which MuJoCo's
  // states are not complete; and SaveModelChanges' error.
  absl::Status SaveState(StateWriter* to) const override;
  // Also the errors of MakeOwnModel.
  absl::StatusOr<std::function<void()>> StageState(StateReader* from) override;

  // Returns to the shared model, without a contract or set controls.
  void ClearClientState() override;

  const mjModel& model() const { return task_->model(); }
  // For code that moves objects between two steps, and updates all transforms.
  mjData* data() { return data_.get(); }
  const mjData* data() const { return data_.get(); }
  // Replaces a part of the physics, such as mjSTATE_QPOS, and updates all
  // transforms. No other input of later steps changes.
  void SetPhysics(std::span<const mjtNum> values, mjtState part);

  // Returns this environment's own copy of the model, made by the first call.
  // The caller may change it between two steps, but not its sizes. It exists
  // until ClearClientState. kEngineFailed with MuJoCo's error text, and
  // kOutOfSharedMemory.
  absl::StatusOr<mjModel*> OwnModel();
  // Makes the copy for a contract only. The reset that ends the contract frees
  // it, unless OwnModel was called.
  absl::Status MakeOwnModel();

  // Sets the actuator's control for the next step, in place of the action's
  // value. A reset before that step does not change it.
  void SetControl(size_t actuator, float value) {
    set_controls_[actuator] = value;
    any_set_ = true;
  }
  // Returns the last step's control, 0 after a reset; or the value set since
  // then.
  float Control(size_t actuator) const {
    return set_controls_[actuator].value_or(action_[actuator]);
  }

  // Sets the randomization from the next reset on. Call MakeOwnModel before.
  void SetRandomization(std::unique_ptr<Randomization> next) {
    next_randomization_ = std::move(next);
  }
  // Whether SetRandomization has set one.
  bool is_randomized() const {
    return randomization_ != nullptr || next_randomization_ != nullptr;
  }

 private:
  struct Saved;

  // Whether a state includes changes of the model.
  bool needs_own_model() const { return is_randomized() || is_model_changed_; }
  void Load(const Saved& saved);
  void DrawModel();
  void ReturnToSharedModel();
  void TakeActions(std::span<const float> actions);
  void PutRow(const EnvironmentRow& row) const;

  const std::shared_ptr<const Task> shared_task_;
  std::shared_ptr<const Task> task_;  // on its own model, or the shared one
  TaskMaker make_task_;
  std::shared_ptr<mjModel> own_model_;  // of task_; nullptr: shared
  bool is_model_changed_ = false;       // by the caller of OwnModel
  DataPtr data_;
  size_t reset_infos_;
  std::unique_ptr<Randomization> randomization_;       // of this episode
  std::unique_ptr<Randomization> next_randomization_;  // from the next one on
  std::vector<float> action_;  // a copy that the peer cannot change
  std::vector<std::optional<float>> set_controls_;  // by actuator
  bool any_set_ = false;  // whether set_controls_ has one
};

}  // namespace tandem
