#include "engine_adapter/task_description.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/error.h"

namespace tandem {
namespace {

using nlohmann::json;

constexpr std::array kTypeNames = {"float64", "float32", "int64"};

const char* NumberName(NumberType type) {
  return kTypeNames.at(static_cast<size_t>(type));
}

// JSON has no infinities; they are written as text.
json BoundsToJson(const std::vector<double>& bounds) {
  json values = json::array();
  for (const double bound : bounds) {
    if (std::isinf(bound)) {
      values.push_back(bound > 0 ? "inf" : "-inf");
    } else {
      values.push_back(bound);
    }
  }
  return values;
}

// The functions below return what is wrong; empty: nothing.

std::string ProblemOf(absl::string_view field, const DiscreteSpace& space,
                      uint32_t size) {
  // The action is a float32, which represents every integer up to 2^24.
  constexpr int64_t kMost = int64_t{1} << 24;
  if (space.n <= 0 || space.n > kMost) {
    return absl::StrCat(field, ".n: expected 1 to ", kMost, ", found ",
                        space.n);
  }
  if (size == 1) return "";
  return absl::StrCat(field, ": expected a Box, or 1 element, found a ",
                      "Discrete of ", size, " elements");
}

std::string ProblemOf(absl::string_view field, const BoxSpace& box,
                      uint32_t size) {
  for (const auto& [bounds, name] :
       {std::pair(&box.low, ".low"), std::pair(&box.high, ".high")}) {
    if (bounds->empty() || (bounds->size() != 1 && bounds->size() != size)) {
      return absl::StrCat(field, name, ": expected 1 bound, or one for each ",
                          "of ", size, " elements, found ", bounds->size());
    }
    for (size_t i = 0; i < bounds->size(); ++i) {
      if (!std::isnan((*bounds)[i])) continue;
      return absl::StrCat(field, name, "[", i,
                          "]: expected a number or an infinity, found NaN");
    }
  }
  for (size_t i = 0; i < std::max(box.low.size(), box.high.size()); ++i) {
    const double low = box.low[box.low.size() == 1 ? 0 : i];
    const double high = box.high[box.high.size() == 1 ? 0 : i];
    if (low <= high) continue;
    return absl::StrCat(field, ".low[", i, "]: expected at most the high ",
                        high, ", found ", low);
  }
  return "";
}

json SpaceToJson(const Space& space, uint32_t size) {
  if (const auto* discrete = std::get_if<DiscreteSpace>(&space)) {
    return {{"type", "Discrete"}, {"n", discrete->n}};
  }
  const auto& box = std::get<BoxSpace>(space);
  return {{"type", "Box"},
          {"shape", {size}},
          {"low", BoundsToJson(box.low)},
          {"high", BoundsToJson(box.high)},
          {"dtype", NumberName(box.type)}};
}

// The functions below throw json::exception if a value has another type, and
// std::invalid_argument with the reason if it has another content.

void AllowKeys(const json& object, const char* what,
               std::initializer_list<const char*> keys) {
  for (const auto& [key, value] : object.items()) {
    if (std::ranges::find(keys, key) != keys.end()) continue;
    throw std::invalid_argument(absl::StrCat("expected in ", what, " the keys ",
                                             absl::StrJoin(keys, ", "),
                                             ", found '", key, "'"));
  }
}

// Far more than a region can hold; sums of these do not overflow.
constexpr int64_t kMostCount = int64_t{1} << 24;

// nlohmann's own conversion accepts negative and broken numbers.
int64_t CountFrom(const json& value, const char* what) {
  if (value.is_number_unsigned() && value <= kMostCount) {
    return value.get<int64_t>();
  }
  throw std::invalid_argument(absl::StrCat("expected as ", what,
                                           " an integer, 0 to ", kMostCount,
                                           ", found ", value.dump()));
}

NumberType TypeFrom(const json& object) {
  const std::string name = object.at("dtype").get<std::string>();
  const auto found = std::ranges::find(kTypeNames, name);
  if (found == kTypeNames.end()) {
    throw std::invalid_argument(absl::StrCat("expected a dtype of ",
                                             absl::StrJoin(kTypeNames, ", "),
                                             ", found '", name, "'"));
  }
  return static_cast<NumberType>(std::distance(kTypeNames.begin(), found));
}

std::vector<double> BoundsFrom(const json& values) {
  std::vector<double> bounds;
  for (const json& value : values) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    bounds.push_back(value == "inf"    ? kInfinity
                     : value == "-inf" ? -kInfinity
                                       : value.get<double>());
  }
  return bounds;
}

Space SpaceFrom(const json& object, const char* what, uint32_t size) {
  if (object.at("type") == "Discrete") {
    AllowKeys(object, what, {"type", "n"});
    return DiscreteSpace{.n = CountFrom(object.at("n"), "n")};
  }
  AllowKeys(object, what, {"type", "shape", "low", "high", "dtype"});
  if (object.at("type") != "Box" ||
      object.value("shape", json({size})) != json({size})) {
    throw std::invalid_argument(absl::StrCat("expected as ", what,
                                             " a Box of shape [", size,
                                             "], found ", object.dump()));
  }
  BoxSpace box;
  if (object.contains("low")) box.low = BoundsFrom(object["low"]);
  if (object.contains("high")) box.high = BoundsFrom(object["high"]);
  if (object.contains("dtype")) box.type = TypeFrom(object);
  return box;
}

// Returns the JSON of a space of fields; empty: there is none.
std::string FieldsFrom(const json& all, const char* what) {
  if (!all.contains(what)) return "";
  if (!all[what].is_object()) {
    throw std::invalid_argument(absl::StrCat("expected an object as ", what,
                                             ", found ", all[what].dump()));
  }
  return all[what].dump();
}

InfoField InfoFrom(const json& object) {
  AllowKeys(object, "an info", {"name", "length", "dtype", "at_reset"});
  InfoField field = {.name = object.at("name").get<std::string>()};
  const json length = object.value("length", json());
  if (!length.is_null()) {
    field.length = static_cast<uint32_t>(CountFrom(length, "length"));
  }
  if (object.contains("dtype")) field.type = TypeFrom(object);
  field.at_reset = object.value("at_reset", false);
  return field;
}

OwnMethod OwnMethodFrom(const json& object) {
  AllowKeys(object, "a method", {"name", "content_type", "help"});
  OwnMethod method = {.name = object.at("name").get<std::string>()};
  method.content_type = object.value("content_type", method.content_type);
  method.help = object.value("help", "");
  return method;
}

TaskDescription DescriptionFrom(const json& all, uint32_t obs_size,
                                uint32_t act_size) {
  AllowKeys(all, "the description",
            {"observation_space", "action_space", "max_episode_steps",
             "has_rewards", "infos", "own_methods"});
  TaskDescription description;
  if (obs_size == 0) {
    description.observation_fields = FieldsFrom(all, "observation_space");
  } else if (all.contains("observation_space")) {
    const Space space =
        SpaceFrom(all["observation_space"], "observation_space", obs_size);
    if (!std::holds_alternative<BoxSpace>(space)) {
      throw std::invalid_argument("expected a Box as observation_space");
    }
    description.observation_space = std::get<BoxSpace>(space);
  }
  if (act_size == 0) {
    description.action_fields = FieldsFrom(all, "action_space");
  } else if (all.contains("action_space")) {
    description.action_space =
        SpaceFrom(all["action_space"], "action_space", act_size);
  }
  if (all.contains("max_episode_steps")) {
    description.max_episode_steps = static_cast<uint32_t>(
        CountFrom(all["max_episode_steps"], "max_episode_steps"));
  }
  description.has_rewards = all.value("has_rewards", true);
  uint64_t columns = 0;
  for (const json& info : all.value("infos", json::array())) {
    description.infos.push_back(InfoFrom(info));
    columns += description.infos.back().length.value_or(1);
  }
  (void)CountFrom(columns, "the sum of the infos' lengths");
  for (const json& method : all.value("own_methods", json::array())) {
    description.own_methods.push_back(OwnMethodFrom(method));
  }
  return description;
}

}  // namespace

