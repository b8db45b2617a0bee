// ModelParts: the parts of a model that a contract can change.
//
// Data flow: mjModel -> FindModelParts -> draws; and, with a Contract, the
// names of the fields that have no effect on the model.
// Ownership: all environments of a model share one.
//
//   const ModelParts parts = FindModelParts(model);
//   UnusedFields(contract, parts, /*follows_commands=*/false);

#pragma once

#include <mujoco/mujoco.h>

#include <string>
#include <vector>

#include "engine_adapter/mujoco/randomization/contract.h"
#include "engine_adapter/mujoco/randomization/floating_base.h"

namespace tandem {

struct ModelParts {
  FloatingBase base;
  // Hinges, slides and ball joints that are not the base's.
  std::vector<int> joints;
  bool has_contacts = false;  // two geoms can touch
  bool has_friction = false;  // such a contact has friction
  bool has_terrain = false;   // a geom is a height field
  // Moving bodies that are not "simple". In the inertia matrix of a simple body
  // MuJoCo omits entries that an offset needs.
  std::vector<int> offset_bodies;
  // Actuators of the types fixed, affine and muscle: their force is
  // proportional to their parameters.
  std::vector<int> motors;
  // Motors that take a position: kp * (ctrl - length), with or without damping.
  std::vector<int> position_motors;
};

ModelParts FindModelParts(const mjModel& model);

// Returns the fields that the contract sets and that can have no effect. Names
// and order are the schema's. A field is used if a part of it is: a base that
// moves along x only uses a noise on x and y.
std::vector<std::string> UnusedFields(const Contract& contract,
                                      const ModelParts& parts,
                                      bool follows_commands);

}  // namespace tandem
