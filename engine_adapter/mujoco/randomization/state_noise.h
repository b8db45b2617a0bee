// Noise on the state that an episode starts from.
//
// Data flow: state after Task::Reset -> ShakeState -> mj_forward.
//
//   ShakeState(contract, parts, random, model, data);

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_RANDOMIZATION_STATE_NOISE_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_RANDOMIZATION_STATE_NOISE_H_

#include <mujoco/mujoco.h>

#include "engine_adapter/core/env_random.h"
#include "engine_adapter/mujoco/randomization/contract.h"
#include "engine_adapter/mujoco/randomization/model_parts.h"

namespace tandem {

// Normal noise: on the floating base's place and turn (of a free or ball joint
// by a rotation vector of three draws), on the other joints' positions, which
// stay within their limits, and velocities. Other free joints, of things that
// lie about, stay. Draws once for each number that it changes, in this order
// and the model's. No allocation.
void ShakeState(const Contract& contract, const ModelParts& parts,
                EnvRandom& random, const mjModel& model, mjData* data);

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_RANDOMIZATION_STATE_NOISE_H_
