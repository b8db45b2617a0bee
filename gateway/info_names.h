// The names of a step's infos and rewards, from the task's description.
//
// Data flow: the description's JSON (docs/protocol.md, "Infos and the
// description") -> a name for each column; whether there is a reward.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "schema/layout/lrbc.h"
#include "transport/region.h"

namespace tandem::gateway {

struct StepNames {
  std::vector<std::string> infos;  // of each column
  // Whether the engine computes rewards. If not, they are all 0: programs see
  // no reward.
  bool has_reward = true;
};

// Returns the names of `columns` infos: "x_position" for a number, "forces_0",
// "forces_1" and so on for an array. Columns without a name in the description,
// which is the engine's untrusted text, are named "info_7" by their number.
StepNames StepNamesOf(absl::string_view description, size_t columns);

// Returns the names of a region. `plan` is its checked header.
StepNames StepNamesOf(const LrbcHeader& plan, const RegionMapping& mapping);

}  // namespace tandem::gateway
