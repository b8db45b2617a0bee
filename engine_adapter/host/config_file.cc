#include "engine_adapter/host/config_file.h"

#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "transport/base/error.h"
#include "transport/base/quoted.h"

namespace tandem {
namespace {

std::string TextOf(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

absl::Status Refuse(const std::string& path, absl::string_view found) {
  return MakeError(ErrorCode::kInvalidArgument,
                   absl::StrCat("--config: expected a JSON object of flags, "
                                "such as {\"num_envs\": 64}, found ",
                                found, " (", path, ")"));
}

}  // namespace

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ReadConfigFile(
    const std::string& path) {
  std::ifstream file(path);
  std::string text;
  try {
    text.assign(std::istreambuf_iterator<char>(file), {});
  } catch (const std::ios_base::failure&) {  // such as a folder
    file.close();
  }
  if (!file.is_open() || file.bad()) return Refuse(path, "no readable file");
  nlohmann::ordered_json object;
  try {
    object = nlohmann::ordered_json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    return Refuse(path, error.what());
  }
  if (!object.is_object()) return Refuse(path, object.type_name());
  std::vector<std::pair<std::string, std::string>> flags;
  for (const auto& [name, value] : object.items()) {
    std::string words;
    if (value.is_array()) {
      words = absl::StrJoin(value, ",", [](std::string* out, const auto& each) {
        absl::StrAppend(out, TextOf(each));
      });
    } else {
      words = TextOf(value);
    }
    if (words.find('\0') != std::string::npos) {  // which would end a path
      return Refuse(path, absl::StrCat("a NUL in the value of ", Quoted(name)));
    }
    flags.emplace_back(name, std::move(words));
  }
  return flags;
}

}  // namespace tandem
