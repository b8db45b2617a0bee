#include "gateway/info_names.h"

#include <cstdint>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace tandem::gateway {

StepNames StepNamesOf(absl::string_view description, size_t columns) {
  StepNames names;
  std::vector<std::string>& infos = names.infos;
  const auto json = nlohmann::json::parse(description, /*cb=*/nullptr,
                                          /*allow_exceptions=*/false);
  const auto described = json.is_object()
                             ? json.value("infos", nlohmann::json::array())
                             : nlohmann::json::array();
  for (const auto& info : described) {
    if (!info.is_object() || !info.contains("name") ||
        !info["name"].is_string()) {
      break;
    }
    const std::string name = info["name"].get<std::string>();
    const auto length = info.value("length", nlohmann::json());
    if (!length.is_number_unsigned()) {
      if (infos.size() < columns) infos.push_back(name);
      continue;
    }
    const uint64_t count = length.get<uint64_t>();
    for (uint64_t i = 0; i < count && infos.size() < columns; ++i) {
      infos.push_back(absl::StrCat(name, "_", i));
    }
  }
  while (infos.size() < columns) {
    infos.push_back(absl::StrCat("info_", infos.size()));
  }
  names.has_reward =
      !json.is_object() ||
      json.value("has_rewards", nlohmann::json()) != nlohmann::json(false);
  return names;
}

StepNames StepNamesOf(const LrbcHeader& plan, const RegionMapping& mapping) {
  return StepNamesOf(DescriptionOf(plan, mapping), plan.info_size);
}

}  // namespace tandem::gateway
