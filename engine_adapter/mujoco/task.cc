#include "engine_adapter/mujoco/task.h"

namespace tandem {

void ResetWithNoise(const mjModel& model, double scale, mjData* data,
                    EnvRandom& random) {
  for (int i = 0; i < model.nq; ++i) {
    data->qpos[i] += random.Uniform(-scale, scale);
  }
  for (int i = 0; i < model.nv; ++i) {
    data->qvel[i] += scale * random.StandardNormal();
  }
  mj_forward(&model, data);
}

void Simulate(const mjModel& model, int frame_skip, mjData* data) {
  for (int i = 0; i < frame_skip; ++i) mj_step(&model, data);
  mj_rnePostConstraint(&model, data);
}

}  // namespace tandem
