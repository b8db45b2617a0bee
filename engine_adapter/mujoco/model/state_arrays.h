// StateArrays: arrays of mjData that the user wants in the infos, by their
// names.
//
// Data flow: option "state" -> StateArrays; mjData -> StateArrays ->
// InfoWriter.
// Ownership: a task owns one. Every call is const and works on the caller's
// mjData.
//
//   StateArrays state(setup);  // of {"state": ["qpos", "xpos"]}
//   state.Put(data, infos);    // "qpos" of nq values, "xpos" of 3 * nbody

#pragma once

#include <mujoco/mujoco.h>

#include <cstddef>
#include <vector>

#include "engine_adapter/mujoco/model/row_writer.h"
#include "engine_adapter/mujoco/model/task_setup.h"

namespace tandem {

class StateArrays {
 public:
  // Reads the option. Refuses unknown names, and arrays of which the model has
  // no value.
  explicit StateArrays(TaskSetup& setup);

  // Puts the values as the last step or reset left them, in the option's order.
  void Put(const mjData& data, InfoWriter& infos) const;

 private:
  struct Chosen {
    const char* name;
    const mjtNum* (*values)(const mjData& data);
    size_t length;
  };

  std::vector<Chosen> chosen_;
};

}  // namespace tandem
