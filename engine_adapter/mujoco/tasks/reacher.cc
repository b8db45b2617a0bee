// Reacher-v5: bring the fingertip of a two-jointed arm to a random target.
#include <cmath>

#include "engine_adapter/mujoco/model/numpy_sum.h"
#include "engine_adapter/mujoco/model/part_names.h"
#include "engine_adapter/mujoco/model/task.h"
#include "engine_adapter/mujoco/tasks/all_tasks.h"

namespace tandem {
namespace {

class Reacher final : public Task {
 public:
  explicit Reacher(TaskSetup& setup) : Task(setup) {
    reward_dist_weight_ = setup.options().Number("reward_dist_weight", 1);
    reward_control_weight_ =
        static_cast<float>(setup.options().Number("reward_control_weight", 1));
    fingertip_ = setup.Body("fingertip");
    target_ = setup.Body("target");
    setup.NeedExactly(4, setup.model().nq, "positions (nq)");
    setup.NeedAtLeast(2, setup.model().nv, "velocities (nv)");
  }

  void Reset(mjData* data, EnvRandom& random) const override {
    AddUniform(Qpos(data), 0.1, random);
    const std::span<mjtNum> goal = Qpos(data).last(2);
    do {
      for (mjtNum& value : goal) value = random.Uniform(-0.2, 0.2);
    } while (mju_norm(goal.data(), 2) >= 0.2);
    AddUniform(Qvel(data), 0.005, random);
    for (mjtNum& value : Qvel(data).last(2)) value = 0;
  }

  void Observe(const mjData& data, ObsWriter& obs) const override {
    const std::span<const mjtNum> angles = Qpos(data).first(2);
    for (const size_t i : {0U, 1U}) {
      obs.Put({"cos", PositionName, i}, std::cos(angles[i]));
    }
    for (const size_t i : {0U, 1U}) {
      obs.Put({"sin", PositionName, i}, std::sin(angles[i]));
    }
    obs.Put({"qpos", PositionName, 2}, Qpos(data).subspan(2));
    obs.Put({"qvel", VelocityName}, Qvel(data).first(2));
    mjtNum away[3];
    FromTarget(data, away);
    obs.Put({"fingertip_from_target/x"}, away[0]);
    obs.Put({"fingertip_from_target/y"}, away[1]);
  }

  StepOutcome Step(std::span<const float> action, mjData* data,
                   InfoWriter& infos) const override {
    Simulate(data);
    mjtNum away[3];
    FromTarget(*data, away);
    const double reward_dist = -mju_norm3(away) * reward_dist_weight_;
    const float reward_ctrl = -SumOfSquares(action) * reward_control_weight_;
    infos.Put("reward_dist", reward_dist);
    infos.Put("reward_ctrl", reward_ctrl);
    return {.reward = static_cast<float>(reward_dist + double{reward_ctrl}),
            .terminated = false};
  }

 private:
  void FromTarget(const mjData& data, mjtNum away[3]) const {
    mju_sub3(away, Place(data, fingertip_).data(), Place(data, target_).data());
  }

  double reward_dist_weight_;
  float reward_control_weight_;
  int fingertip_;
  int target_;
};

}  // namespace

const TaskType kReacher = {.name = "Reacher-v5",
                           .xml_file = "reacher.xml",
                           .frame_skip = 2,
                           .max_episode_steps = 50,
                           .make = MakeTask<Reacher>,
                           .camera = CameraView{}};

}  // namespace tandem
