// Hopper-v5: hop forward on one leg without falling. Walker2d-v5: walk forward
// on two legs without falling.
#include <algorithm>
#include <limits>

#include "engine_adapter/mujoco/model/numpy_sum.h"
#include "engine_adapter/mujoco/model/part_names.h"
#include "engine_adapter/mujoco/tasks/all_tasks.h"

namespace tandem {
namespace {

// The two tasks differ in the healthy states.
class PlanarWalker : public NoisyStartTask {
 public:
  PlanarWalker(TaskSetup& setup, const Range& healthy_z_range,
               const Range& healthy_angle_range)
      : NoisyStartTask(setup, 5e-3, AddUniform, 1) {
    TaskOptions& options = setup.options();
    forward_reward_weight_ = options.Number("forward_reward_weight", 1);
    ctrl_cost_weight_ =
        static_cast<float>(options.Number("ctrl_cost_weight", 1e-3));
    healthy_reward_ = options.Number("healthy_reward", 1);
    terminate_when_unhealthy_ = options.Bool("terminate_when_unhealthy", true);
    healthy_z_range_ = options.Range("healthy_z_range", healthy_z_range);
    healthy_angle_range_ =
        options.Range("healthy_angle_range", healthy_angle_range);
    setup.NeedPositions(3);
  }

  void Observe(const mjData& data, ObsWriter& obs) const override {
    PutPositions(data, obs);
    const std::span<const mjtNum> speeds = Qvel(data);
    for (size_t i = 0; i < speeds.size(); ++i) {
      obs.Put({"qvel", VelocityName, i},
              std::clamp<mjtNum>(speeds[i], -10, 10));
    }
  }

  void PutResetInfos(const mjData& data, InfoWriter& infos) const override {
    infos.Put("x_position", data.qpos[0]);
    infos.Put("z_distance_from_origin", data.qpos[1] - model().qpos0[1]);
  }

  StepOutcome Step(std::span<const float> action, mjData* data,
                   InfoWriter& infos) const override {
    const double before = data->qpos[0];
    Simulate(data);
    const double x_velocity = Velocity(before, data->qpos[0]);
    const bool healthy = IsHealthy(*data);
    const double forward = forward_reward_weight_ * x_velocity;
    const double survive = healthy ? healthy_reward_ : 0;
    const float ctrl_cost = ctrl_cost_weight_ * SumOfSquares(action);
    infos.Put("x_velocity", x_velocity);
    infos.Put("reward_forward", forward);
    infos.Put("reward_ctrl", -ctrl_cost);
    infos.Put("reward_survive", survive);
    return {.reward = static_cast<float>(forward + survive - double{ctrl_cost}),
            .terminated = !healthy && terminate_when_unhealthy_};
  }

 protected:
  virtual bool IsHealthy(const mjData& data) const {
    return IsWithin(data.qpos[1], healthy_z_range_) &&
           IsWithin(data.qpos[2], healthy_angle_range_);
  }

 private:
  double forward_reward_weight_;
  float ctrl_cost_weight_;
  double healthy_reward_;
  bool terminate_when_unhealthy_;
  Range healthy_z_range_;
  Range healthy_angle_range_;
};

class Hopper final : public PlanarWalker {
 public:
  explicit Hopper(TaskSetup& setup)
      : PlanarWalker(setup, {0.7, std::numeric_limits<double>::infinity()},
                     {-0.2, 0.2}),
        healthy_state_range_(
            setup.options().Range("healthy_state_range", {-100, 100})) {}

 private:
  bool IsHealthy(const mjData& data) const override {
    const auto is_healthy = [&](mjtNum value) {
      return IsWithin(value, healthy_state_range_);
    };
    return std::ranges::all_of(Qpos(data).subspan(2), is_healthy) &&
           std::ranges::all_of(Qvel(data), is_healthy) &&
           PlanarWalker::IsHealthy(data);
  }

  Range healthy_state_range_;
};

class Walker2d final : public PlanarWalker {
 public:
  explicit Walker2d(TaskSetup& setup)
      : PlanarWalker(setup, {0.8, 2}, {-1, 1}) {}
};

}  // namespace

const TaskType kHopper = {.name = "Hopper-v5",
                          .xml_file = "hopper.xml",
                          .frame_skip = 4,
                          .max_episode_steps = 1000,
                          .make = MakeTask<Hopper>,
                          .camera = CameraView{.distance = 3,
                                               .lookat = {{0, 0, 1.15}},
                                               .elevation = -20,
                                               .follow_body = 2}};

const TaskType kWalker2d = {.name = "Walker2d-v5",
                            .xml_file = "walker2d_v5.xml",
                            .frame_skip = 4,
                            .max_episode_steps = 1000,
                            .make = MakeTask<Walker2d>,
                            .camera = CameraView{.distance = 4,
                                                 .lookat = {{0, 0, 1.15}},
                                                 .elevation = -20,
                                                 .follow_body = 2}};

}  // namespace tandem
