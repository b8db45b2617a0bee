// How Gymnasium's tasks shake the state that an episode starts from.
//
//   AddUniform(Qpos(data), reset_noise_scale_, random);
//   AddNormal(Qvel(data), reset_noise_scale_, random);

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_RESET_NOISE_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_RESET_NOISE_H_

#include <mujoco/mujoco.h>

#include <span>

#include "engine_adapter/core/env_random.h"

namespace tandem {

// One draw for each value, in their order, also where `scale` is 0.
inline void AddUniform(std::span<mjtNum> values, double scale,
                       EnvRandom& random) {
  for (mjtNum& value : values) value += random.Uniform(-scale, scale);
}

inline void AddNormal(std::span<mjtNum> values, double scale,
                      EnvRandom& random) {
  for (mjtNum& value : values) value += scale * random.StandardNormal();
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_RESET_NOISE_H_
