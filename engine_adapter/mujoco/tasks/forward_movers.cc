// HalfCheetah-v5: run forward, at little cost of torque. Swimmer-v5: swim.
#include "engine_adapter/mujoco/model/numpy_sum.h"
#include "engine_adapter/mujoco/model/task.h"
#include "engine_adapter/mujoco/tasks/all_tasks.h"

namespace tandem {
namespace {

template <bool kIsSwimmer>
class ForwardMover final : public NoisyStartTask {
 public:
  explicit ForwardMover(TaskSetup& setup)
      : NoisyStartTask(setup, 0.1, kIsSwimmer ? AddUniform : AddNormal,
                       kRootPositions) {
    TaskOptions& options = setup.options();
    forward_reward_weight_ = options.Number("forward_reward_weight", 1);
    ctrl_cost_weight_ = static_cast<float>(
        options.Number("ctrl_cost_weight", kIsSwimmer ? 1e-4 : 0.1));
    setup.NeedPositions(kRootPositions);
  }

  void PutResetInfos(const mjData& data, InfoWriter& infos) const override {
    infos.Put("x_position", data.qpos[0]);
    if constexpr (kIsSwimmer) {
      infos.Put("y_position", data.qpos[1]);
      infos.Put("distance_from_origin", mju_norm(data.qpos, 2));
    }
  }

  StepOutcome Step(std::span<const float> action, mjData* data,
                   InfoWriter& infos) const override {
    const double x_before = data->qpos[0];
    const double y_before = data->qpos[kRootPositions - 1];
    Simulate(data);
    const double x_velocity = Velocity(x_before, data->qpos[0]);
    const double forward = forward_reward_weight_ * x_velocity;
    const float ctrl_cost = ctrl_cost_weight_ * SumOfSquares(action);
    infos.Put("x_velocity", x_velocity);
    if constexpr (kIsSwimmer) {
      infos.Put("y_velocity", Velocity(y_before, data->qpos[1]));
    }
    infos.Put("reward_forward", forward);
    infos.Put("reward_ctrl", -ctrl_cost);
    return {.reward = static_cast<float>(forward - double{ctrl_cost}),
            .terminated = false};
  }

 private:
  static constexpr size_t kRootPositions = kIsSwimmer ? 2 : 1;

  double forward_reward_weight_;
  float ctrl_cost_weight_;
};

}  // namespace

const TaskType kHalfCheetah = {
    .name = "HalfCheetah-v5",
    .xml_file = "half_cheetah.xml",
    .frame_skip = 5,
    .max_episode_steps = 1000,
    .make = MakeTask<ForwardMover<false>>,
    .camera = CameraView{.distance = 4, .follow_body = 1}};
const TaskType kSwimmer = {.name = "Swimmer-v5",
                           .xml_file = "swimmer.xml",
                           .frame_skip = 4,
                           .max_episode_steps = 1000,
                           .make = MakeTask<ForwardMover<true>>,
                           .camera = CameraView{.follow_body = 1}};

}  // namespace tandem
