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

// MuJoCo has no coefficient of restitution; a contact is a spring with a
// damper. Of x'' + 2 z w x' + w^2 x = 0 that is hit at speed v, the force pulls
// from some moment on, before x is 0 again. A contact cannot pull: there it
// ends, and the speed is then, with s = sqrt(|1 - z^2|),
//   v * exp(-z / s * atan2(2 z s, 2 z^2 - 1))      z < 1
//   v * exp(-2)                                    z = 1
//   v * exp(-z / s * log((z + s) / (z - s)))       z > 1
// (Schwager and Poeschel, "Coefficient of restitution and linear-dashpot model
// revisited", 2007.) Falls with z, from 1 to 0.
double RestitutionOf(double damping_ratio);

// Its inverse, for 0 <= restitution <= 1; at most 1e4, at least 1e-4.
double DampingRatioFor(double restitution);

// Gives `solref`, in either of its two formats, the damping ratio for that
// coefficient, and leaves its stiffness; the damping is no more than one that
// stops all motion in one time step. How near a bounce comes to it:
// docs/randomization.md.
void SetRestitution(double restitution, double timestep, mjtNum* solref);

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
