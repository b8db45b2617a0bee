#include "engine_adapter/given_scene.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/error.h"
#include "nlohmann/json.hpp"

namespace tandem {
namespace {

using nlohmann::json;

// The file's header, and that of its first chunk.
constexpr size_t kHeaderBytes = 20;
constexpr uint32_t kVersion = 2;

absl::Status Invalid(absl::string_view expected, absl::string_view found) {
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat("scene: expected ", expected, ", found ", found));
}

uint32_t WordAt(const std::string& bytes, size_t offset) {
  uint32_t word = 0;
  std::memcpy(&word, bytes.data() + offset, sizeof(word));
  return word;
}

absl::StatusOr<json> ReadJson(const std::string& glb) {
  constexpr absl::string_view kExpected =
      "a file of glTF 2.0 in its binary form (.glb)";
  if (glb.size() < kHeaderBytes || glb.compare(0, 4, "glTF") != 0 ||
      glb.compare(16, 4, "JSON") != 0) {
    return Invalid(kExpected, absl::StrCat(glb.size(), " other bytes"));
  }
  if (WordAt(glb, 4) != kVersion) {
    return Invalid(kExpected, absl::StrCat("version ", WordAt(glb, 4)));
  }
  const size_t bytes = WordAt(glb, 12);
  if (WordAt(glb, 8) != glb.size() || bytes > glb.size() - kHeaderBytes) {
    return Invalid(kExpected, absl::StrCat(glb.size(), " bytes of ",
                                           WordAt(glb, 8), ", or its chunk"));
  }
  json read = json::parse(absl::string_view(glb).substr(kHeaderBytes, bytes),
                          nullptr, /*allow_exceptions=*/false);
  if (read.is_discarded()) return Invalid(kExpected, "invalid JSON in it");
  return read;
}

absl::StatusOr<uint32_t> CountMoving(const json& scene, const json& nodes) {
  const json::json_pointer moving("/extras/tandem/moving");
  if (!scene.contains(moving)) {
    const auto count = std::ranges::count_if(nodes, [](const json& node) {
      return node.contains("name") && node.contains("mesh");
    });
    return static_cast<uint32_t>(count);
  }
  std::set<size_t> seen;
  const json& listed = scene.at(moving);
  if (!listed.is_array()) {
    return Invalid("a list of moving nodes", listed.type_name());
  }
  for (const json& node : listed) {
    if (!node.is_number_unsigned() || node.get<size_t>() >= nodes.size() ||
        !seen.insert(node.get<size_t>()).second) {
      return Invalid(
          absl::StrCat("different moving nodes below ", nodes.size()),
          node.is_number() ? node.dump() : node.type_name());
    }
  }
  return static_cast<uint32_t>(seen.size());
}

}  // namespace

absl::StatusOr<SceneModel> GivenScene(std::string glb) {
  TANDEM_ASSIGN_OR_RETURN(const json read, ReadJson(glb));
  try {
    TANDEM_ASSIGN_OR_RETURN(
        const uint32_t nodes,
        CountMoving(read.at("scenes").at(0), read.at("nodes")));
    if (nodes == 0) return Invalid("nodes that move", "none");
    return SceneModel{.glb = std::move(glb), .nodes = nodes};
  } catch (const json::exception& error) {
    return Invalid("scenes[0] and nodes in its JSON", error.what());
  }
}

}  // namespace tandem
