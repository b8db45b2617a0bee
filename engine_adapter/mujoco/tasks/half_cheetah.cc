// HalfCheetah-v5: run forward, at little cost of torque.
#include "engine_adapter/mujoco/model/numpy_sum.h"
#include "engine_adapter/mujoco/model/task.h"
#include "engine_adapter/mujoco/tasks/all_tasks.h"

namespace tandem {
namespace {

class HalfCheetah final : public NoisyStartTask {
 public:
  explicit HalfCheetah(TaskSetup& setup)
      : NoisyStartTask(setup, 0.1, AddNormal, 1) {
    TaskOptions& options = setup.options();
    forward_reward_weight_ = options.Number("forward_reward_weight", 1);
    ctrl_cost_weight_ =
        static_cast<float>(options.Number("ctrl_cost_weight", 0.1));
    setup.NeedPositions(1);
  }

  void PutResetInfos(const mjData& data, InfoWriter& infos) const override {
    infos.Put("x_position", data.qpos[0]);
  }

  StepOutcome Step(std::span<const float> action, mjData* data,
                   InfoWriter& infos) const override {
    const double before = data->qpos[0];
    Simulate(data);
    const double x_velocity = Velocity(before, data->qpos[0]);
    const double forward = forward_reward_weight_ * x_velocity;
    const float ctrl_cost = ctrl_cost_weight_ * SumOfSquares(action);
    infos.Put("x_velocity", x_velocity);
    infos.Put("reward_forward", forward);
    infos.Put("reward_ctrl", -ctrl_cost);
    return {.reward = static_cast<float>(forward - double{ctrl_cost}),
            .terminated = false};
  }

 private:
  double forward_reward_weight_;
  float ctrl_cost_weight_;
};

}  // namespace

const TaskType kHalfCheetah = {
    .name = "HalfCheetah-v5",
    .xml_file = "half_cheetah.xml",
    .frame_skip = 5,
    .max_episode_steps = 1000,
    .make = MakeTask<HalfCheetah>,
    .camera = CameraView{.distance = 4, .follow_body = 1}};

}  // namespace tandem
