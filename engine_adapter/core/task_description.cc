#include "engine_adapter/core/task_description.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "transport/base/error.h"

namespace tandem {
namespace {

using nlohmann::json;

const char* NameOf(NumberType type) {
  constexpr std::array kNames = {"float64", "float32", "int64"};
  return kNames.at(static_cast<size_t>(type));
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

bool Fits(const Space& space, uint32_t size) {
  if (const auto* discrete = std::get_if<DiscreteSpace>(&space)) {
    // The action is a float32, which represents every integer up to 2^24.
    constexpr int64_t kMost = int64_t{1} << 24;
    return discrete->n > 0 && discrete->n <= kMost && size == 1;
  }
  const auto& box = std::get<BoxSpace>(space);
  const auto fits = [&](const std::vector<double>& bounds) {
    const auto is_nan = [](double bound) { return std::isnan(bound); };
    return (bounds.size() == 1 || bounds.size() == size) &&
           std::ranges::none_of(bounds, is_nan);
  };
  return fits(box.low) && fits(box.high);
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
          {"dtype", NameOf(box.type)}};
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
  if (!Fits(description.observation_space, obs_size) ||
      !Fits(description.action_space, act_size)) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat(
            "task description: expected spaces of ", obs_size,
            " observations and ", act_size,
            " actions, found other sizes; a box has one bound or one for "
            "each element, none of them NaN, a discrete space has one "
            "element and at most 2^24 values"));
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
                     {"dtype", NameOf(field.type)},
                     {"at_reset", field.at_reset}});
  }
  const json all = {
      {"observation_space",
       SpaceToJson(description.observation_space, obs_size)},
      {"action_space", SpaceToJson(description.action_space, act_size)},
      {"max_episode_steps", description.max_episode_steps},
      {"infos", infos}};
  try {
    return all.dump();
  } catch (const json::exception& error) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat("task description: expected names in UTF-8, "
                                  "found: ",
                                  error.what()));
  }
}

}  // namespace tandem
