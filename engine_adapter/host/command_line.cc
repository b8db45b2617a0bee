#include "engine_adapter/host/command_line.h"

#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/error.h"
#include "base/quoted.h"
#include "nlohmann/json.hpp"
#include "program/program_flags.h"

ABSL_FLAG(std::string, config, "",
          "path of a JSON file of flags, such as {\"num_envs\": 64}; flags of "
          "the command line override it; empty: none");

namespace tandem {
namespace {

ProgramFlags FlagsWith(absl::Span<const OwnFlag> own) {
  std::vector<std::string> names;
  for (const OwnFlag& flag : own) names.push_back(flag.name);
  return ProgramFlags("engine_adapter/", std::move(names));
}

const OwnFlag* FindOwn(absl::Span<const OwnFlag> own, absl::string_view name) {
  for (const OwnFlag& flag : own) {
    if (flag.name == name) return &flag;
  }
  return nullptr;
}

absl::Status SetOwn(const OwnFlag& flag, absl::string_view number) {
  if (absl::SimpleAtod(number, flag.value)) return absl::OkStatus();
  return MakeError(ErrorCode::kInvalidArgument,
                   absl::StrCat("--", flag.name, ": expected a number, found ",
                                Quoted(number)));
}

// Sets the own flags among the words, then the others.
absl::Status SetFromWords(const ProgramFlags& flags,
                          absl::Span<const OwnFlag> own,
                          absl::Span<const absl::string_view> words) {
  std::vector<absl::string_view> left;
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    const bool inside = equals != absl::string_view::npos;
    const absl::string_view dashed = words[i].substr(0, equals);
    const OwnFlag* const flag = absl::StartsWith(dashed, "--")
                                    ? FindOwn(own, dashed.substr(2))
                                    : nullptr;
    if (flag == nullptr) {
      left.push_back(words[i]);
      continue;
    }
    absl::string_view number;
    if (inside) {
      number = words[i].substr(equals + 1);
    } else if (i + 1 < words.size()) {
      number = words[++i];
    }
    TANDEM_RETURN_IF_ERROR(SetOwn(*flag, number));
  }
  return flags.SetFromWords(left);
}

std::string TextOf(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

absl::Status Refuse(const std::string& path, absl::string_view found) {
  return MakeError(ErrorCode::kInvalidArgument,
                   absl::StrCat("--config: expected a JSON object of flags, "
                                "such as {\"num_envs\": 64}, found ",
                                found, " (", path, ")"));
}

// Sets the flags of a JSON object; its names have no dashes. A string is the
// flag's value, a list is its elements with commas between them, any other
// value is its JSON text. The object contains no --config.
absl::Status SetFromFile(const ProgramFlags& flags,
                         absl::Span<const OwnFlag> own,
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
  for (const auto& [name, value] : object.items()) {
    const std::string words =
        value.is_array()
            ? absl::StrJoin(value, ",",
                            [](std::string* out, const auto& each) {
                              absl::StrAppend(out, TextOf(each));
                            })
            : TextOf(value);
    if (absl::StrContains(words, '\0')) {  // a NUL would end a path
      return Refuse(path, absl::StrCat("a NUL in the value of ", Quoted(name)));
    }
    if (const OwnFlag* const flag = FindOwn(own, name)) {
      TANDEM_RETURN_IF_ERROR(SetOwn(*flag, words));
      continue;
    }
    absl::CommandLineFlag* const flag = flags.Find(name);
    if (flag == nullptr || name == FLAGS_config.Name()) {
      return flags.Unknown(name, path, FLAGS_config.Name());
    }
    TANDEM_RETURN_IF_ERROR(ProgramFlags::Set(flag, words));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv,
                                             absl::Span<const OwnFlag> own) {
  const std::vector<absl::string_view> words(argv + (argc > 0 ? 1 : 0),
                                             argv + argc);
  if (ProgramFlags::WantHelp(words)) return CommandLine{.help_wanted = true};
  const ProgramFlags flags = FlagsWith(own);
  TANDEM_RETURN_IF_ERROR(SetFromWords(flags, own, words));
  const std::string path = absl::GetFlag(FLAGS_config);
  if (path.empty()) return CommandLine{};
  TANDEM_RETURN_IF_ERROR(SetFromFile(flags, own, path));
  TANDEM_RETURN_IF_ERROR(SetFromWords(flags, own, words));
  return CommandLine{};
}

std::string HelpText(absl::string_view usage) {
  return FlagsWith({}).Help(usage);
}

}  // namespace tandem
