#include "engine_adapter/host/command_line.h"

#include <map>
#include <vector>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "engine_adapter/host/config_file.h"
#include "transport/base/error.h"
#include "transport/base/quoted.h"

ABSL_FLAG(std::string, config, "",
          "path of a JSON file of flags, such as {\"num_envs\": 64}, which the "
          "command line's win over; empty: none");

namespace tandem {
namespace {

// Abseil defines flags of its own (--flagfile and more); ours lie here.
constexpr char kOurFolder[] = "engine_adapter/";

bool IsOurs(const absl::CommandLineFlag& flag) {
  return absl::StrContains(flag.Filename(), kOurFolder);
}

absl::CommandLineFlag* Find(absl::string_view name) {
  absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
  return flag != nullptr && IsOurs(*flag) ? flag : nullptr;
}

std::map<std::string, absl::CommandLineFlag*> OurFlags() {
  std::map<std::string, absl::CommandLineFlag*> ours;
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    if (IsOurs(*flag)) ours.emplace(flag->Name(), flag);
  }
  return ours;
}

// `where`: the configuration file, which names no other; empty: the words.
absl::Status Unknown(absl::string_view word, absl::string_view where = "") {
  std::vector<std::string> known;
  for (const auto& [name, flag] : OurFlags()) {
    if (!where.empty() && flag == Find(FLAGS_config.Name())) continue;
    known.push_back(absl::StrCat("--", name));
  }
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat("expected one of the flags ", absl::StrJoin(known, " "),
                   ", found ", Quoted(word),
                   where.empty() ? "" : absl::StrCat(" in '", where, "'"),
                   "; --help explains them"));
}

absl::Status Set(absl::CommandLineFlag* flag, absl::string_view value) {
  std::string error;
  if (flag->ParseFrom(value, &error)) return absl::OkStatus();
  // "Illegal value 'x' specified for flag 'y'", then the type's own words.
  return MakeError(ErrorCode::kInvalidArgument,
                   absl::StrCat("--", flag->Name(), ": expected ", flag->Help(),
                                "; found ", Quoted(value)));
}

absl::Status SetFromFile(const std::string& path) {
  const auto flags = ReadConfigFile(path);
  if (!flags.ok()) return flags.status();
  for (const auto& [name, value] : *flags) {
    absl::CommandLineFlag* const flag = Find(name);
    if (flag == nullptr || flag == Find(FLAGS_config.Name())) {
      return Unknown(name, path);
    }
    if (absl::Status status = Set(flag, value); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status SetFromWords(const std::vector<absl::string_view>& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (!absl::StartsWith(words[i], "-")) return Unknown(words[i]);
    const absl::string_view word =
        words[i].substr(absl::StartsWith(words[i], "--") ? 2 : 1);
    const std::vector<absl::string_view> parts =
        absl::StrSplit(word, absl::MaxSplits('=', 1));
    absl::CommandLineFlag* flag = Find(parts[0]);
    absl::string_view value = parts.size() > 1 ? parts[1] : "";
    if (flag == nullptr && parts.size() == 1 &&
        absl::StartsWith(parts[0], "no")) {
      flag = Find(parts[0].substr(2));
      if (flag != nullptr && !flag->IsOfType<bool>()) flag = nullptr;
      value = "false";
    } else if (flag != nullptr && parts.size() == 1) {
      if (flag->IsOfType<bool>()) {
        value = "true";
      } else if (++i < words.size()) {
        value = words[i];
      } else {
        return MakeError(ErrorCode::kInvalidArgument,
                         absl::StrCat("--", flag->Name(), ": expected ",
                                      flag->Help(), "; found no value"));
      }
    }
    if (flag == nullptr) return Unknown(words[i]);
    if (absl::Status status = Set(flag, value); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(int argc,
                                             const char* const* argv) {
  const std::vector<absl::string_view> words(argv + (argc > 0 ? 1 : 0),
                                             argv + argc);
  for (const absl::string_view word : words) {
    if (word == "--help" || word == "-help" || word == "-h") {
      return CommandLine{.help_wanted = true};
    }
  }
  absl::Status status = SetFromWords(words);
  if (!status.ok()) return status;
  const std::string path = absl::GetFlag(FLAGS_config);
  if (path.empty()) return CommandLine{};
  status = SetFromFile(path);
  status.Update(SetFromWords(words));
  if (!status.ok()) return status;
  return CommandLine{};
}

std::string HelpText(absl::string_view usage) {
  std::string text = absl::StrCat(usage, "\n\nFlags:\n");
  for (const auto& [name, flag] : OurFlags()) {
    const std::string initially = flag->DefaultValue();
    absl::StrAppend(&text, "  --", name, "\n      ", flag->Help(), "\n");
    if (!initially.empty()) {
      absl::StrAppend(&text, "      default: ", initially, "\n");
    }
  }
  return text;
}

}  // namespace tandem
