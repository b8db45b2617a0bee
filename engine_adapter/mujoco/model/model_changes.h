// Model changes: the arrays in which an environment's own model differs from
// the compiled one, as bytes of a saved state. ModelHash: tells models apart.
//
// Data flow: own model -> SaveModelChanges -> bytes -> ReadModelChanges ->
// ModelChanges -> ApplyModelChanges -> another environment's own model.
//
//   TANDEM_RETURN_IF_ERROR(SaveModelChanges(original, own, &to));
//   const ModelChanges changes = ReadModelChanges(original, &from);
//   ApplyModelChanges(changes, original, own);

#pragma once

#include <mujoco/mujoco.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "engine_adapter/core/state_bytes.h"

namespace tandem {

struct ModelChanges {
  std::map<uint16_t, std::string> arrays;  // by their place among all arrays
  // Of the options and statistics, what a contract changes.
  std::array<mjtNum, 5> friction = {};  // opt.o_friction
  std::array<mjtNum, mjNREF> solref = {};
  mjtNum meaninertia = 0;
};

// kUnsupported: another array than those of numbers and frame alignments has
// changed; the text has its name.
absl::Status SaveModelChanges(const mjModel& original, const mjModel& model,
                              StateWriter* to);
// Refuses the bytes if they do not fit the model. Numbers may have any value.
ModelChanges ReadModelChanges(const mjModel& original, StateReader* from);
// Makes `model`, an own copy of `original`, differ by these changes alone.
void ApplyModelChanges(const ModelChanges& changes, const mjModel& original,
                       mjModel* model);

// The same number for the same compiled model, in every process.
uint64_t ModelHash(const mjModel& model);

}  // namespace tandem
