#include "viz/core/frame_metadata.h"

#include <nlohmann/json.hpp>
#include <string>

#include "transport/base/printable.h"

namespace tandem {
namespace {

constexpr size_t kMaxTextBytes = 64 << 10;
constexpr size_t kMaxEnvs = 4096;
constexpr size_t kMaxErrorBytes = 512;

std::optional<int64_t> Integer(const nlohmann::json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  // get<int64_t> wraps what only a uint64_t holds.
  if (value.is_number_unsigned() &&
      value.get<uint64_t>() > uint64_t{kMaxMetadataInteger}) {
    return std::nullopt;
  }
  const int64_t integer = value.get<int64_t>();
  if (integer < -kMaxMetadataInteger) return std::nullopt;
  return integer;
}

std::optional<int64_t> Integer(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? std::nullopt : Integer(*found);
}

}  // namespace

FrameMetadata ParseFrameMetadata(absl::string_view json) {
  FrameMetadata metadata;
  if (json.empty() || json.size() > kMaxTextBytes) return metadata;
  const nlohmann::json object =
      nlohmann::json::parse(json.begin(), json.end(), nullptr,
                            /*allow_exceptions=*/false);
  if (!object.is_object()) return metadata;
  metadata.step = Integer(object, "step");
  metadata.episodes = Integer(object, "episodes");
  const auto error = object.find("error_text");
  if (error != object.end() && error->is_string()) {
    metadata.error =
        PrintableHead(error->get_ref<const std::string&>(), kMaxErrorBytes);
  }
  const auto envs = object.find("envs");
  if (envs == object.end() || !envs->is_array() || envs->size() > kMaxEnvs) {
    return metadata;
  }
  for (const nlohmann::json& env : *envs) {
    const std::optional<int64_t> index = Integer(env);
    if (!index.has_value()) {
      metadata.envs.clear();
      break;
    }
    metadata.envs.push_back(*index);
  }
  return metadata;
}

}  // namespace tandem
