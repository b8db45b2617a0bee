// HumanoidStandup-v5: get up from lying on the floor.
#include <algorithm>
#include <limits>
#include <utility>

#include "engine_adapter/mujoco/model/numpy_sum.h"
#include "engine_adapter/mujoco/model/reset_noise.h"
#include "engine_adapter/mujoco/tasks/all_tasks.h"
#include "engine_adapter/mujoco/tasks/humanoid_observation.h"

namespace tandem {
namespace {

class HumanoidStandup final : public Task {
 public:
  explicit HumanoidStandup(TaskSetup& setup)
      : Task(setup), observation_(setup) {
    TaskOptions& options = setup.options();
    options.Number("uph_cost_weight", 1);  // Gymnasium doesn't use it, either
    ctrl_cost_weight_ = options.Number("ctrl_cost_weight", 0.1);
    impact_cost_weight_ = options.Number("impact_cost_weight", 5e-7);
    impact_cost_range_ = options.Range(
        "impact_cost_range", {-std::numeric_limits<double>::infinity(), 10});
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
    infos.Put("z_distance_from_origin", data.qpos[2] - model().qpos0[2]);
    infos.Put("tendon_length", {data.ten_length, tendons});
    infos.Put("tendon_velocity", {data.ten_velocity, tendons});
  }

  StepOutcome Step(std::span<const float> /*action*/, mjData* data,
                   InfoWriter& infos) const override {
    Simulate(data);
    const double up = data->qpos[2] / model().opt.timestep;
    const double ctrl_cost =
        ctrl_cost_weight_ * SumOfSquares(std::span<const mjtNum>(
                                data->ctrl, static_cast<size_t>(model().nu)));
    const double impact_cost = std::clamp(
        impact_cost_weight_ *
            SumOfSquares(std::span<const mjtNum>(
                data->cfrc_ext, static_cast<size_t>(model().nbody) * 6)),
        impact_cost_range_.first, impact_cost_range_.second);
    infos.Put("reward_linup", up);
    infos.Put("reward_quadctrl", -ctrl_cost);
    infos.Put("reward_impact", -impact_cost);
    return {.reward = static_cast<float>(up - ctrl_cost - impact_cost + 1),
            .terminated = false};
  }

 private:
  HumanoidObservation observation_;
  double ctrl_cost_weight_;
  double impact_cost_weight_;
  std::pair<double, double> impact_cost_range_;
  double reset_noise_scale_;
};

}  // namespace

const TaskType kHumanoidStandup = {
    .name = "HumanoidStandup-v5",
    .xml_file = "humanoidstandup.xml",
    .frame_skip = 5,
    .max_episode_steps = 1000,
    .make = MakeTask<HumanoidStandup>,
    .camera = CameraView{.distance = 4,
                         .lookat = {{0, 0, 0.8925}},
                         .elevation = -20,
                         .follow_body = 1}};

}  // namespace tandem
