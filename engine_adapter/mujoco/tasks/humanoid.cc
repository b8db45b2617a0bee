// Humanoid-v5: walk forward on two legs without falling.
#include <algorithm>
#include <limits>
#include <utility>

#include "engine_adapter/mujoco/model/numpy_sum.h"
#include "engine_adapter/mujoco/model/reset_noise.h"
#include "engine_adapter/mujoco/tasks/all_tasks.h"
#include "engine_adapter/mujoco/tasks/humanoid_observation.h"

namespace tandem {
namespace {

class Humanoid final : public Task {
 public:
  explicit Humanoid(TaskSetup& setup) : Task(setup), observation_(setup) {
    TaskOptions& options = setup.options();
    forward_reward_weight_ = options.Number("forward_reward_weight", 1.25);
    ctrl_cost_weight_ = options.Number("ctrl_cost_weight", 0.1);
    contact_cost_weight_ = options.Number("contact_cost_weight", 5e-7);
    contact_cost_range_ = options.Range(
        "contact_cost_range", {-std::numeric_limits<double>::infinity(), 10});
    healthy_reward_ = options.Number("healthy_reward", 5);
    terminate_when_unhealthy_ = options.Bool("terminate_when_unhealthy", true);
    healthy_z_range_ = options.Range("healthy_z_range", {1, 2});
    reset_noise_scale_ = options.Number("reset_noise_scale", 1e-2, 0);
    setup.NeedPositions(3);
  }

  void Reset(mjData* data, EnvRandom& random) const override {
    AddUniform(Qpos(data), reset_noise_scale_, random);
    AddUniform(Qvel(data), reset_noise_scale_, random);
  }

  void Observe(const mjData& data, ObsWriter& obs) const override {
    observation_.Put(model(), data, obs);
  }

  void PutResetInfos(const mjData& data, InfoWriter& infos) const override {
    const auto tendons = static_cast<size_t>(model().ntendon);
    infos.Put("x_position", data.qpos[0]);
    infos.Put("y_position", data.qpos[1]);
    infos.Put("tendon_length", {data.ten_length, tendons});
    infos.Put("tendon_velocity", {data.ten_velocity, tendons});
    infos.Put("distance_from_origin", mju_norm(data.qpos, 2));
  }

  StepOutcome Step(std::span<const float> /*action*/, mjData* data,
                   InfoWriter& infos) const override {
    const double x_before = MassCenter(*data, 0);
    const double y_before = MassCenter(*data, 1);
    Simulate(data);
    const double x_velocity = Velocity(x_before, MassCenter(*data, 0));
    const double y_velocity = Velocity(y_before, MassCenter(*data, 1));

    const bool healthy = IsWithin(data->qpos[2], healthy_z_range_);
    const double forward = forward_reward_weight_ * x_velocity;
    const double survive = healthy ? healthy_reward_ : 0;
    const double ctrl_cost =
        ctrl_cost_weight_ * SumOfSquares(std::span<const mjtNum>(
                                data->ctrl, static_cast<size_t>(model().nu)));
    const double contact_cost = std::clamp(
        contact_cost_weight_ *
            SumOfSquares(std::span<const mjtNum>(data->cfrc_ext, Bodies() * 6)),
        contact_cost_range_.first, contact_cost_range_.second);
    infos.Put("x_velocity", x_velocity);
    infos.Put("y_velocity", y_velocity);
    infos.Put("reward_survive", survive);
    infos.Put("reward_forward", forward);
    infos.Put("reward_ctrl", -ctrl_cost);
    infos.Put("reward_contact", -contact_cost);
    return {.reward = static_cast<float>((forward + survive) -
                                         (ctrl_cost + contact_cost)),
            .terminated = !healthy && terminate_when_unhealthy_};
  }

 private:
  size_t Bodies() const { return static_cast<size_t>(model().nbody); }

  double MassCenter(const mjData& data, size_t axis) const {
    double sum = 0;
    for (size_t i = 0; i < Bodies(); ++i) {
      sum += model().body_mass[i] * data.xipos[3 * i + axis];
    }
    // Not once and for all: each episode may have masses of its own.
    return sum / NumpySum<double>(0, Bodies(), [&](size_t i) {
             return model().body_mass[i];
           });
  }

  HumanoidObservation observation_;
  double forward_reward_weight_;
  double ctrl_cost_weight_;
  double contact_cost_weight_;
  std::pair<double, double> contact_cost_range_;
  double healthy_reward_;
  bool terminate_when_unhealthy_;
  Range healthy_z_range_;
  double reset_noise_scale_;
};

}  // namespace

const TaskType kHumanoid = {.name = "Humanoid-v5",
                            .xml_file = "humanoid.xml",
                            .frame_skip = 5,
                            .max_episode_steps = 1000,
                            .make = MakeTask<Humanoid>,
                            .camera = CameraView{.distance = 4,
                                                 .lookat = {{0, 0, 2}},
                                                 .elevation = -20,
                                                 .follow_body = 1}};

}  // namespace tandem
