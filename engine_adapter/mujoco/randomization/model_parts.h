// ModelParts: the parts of a model that a contract can change.
//
// Data flow: mjModel -> FindModelParts -> draws; and, with a Contract, the
// names of the fields that have no effect on the model.
// Ownership: all environments of a model share one.
//
//   const ModelParts parts = FindModelParts(model);
//   UnusedFields(contract, parts, /*follows_commands=*/false);

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_RANDOMIZATION_MODEL_PARTS_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_RANDOMIZATION_MODEL_PARTS_H_

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
  // Some of its geoms may touch; with friction.
  bool has_contacts = false;
  bool has_friction = false;
  // Some geom is a height field.
  bool has_terrain = false;
  // Bodies that move, but for those compiled as "simple" (MuJoCo leaves entries
  // of their inertia matrix out that an offset would need).
  std::vector<int> offset_bodies;
  // Actuators whose force is proportional to their parameters: of the types
  // fixed, affine and muscle.
  std::vector<int> motors;
  // Those of them that take a position: their force is
  // kp * (ctrl - length), and maybe damping.
  std::vector<int> position_motors;
};

ModelParts FindModelParts(const mjModel& model);

// Those that the contract gives and that can have no effect, named as in the
// schema, in its order. Parts of a field are not distinguished: a noise on x
// and y is used by a base that moves along x only.
std::vector<std::string> UnusedFields(const Contract& contract,
                                      const ModelParts& parts,
                                      bool follows_commands);

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_RANDOMIZATION_MODEL_PARTS_H_
