// Names of a model's parts and of the elements of MuJoCo's arrays, for display.
//
//   PositionName(model, 2);         // "root_z"
//   BodyNumberName<6>(model, 9);    // "torso/3"; the array has 6 per body
//
// A part without a name gets its kind and number as name: "joint 3".

#pragma once

#include <mujoco/mujoco.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tandem {

// Returns the name in the model, or "". `type` is an mjtObj.
std::string OwnName(const mjModel& model, int type, int index);

// Returns the names of parts of a kind, for an error text: at most 20.
std::string OwnNames(const mjModel& model, int type, mjtSize count);

std::string BodyName(const mjModel& model, int body);

// Return the name of qpos[index] and of qvel[index]: the joint's name, with a
// suffix if the joint has several positions or velocities.
std::string PositionName(const mjModel& model, int index);
std::string VelocityName(const mjModel& model, int index);

// Returns the name of array[index]; the array has kNumbers for each body.
template <int kNumbers>
std::string BodyNumberName(const mjModel& model, int index) {
  return absl::StrCat(BodyName(model, index / kNumbers), "/", index % kNumbers);
}
// Returns the name of xpos[index].
std::string BodyAxisName(const mjModel& model, int index);

// Returns a unique name for each actuator: its own name, or the name of the
// joint that it moves.
std::vector<std::string> ActuatorNames(const mjModel& model);

}  // namespace tandem
