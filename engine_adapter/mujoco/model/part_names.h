// Names of a model's parts, for people, and of the numbers of MuJoCo's arrays.
//
//   PositionName(model, 2);         // "root_z"
//   BodyNumberName<6>(model, 9);    // "torso/3", of an array of six a body
//
// A part without a name is called by its kind and number: "joint 3".

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_PART_NAMES_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_PART_NAMES_H_

#include <mujoco/mujoco.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tandem {

// As the model gives it; "" if it gives none. `type` is an mjtObj.
std::string OwnName(const mjModel& model, int type, int index);

std::string BodyName(const mjModel& model, int body);

// Of qpos[index], of qvel[index]: the joint's name, and which part of it where
// it has several.
std::string PositionName(const mjModel& model, int index);
std::string VelocityName(const mjModel& model, int index);

// Of array[index], in an array of so many numbers for each body.
template <int kNumbers>
std::string BodyNumberName(const mjModel& model, int index) {
  return absl::StrCat(BodyName(model, index / kNumbers), "/", index % kNumbers);
}
// Of xpos[index].
std::string BodyAxisName(const mjModel& model, int index);

// Of each actuator, all different: its own, else that of the joint which it
// moves.
std::vector<std::string> ActuatorNames(const mjModel& model);

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_PART_NAMES_H_
