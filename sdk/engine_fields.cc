#include "sdk/engine_fields.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/error.h"
#include "base/printable.h"
#include "schema/layout/field.h"
#include "sdk/call_result.h"
#include "sdk/dtypes.h"
#include "transport/region_spec.h"

namespace tandem {
namespace {

using nlohmann::json;

constexpr size_t kMostShown = 200;  // bytes of a space

absl::Status Refused(absl::string_view name, absl::string_view text) {
  return MakeError(ErrorCode::kInvalidArgument,
                   absl::StrCat("options->fields: field '", Printable(name),
                                "': expected ", text));
}

absl::StatusOr<FieldSpec> ReadField(const tandem_field& field) {
  if (field.name == nullptr) return MissingArgument("options->fields: name");
  const absl::string_view name = field.name;
  const size_t slash = name.find('/');
  const absl::string_view role = name.substr(0, slash);
  FieldSpec spec;
  if (slash == absl::string_view::npos || (role != "obs" && role != "action")) {
    return Refused(name, "a name that begins with obs/ or action/");
  }
  spec.role = role == "obs" ? FieldRole::kObs : FieldRole::kAction;
  if (slash + 1 < name.size()) spec.path = std::string(name.substr(slash));
  const std::optional<FieldType> type = FieldTypeOf(field.dtype);
  if (!type) {
    return Refused(name, absl::StrCat("a dtype of tandem.h, 1 to ",
                                      kDtypes.size(), ", found ", field.dtype));
  }
  spec.type = *type;
  // The first dimension of its array is the environment.
  if (field.dimensions >= TANDEM_MAX_DIMENSIONS) {
    return Refused(name, absl::StrCat("at most ", TANDEM_MAX_DIMENSIONS - 1,
                                      " dimensions, found ", field.dimensions));
  }
  for (const uint64_t side : std::span(field.shape, field.dimensions)) {
    if (side == 0 || side > kMaxFieldDim) {
      return Refused(
          name, absl::StrCat("sides of 1 to ", kMaxFieldDim, ", found ", side));
    }
    spec.shape.push_back(static_cast<uint32_t>(side));
  }
  return spec;
}

// The lowest and the highest number of a type, as bounds of a Box.
std::pair<json, json> Bounds(FieldType type) {
  if (type == FieldType::kBool) return {0, 1};
  const int bits = static_cast<int>(8 * ElementBytes(type));
  if (absl::StartsWith(NameOf(type), "u")) {
    return {0, ~uint64_t{0} >> (64 - bits)};
  }
  if (absl::StartsWith(NameOf(type), "i")) {
    const int64_t high = static_cast<int64_t>(~uint64_t{0} >> (65 - bits));
    return {-high - 1, high};
  }
  return {"-inf", "inf"};
}

json SpaceOf(const FieldSpec& field) {
  const auto [low, high] = Bounds(field.type);
  return {{"type", "Box"},
          {"shape", field.shape},
          {"low", json::array({low})},
          {"high", json::array({high})},
          {"dtype", NameOf(field.type)}};
}

// Puts a space at its place below `all`, which is a Dict or empty.
void Insert(std::span<const std::string> path, json space, json* all) {
  if (path.empty()) {
    *all = std::move(space);
    return;
  }
  if (all->is_null()) *all = {{"type", "Dict"}, {"spaces", json::array()}};
  json& items = (*all)["spaces"];
  const auto found = std::ranges::find_if(
      items, [&](const json& item) { return item[0] == path.front(); });
  json* item = nullptr;
  if (found == items.end()) {
    items.push_back(json::array({path.front(), json()}));
    item = &items.back()[1];
  } else {
    item = &(*found)[1];
  }
  Insert(path.subspan(1), std::move(space), item);
}

// Returns the JSON of the fields' space.
std::string SpaceOf(std::span<const FieldSpec> fields, FieldRole role) {
  json all;
  for (const FieldSpec& field : fields) {
    if (field.role != role) continue;
    std::vector<std::string> path;
    if (!field.path.empty()) {
      for (absl::string_view key : absl::StrSplit(field.path.substr(1), '/')) {
        path.push_back(absl::StrReplaceAll(
            absl::StrReplaceAll(key, {{"~1", "/"}}), {{"~0", "~"}}));
      }
    }
    Insert(path, SpaceOf(field), &all);
  }
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Refuses an array that is also a Dict, and two of the same path.
absl::Status CheckPaths(std::span<const FieldSpec> fields) {
  for (size_t i = 0; i < fields.size(); ++i) {
    for (size_t k = 0; k < fields.size(); ++k) {
      if (i == k || fields[i].role != fields[k].role) continue;
      if (fields[i].path == fields[k].path ||
          absl::StartsWith(fields[k].path, fields[i].path + "/")) {
        return Refused(absl::StrCat(NameOf(fields[i].role), fields[i].path),
                       absl::StrCat("a name of its own, found '",
                                    Printable(fields[k].path), "' beside it"));
      }
    }
  }
  return absl::OkStatus();
}

using Leaves = std::map<std::string, const json*>;  // by JSON pointer

// Finds the arrays of a space. False: it has other parts, such as a Text, whose
// arrays only Python knows.
bool FindLeaves(const json& space, const std::string& path, Leaves* leaves) {
  constexpr int64_t kMostDepth = 16;
  const std::string type = space.at("type");
  if (type == "Box" || absl::StartsWith(type, "Multi") || type == "Discrete") {
    leaves->emplace(path, &space);
    return true;
  }
  if (type != "Dict" || std::ranges::count(path, '/') >= kMostDepth) {
    return false;
  }
  return std::ranges::all_of(space.at("spaces"), [&](const json& item) {
    const std::string key = absl::StrReplaceAll(item.at(0).get<std::string>(),
                                                {{"~", "~0"}, {"/", "~1"}});
    return FindLeaves(item.at(1), absl::StrCat(path, "/", key), leaves);
  });
}

// Whether a space's values are the field's. Throws json::exception for a
// space that is not as docs/protocol.md describes it.
bool IsOf(const json& space, const FieldSpec& field) {
  const std::string type = space.at("type");
  json shape = json::array();
  json dtype = "int64";
  if (type == "MultiBinary") {
    const json& n = space.at("n");
    shape = n.is_array() ? n : json::array({n});
    dtype = "int8";
  } else if (type == "Box") {
    shape = space.at("shape");
    dtype = space.at("dtype");
  } else {
    if (type == "MultiDiscrete") shape = space.at("shape");
    dtype = space.value("dtype", dtype);
  }
  if (shape != json(field.shape) || dtype != NameOf(field.type)) return false;
  // One number for all elements, or one for each.
  const size_t elements = std::accumulate(
      field.shape.begin(), field.shape.end(), size_t{1}, std::multiplies<>());
  const std::array<const char*, 4> lists = {"low", "high", "nvec", "start"};
  return std::ranges::all_of(lists, [&](const char* list) {
    const auto found = space.find(list);
    return found == space.end() || !found->is_array() || found->size() == 1 ||
           found->size() == elements;
  });
}

// Refuses a space of the description whose arrays are not the fields.
absl::Status CheckSpace(std::span<const FieldSpec> fields, FieldRole role,
                        const std::string& described) {
  const json all = json::parse(described);
  Leaves leaves;
  if (!FindLeaves(all, "", &leaves)) return absl::OkStatus();
  for (const FieldSpec& field : fields) {
    if (field.role != role) continue;
    const auto leaf = leaves.extract(field.path);
    const absl::string_view name = NameOf(role);
    if (leaf.empty()) {
      return Refused(absl::StrCat(name, field.path),
                     "a part of the description's space, found none");
    }
    const json& space = *leaf.mapped();
    if (!IsOf(space, field)) {
      return Refused(absl::StrCat(name, field.path),
                     absl::StrCat("the description's space, ",
                                  PrintableHead(space.dump(), kMostShown),
                                  ", found ", SpaceOf(field).dump()));
    }
  }
  if (leaves.empty()) return absl::OkStatus();
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat("options->description: expected a space of the fields, "
                   "found a part '",
                   Printable(leaves.begin()->first), "' of ", NameOf(role),
                   " without a field"));
}

// The space of the description, if it has one; else that of the fields.
absl::Status Describe(std::span<const FieldSpec> fields, FieldRole role,
                      std::string* described) {
  if (described->empty()) {
    *described = SpaceOf(fields, role);
    return absl::OkStatus();
  }
  try {
    return CheckSpace(fields, role, *described);
  } catch (const json::exception& error) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("options->description: expected the space of ",
                     NameOf(role), ", found: ", error.what()));
  }
}

}  // namespace

absl::Status ReadFields(const tandem_engine_options& options,
                        EngineSchema* schema) {
  if (options.field_count == 0) return absl::OkStatus();
  if (options.fields == nullptr) return MissingArgument("options->fields");
  for (const tandem_field& field :
       std::span(options.fields, options.field_count)) {
    TANDEM_ASSIGN_OR_RETURN(FieldSpec spec, ReadField(field));
    const bool of_obs = spec.role == FieldRole::kObs;
    const uint32_t size = of_obs ? options.obs_size : options.act_size;
    if (size != 0) {
      return Refused(field.name,
                     absl::StrCat("options->", of_obs ? "obs" : "act",
                                  "_size 0 beside it, found ", size));
    }
    schema->fields.push_back(std::move(spec));
  }
  TANDEM_RETURN_IF_ERROR(CheckPaths(schema->fields));
  TaskDescription& described = schema->description;
  if (options.obs_size == 0) {
    TANDEM_RETURN_IF_ERROR(Describe(schema->fields, FieldRole::kObs,
                                    &described.observation_fields));
  }
  if (options.act_size != 0) return absl::OkStatus();
  return Describe(schema->fields, FieldRole::kAction, &described.action_fields);
}

}  // namespace tandem
