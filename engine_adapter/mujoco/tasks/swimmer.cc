// Swimmer-v5: swim forward, at little cost of torque.
#include "engine_adapter/mujoco/model/numpy_sum.h"
#include "engine_adapter/mujoco/model/task.h"
#include "engine_adapter/mujoco/tasks/all_tasks.h"

namespace tandem {
namespace {

class Swimmer final : public NoisyStartTask {
 public:
  explicit Swimmer(TaskSetup& setup)
      : NoisyStartTask(setup, 0.1, AddUniform, 2) {
    TaskOptions& options = setup.options();
    forward_reward_weight_ = options.Number("forward_reward_weight", 1);
    ctrl_cost_weight_ =
        static_cast<float>(options.Number("ctrl_cost_weight", 1e-4));
    setup.NeedPositions(2);
  }

  void PutResetInfos(const mjData& data, InfoWriter& infos) const override {
    infos.Put("x_position", data.qpos[0]);
    infos.Put("y_position", data.qpos[1]);
    infos.Put("distance_from_origin", mju_norm(data.qpos, 2));
  }

  StepOutcome Step(std::span<const float> action, mjData* data,
                   InfoWriter& infos) const override {
    const double x_before = data->qpos[0];
    const double y_before = data->qpos[1];
    Simulate(data);
    const double x_velocity = Velocity(x_before, data->qpos[0]);
    const double forward = forward_reward_weight_ * x_velocity;
    const float ctrl_cost = ctrl_cost_weight_ * SumOfSquares(action);
    infos.Put("x_velocity", x_velocity);
    infos.Put("y_velocity", Velocity(y_before, data->qpos[1]));
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

const TaskType kSwimmer = {.name = "Swimmer-v5",
                           .xml_file = "swimmer.xml",
                           .frame_skip = 4,
                           .max_episode_steps = 1000,
                           .make = MakeTask<Swimmer>,
                           .camera = CameraView{.follow_body = 1}};

}  // namespace tandem
