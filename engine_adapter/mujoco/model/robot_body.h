// RobotOf: the body by which a viewer finds the robot of a model.
//
//   ComputeTransmission(model, data);
//   mju_copy3(at, data->xpos + 3 * RobotOf(model, *data));

#pragma once

#include <mujoco/mujoco.h>

namespace tandem {

// Computes the poses of the state, and which actuator moves which joint. Throws
// MujocoError.
void ComputeTransmission(const mjModel& model, mjData* data);

// Returns the root body of the kinematic tree that the most actuators move; the
// first body, if none moves any. ComputeTransmission has filled `data`.
int RobotOf(const mjModel& model, const mjData& data);

}  // namespace tandem
