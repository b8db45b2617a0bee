// TaskDescription: what a client cannot see in the arrays: spaces and infos.
//
// Data flow: engine -> TaskDescription -> JSON in the region -> client, which
// makes Gymnasium's spaces and infos of it. docs/protocol.md has the JSON.
// Ownership: constant in the life of an engine.
//
//   TaskDescription description;
//   description.action_space = DiscreteSpace{.n = 2};
//   description.infos = {{.name = "x_position", .at_reset = true}};

#ifndef TANDEM_ENGINE_ADAPTER_CORE_TASK_DESCRIPTION_H_
#define TANDEM_ENGINE_ADAPTER_CORE_TASK_DESCRIPTION_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

namespace tandem {

// What a user of Gymnasium's own environment gets; the region holds float32
// observations and actions, and float64 infos, whatever this says.
enum class NumberType : uint8_t { kFloat64, kFloat32, kInt64 };

// Bounds are one for every element, or a single one for them all.
struct BoxSpace {
  std::vector<double> low = {-std::numeric_limits<double>::infinity()};
  std::vector<double> high = {std::numeric_limits<double>::infinity()};
  NumberType type = NumberType::kFloat32;
};

// One number of 0 .. n - 1.
struct DiscreteSpace {
  int64_t n = 0;
};

using Space = std::variant<BoxSpace, DiscreteSpace>;

// One or more columns of the infos rows; fields lie there in their order.
struct InfoField {
  std::string name = {};
  std::optional<uint32_t> length = {};  // of an array, also 0; none: a number
  NumberType type = NumberType::kFloat64;
  bool at_reset = false;  // Gymnasium's reset() gives it, too; step() always
};

struct TaskDescription {
  BoxSpace observation_space = {};
  Space action_space = {};
  uint32_t max_episode_steps = 0;  // that truncate an episode; 0: none
  std::vector<InfoField> infos = {};
};

// Columns of one row of infos.
uint32_t InfoSize(const TaskDescription& description);

// kInvalidArgument if the spaces don't fit the sizes, or infos don't differ in
// name.
absl::StatusOr<std::string> ToJson(const TaskDescription& description,
                                   uint32_t obs_size, uint32_t act_size);

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_CORE_TASK_DESCRIPTION_H_