uint32_t InfoSize(const TaskDescription& description) {
  uint32_t columns = 0;
  for (const InfoField& field : description.infos) {
    columns += field.length.value_or(1);
  }
  return columns;
}

absl::StatusOr<std::string> ToJson(const TaskDescription& description,
                                   uint32_t obs_size, uint32_t act_size) {
  std::string problem =
      ProblemOf("observation_space", description.observation_space, obs_size);
  if (problem.empty()) {
    problem = std::visit(
        [&](const auto& space) {
          return ProblemOf("action_space", space, act_size);
        },
        description.action_space);
  }
  if (!problem.empty()) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat("task description: ", problem));
  }
  json infos = json::array();
  std::set<std::string> names;
  for (const InfoField& field : description.infos) {
    if (!names.insert(field.name).second) {
      return MakeError(ErrorCode::kInvalidArgument,
                       absl::StrCat("task description: expected infos of "
                                    "different names, found '",
                                    field.name, "' twice"));
    }
    infos.push_back({{"name", field.name},
                     {"length", field.length ? json(*field.length) : json()},
                     {"dtype", NumberName(field.type)},
                     {"at_reset", field.at_reset}});
  }
  json all = {{"max_episode_steps", description.max_episode_steps},
              {"infos", infos}};
  if (!description.has_rewards) all["has_rewards"] = false;
  names.clear();
  for (const OwnMethod& method : description.own_methods) {
    if (method.name.empty() || method.name.size() > kMostOwnNameBytes ||
        !names.insert(method.name).second) {
      return MakeError(
          ErrorCode::kInvalidArgument,
          absl::StrCat("own methods: expected different names of 1 to ",
                       kMostOwnNameBytes, " bytes, found '", method.name, "'"));
    }
    all["own_methods"].push_back({{"name", method.name},
                                  {"content_type", method.content_type},
                                  {"help", method.help}});
  }
  try {
    if (obs_size != 0) {
      all["observation_space"] =
          SpaceToJson(description.observation_space, obs_size);
    } else if (!description.observation_fields.empty()) {
      all["observation_space"] = json::parse(description.observation_fields);
    }
    if (act_size != 0) {
      all["action_space"] = SpaceToJson(description.action_space, act_size);
    } else if (!description.action_fields.empty()) {
      all["action_space"] = json::parse(description.action_fields);
    }
    return all.dump();
  } catch (const json::exception& error) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat("task description: expected names in UTF-8, "
                                  "and JSON of fields, found: ",
                                  error.what()));
  }
}

absl::StatusOr<TaskDescription> TaskDescriptionFrom(absl::string_view text,
                                                    uint32_t obs_size,
                                                    uint32_t act_size) {
  std::string problem;
  try {
    return DescriptionFrom(json::parse(text), obs_size, act_size);
  } catch (const json::exception& error) {
    problem = absl::StrCat("found other JSON: ", error.what());
  } catch (const std::invalid_argument& error) {
    problem = error.what();
  }
  return MakeError(ErrorCode::kInvalidArgument,
                   absl::StrCat("task description: expected JSON as "
                                "docs/protocol.md describes it; ",
                                problem));
}

}  // namespace tandem
