// TaskDescription: the spaces, infos and time limit of a task, which the
// region's arrays do not show.
//
// Data flow: engine -> TaskDescription -> JSON in the region -> client, which
// makes Gymnasium's spaces and infos from it. docs/protocol.md defines the
// JSON.
// Ownership: the engine owns it and never changes it.
//
//   TaskDescription description;
//   description.action_space = DiscreteSpace{.n = 2};
//   description.infos = {{.name = "x_position", .at_reset = true}};

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

// The number type that Gymnasium's own environment returns. The region always
// holds float32 observations and actions, and float64 infos.
enum class NumberType : uint8_t { kFloat64, kFloat32, kInt64 };

// `low` and `high` have one bound for each element, or one bound for all.
struct BoxSpace {
  std::vector<double> low = {-std::numeric_limits<double>::infinity()};
  std::vector<double> high = {std::numeric_limits<double>::infinity()};
  NumberType type = NumberType::kFloat32;
};

// One integer in 0 .. n - 1.
struct DiscreteSpace {
  int64_t n = 0;
};

using Space = std::variant<BoxSpace, DiscreteSpace>;

// One or more columns of a row of infos. The columns have the order of the
// fields.
struct InfoField {
  std::string name = {};
  std::optional<uint32_t> length = {};  // none: a number, no array
  NumberType type = NumberType::kFloat64;
  bool at_reset = false;  // also in Gymnasium's reset(); step() always has it
};

// A method that the engine defines itself (OwnMethodPort).
struct OwnMethod {
  std::string name;  // at most kMostOwnNameBytes
  // Of request and answer; JSON is converted by tandem's clients in Python.
  std::string content_type = "application/octet-stream";
  std::string help = {};  // one line
};
inline constexpr size_t kMostOwnNameBytes = 63;

struct TaskDescription {
  BoxSpace observation_space = {};
  Space action_space = {};
  // JSON of a space of size 0, whose values are in fields; empty: unknown.
  std::string observation_fields = {};
  std::string action_fields = {};
  uint32_t max_episode_steps = 0;  // the time limit; 0: none
  bool has_rewards = true;         // false: all rewards are 0, since the engine
                                   // computes none
  std::vector<InfoField> infos = {};
  std::vector<OwnMethod> own_methods = {};
};

// Returns the number of columns in one row of infos.
uint32_t InfoSize(const TaskDescription& description);

// Returns the JSON. A space of size 0 is that of the fields, and absent if it
// is unknown. kInvalidArgument if the spaces do not have these sizes, if a
// bound is NaN or a low one above the high one, if two infos or two methods
// have one name, or if a text is not UTF-8 or not JSON. The text names the
// field.
absl::StatusOr<std::string> ToJson(const TaskDescription& description,
                                   uint32_t obs_size, uint32_t act_size);

// Reads such JSON; a missing key is the default, but a space needs its type
// (and n), an info its name. A space of size 0 may be any JSON object.
// kInvalidArgument: it is no such JSON, or a key is unknown, or a shape is not
// [obs_size] or [act_size].
absl::StatusOr<TaskDescription> TaskDescriptionFrom(absl::string_view text,
                                                    uint32_t obs_size,
                                                    uint32_t act_size);

}  // namespace tandem
