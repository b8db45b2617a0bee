// InvertedDoublePendulum-v5: balance a pole on a pole on a cart.
#include <algorithm>
#include <cmath>

#include "engine_adapter/mujoco/model/part_names.h"
#include "engine_adapter/mujoco/model/task.h"
#include "engine_adapter/mujoco/tasks/all_tasks.h"

namespace tandem {
namespace {

class InvertedDoublePendulum final : public NoisyStartTask {
 public:
  explicit InvertedDoublePendulum(TaskSetup& setup)
      : NoisyStartTask(setup, 0.1, AddNormal, 0) {
    healthy_reward_ = setup.options().Number("healthy_reward", 10);
    setup.NeedExactly(3, setup.model().nq, "positions (nq)");
    setup.NeedExactly(3, setup.model().nv, "velocities (nv)");
    setup.NeedAtLeast(1, setup.model().nsite, "site, at the tip");
  }

  void Observe(const mjData& data, ObsWriter& obs) const override {
    const std::span<const mjtNum> places = Qpos(data);
    const std::span<const mjtNum> speeds = Qvel(data);
    obs.Put({"qpos", PositionName}, places[0]);
    for (const size_t i : {1U, 2U}) {
      obs.Put({"sin", PositionName, i}, std::sin(places[i]));
    }
    for (const size_t i : {1U, 2U}) {
      obs.Put({"cos", PositionName, i}, std::cos(places[i]));
    }
    for (size_t i = 0; i < speeds.size(); ++i) {
      obs.Put({"qvel", VelocityName, i}, Clipped(speeds[i]));
    }
    obs.Put({"qfrc_constraint", VelocityName},
            Clipped(data.qfrc_constraint[0]));
  }

  StepOutcome Step(std::span<const float> /*action*/, mjData* data,
                   InfoWriter& infos) const override {
    Simulate(data);
    const double x = data->site_xpos[0];
    const double height = data->site_xpos[2];
    const double v1 = data->qvel[1];
    const double v2 = data->qvel[2];
    const bool terminated = height <= 1;
    const double distance_penalty =
        0.01 * (x * x) + (height - 2) * (height - 2);
    const double velocity_penalty = 1e-3 * (v1 * v1) + 5e-3 * (v2 * v2);
    const double survive = terminated ? 0 : healthy_reward_;
    infos.Put("reward_survive", survive);
    infos.Put("distance_penalty", -distance_penalty);
    infos.Put("velocity_penalty", -velocity_penalty);
    return {.reward = static_cast<float>(survive - distance_penalty -
                                         velocity_penalty),
            .terminated = terminated};
  }

 private:
  static mjtNum Clipped(mjtNum value) {
    return std::clamp<mjtNum>(value, -10, 10);
  }

  double healthy_reward_;
};

}  // namespace

const TaskType kInvertedDoublePendulum = {
    .name = "InvertedDoublePendulum-v5",
    .xml_file = "inverted_double_pendulum.xml",
    .frame_skip = 5,
    .max_episode_steps = 1000,
    .make = MakeTask<InvertedDoublePendulum>,
    .camera = CameraView{}};

}  // namespace tandem
