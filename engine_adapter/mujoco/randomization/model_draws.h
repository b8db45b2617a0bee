// Changes an environment's own model by a contract, at each reset.
//
// Data flow: original model, Contract, random stream -> the environment's
// model.
//
//   RestoreModel(original, model);
//   DrawModel(contract, parts, random, model, data);

#pragma once

#include <mujoco/mujoco.h>

#include "engine_adapter/core/env_random.h"
#include "engine_adapter/mujoco/randomization/contract.h"
#include "engine_adapter/mujoco/randomization/model_parts.h"

namespace tandem {

// Returns the coefficient of restitution of a contact. MuJoCo has no such
// coefficient. Its contact is a damped spring, x'' + 2 z w x' + w^2 x = 0, with
// z = `damping_ratio`. The contact starts at speed v, and ends when the spring
// would begin to pull. With s = sqrt(|1 - z^2|), the speed is then
//   v * exp(-z / s * atan2(2 z s, 2 z^2 - 1))      z < 1
//   v * exp(-2)                                    z = 1
//   v * exp(-z / s * log((z + s) / (z - s)))       z > 1
// (Schwager and Poeschel, "Coefficient of restitution and linear-dashpot model
// revisited", 2007). The coefficient falls with z, from 1 to 0.
double RestitutionOf(double damping_ratio);

// The inverse of RestitutionOf, for 0 <= restitution <= 1. The result is in
// 1e-4 .. 1e4.
double DampingRatioFor(double restitution);

// Sets the damping ratio of `solref`, which has either of its two formats. The
// stiffness does not change. The damping is limited to the value that stops all
// motion in one time step. docs/randomization.md states the accuracy.
void SetRestitution(double restitution, double timestep, mjtNum* solref);

// Restores, bit for bit, all values that DrawModel can change. Other values do
// not change, such as a body's place that a service has set. Allocates nothing.
void RestoreModel(const mjModel& original, mjModel* model);

// Draws one number for each range, in the contract's order; for com_offset one
// for each axis. Call RestoreModel before and mj_resetData after it: it uses
// `data` as scratch memory. Throws MujocoError. Allocates nothing.
void DrawModel(const Contract& contract, const ModelParts& parts,
               EnvRandom& random, mjModel* model, mjData* data);

}  // namespace tandem
