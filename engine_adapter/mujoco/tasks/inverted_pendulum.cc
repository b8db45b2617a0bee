// InvertedPendulum-v5: balance a pole on a cart.
#include <algorithm>
#include <cmath>

#include "engine_adapter/mujoco/model/task.h"
#include "engine_adapter/mujoco/tasks/all_tasks.h"

namespace tandem {
namespace {

class InvertedPendulum final : public NoisyStartTask {
 public:
  explicit InvertedPendulum(TaskSetup& setup)
      : NoisyStartTask(setup, 1e-2, AddUniform, 0) {
    setup.NeedPositions(2);
    setup.NeedExactly(4, setup.model().nq + setup.model().nv,
                      "positions and velocities (nq + nv)");
  }

  StepOutcome Step(std::span<const float> /*action*/, mjData* data,
                   InfoWriter& infos) const override {
    Simulate(data);
    const auto is_finite = [](mjtNum value) { return std::isfinite(value); };
    const bool terminated = !std::ranges::all_of(Qpos(*data), is_finite) ||
                            !std::ranges::all_of(Qvel(*data), is_finite) ||
                            std::abs(data->qpos[1]) > 0.2;
    infos.Put("reward_survive", int64_t{terminated ? 0 : 1});
    return {.reward = terminated ? 0.0F : 1.0F, .terminated = terminated};
  }
};

}  // namespace

const TaskType kInvertedPendulum = {.name = "InvertedPendulum-v5",
                                    .xml_file = "inverted_pendulum.xml",
                                    .frame_skip = 2,
                                    .max_episode_steps = 1000,
                                    .make = MakeTask<InvertedPendulum>,
                                    .camera = CameraView{.distance = 2.04}};

}  // namespace tandem
