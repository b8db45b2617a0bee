#include "gateway/info_names.h"

#include <cstdint>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "transport/region.h"

namespace tandem::gateway {

std::vector<std::string> InfoNames(absl::string_view description,
                                   size_t columns) {
  std::vector<std::string> names;
  const auto json = nlohmann::json::parse(description, /*cb=*/nullptr,
                                          /*allow_exceptions=*/false);
  const auto infos = json.is_object()
                         ? json.value("infos", nlohmann::json::array())
                         : nlohmann::json::array();
  for (const auto& info : infos) {
    if (!info.is_object() || !info.contains("name") ||
        !info["name"].is_string()) {
      break;
    }
    const std::string name = info["name"].get<std::string>();
    const auto length = info.value("length", nlohmann::json());
    if (!length.is_number_unsigned()) {
      if (names.size() < columns) names.push_back(name);
      continue;
    }
    const uint64_t count = length.get<uint64_t>();
    for (uint64_t i = 0; i < count && names.size() < columns; ++i) {
      names.push_back(absl::StrCat(name, "_", i));
    }
  }
  while (names.size() < columns) {
    names.push_back(absl::StrCat("info_", names.size()));
  }
  return names;
}

bool HasReward(absl::string_view description) {
  const auto json = nlohmann::json::parse(description, /*cb=*/nullptr,
                                          /*allow_exceptions=*/false);
  return !json.is_object() ||
         json.value("has_rewards", nlohmann::json()) != nlohmann::json(false);
}

StepNames StepNamesOf(const LrbcHeader& plan, const RegionMapping& mapping) {
  const InfosPlan infos = InfosOf(plan);
  const absl::string_view description(mapping.At<char>(infos.description),
                                      infos.description_bytes);
  return {.infos = InfoNames(description, plan.info_size),
          .has_reward = HasReward(description)};
}

}  // namespace tandem::gateway
