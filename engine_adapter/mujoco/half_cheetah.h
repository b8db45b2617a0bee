// HalfCheetah-v5, as Gymnasium 1.4.0 defines it with its default arguments.
//
// float32[17] observations: qpos without the forward position, then qvel.
// float32[6] actions: torques. Reward: forward velocity less 0.1 times the sum
// of squared actions. Never terminates; truncated after 1000 steps. An episode
// starts with noise of scale 0.1: uniform on qpos, normal on qvel.
//
//   absl::StatusOr<std::unique_ptr<Task>> task = HalfCheetah::Create({});

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_HALF_CHEETAH_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_HALF_CHEETAH_H_

#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "engine_adapter/mujoco/model_file.h"
#include "engine_adapter/mujoco/task.h"

namespace tandem {

class HalfCheetah final : public Task {
 public:
  // Errors: those of FindAsset and LoadModel.
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
  HalfCheetah(ModelPtr model, const MujocoTaskOptions& options);

  const std::string name_ = "HalfCheetah-v5";
  ModelPtr model_;
  double reset_noise_scale_;
  uint32_t max_episode_steps_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_HALF_CHEETAH_H_
