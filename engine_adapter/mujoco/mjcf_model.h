// MjcfModel: any MJCF file as a task, for who brings their own model.
//
// float32[nq + nv] observations: qpos, then qvel. float32[nu] actions: ctrl.
// Reward 0; ends only by max_episode_steps, if given. Starts without noise
// unless a scale is given. One action is one step of the model.
//
//   absl::StatusOr<std::unique_ptr<Task>> task =
//       MjcfModel::Create({.model_path = "robot.xml"});

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_MJCF_MODEL_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_MJCF_MODEL_H_

#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "engine_adapter/mujoco/model_file.h"
#include "engine_adapter/mujoco/task.h"

namespace tandem {

class MjcfModel final : public Task {
 public:
  // Errors: those of LoadModel; kInvalidArgument for a model without actuators
  // or without joints. Its name is the file's without folder and ending.
  static absl::StatusOr<std::unique_ptr<Task>> Create(
      const MujocoTaskOptions& options);

  const std::string& name() const override { return name_; }
  const mjModel& model() const override { return *model_; }
  uint32_t obs_size() const override;
  uint32_t max_episode_steps() const override { return max_episode_steps_; }
  void Reset(mjData* data, EnvRandom& random) const override;
  StepOutcome Step(mjData* data) const override;
  void Observe(const mjData& data, std::span<float> obs) const override;

 private:
  MjcfModel(std::string name, ModelPtr model, const MujocoTaskOptions& options);

  std::string name_;
  ModelPtr model_;
  double reset_noise_scale_;
  uint32_t max_episode_steps_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_MJCF_MODEL_H_
