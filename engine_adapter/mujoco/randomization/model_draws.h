// What a contract makes of an environment's own model, at each of its resets.
//
// Data flow: original model, Contract, random stream -> the environment's
// model.
//
//   RestoreModel(original, model);
//   DrawModel(contract, parts, random, model, data);

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_RANDOMIZATION_MODEL_DRAWS_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_RANDOMIZATION_MODEL_DRAWS_H_

#include <mujoco/mujoco.h>

#include "engine_adapter/core/env_random.h"
#include "engine_adapter/mujoco/randomization/contract.h"
#include "engine_adapter/mujoco/randomization/model_parts.h"

namespace tandem {

// Copies back all that DrawModel may have changed, bit for bit, and nothing
// else: what others changed in the model (a body's place) stays. No allocation.
void RestoreModel(const mjModel& original, mjModel* model);

// `model` is as RestoreModel leaves it. One number for each range, in the
// contract's order; com_offset: one for each axis. Uses `data` as scratch:
// mj_resetData has to follow. Throws MujocoError; allocates nothing.
void DrawModel(const Contract& contract, const ModelParts& parts,
               EnvRandom& random, mjModel* model, mjData* data);

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_RANDOMIZATION_MODEL_DRAWS_H_
