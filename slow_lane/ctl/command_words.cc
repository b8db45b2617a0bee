#include "slow_lane/ctl/command_words.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "transport/base/quoted.h"

namespace tandem::slow_lane {
namespace {

std::string Written(const FlagSpec& flag) {
  return flag.value.empty() ? absl::StrCat("--", flag.name)
                            : absl::StrCat("--", flag.name, " ", flag.value);
}

absl::Status Unknown(absl::string_view word, std::span<const FlagSpec> flags) {
  std::vector<std::string> known;
  for (const FlagSpec& flag : flags) known.push_back(Written(flag));
  return absl::InvalidArgumentError(
      absl::StrCat("expected ", absl::StrJoin(known, ", "),
                   " or --help, found ", Quoted(word)));
}

}  // namespace

std::optional<std::string> CommandWords::Last(const std::string& name) const {
  const auto found = flags.find(name);
  if (found == flags.end()) return std::nullopt;
  return found->second.back();
}

absl::StatusOr<CommandWords> ParseWords(
    std::span<const absl::string_view> words, std::span<const FlagSpec> flags) {
  CommandWords parsed;
  const auto dashes = std::find(words.begin(), words.end(), "--");
  if (std::any_of(words.begin(), dashes, [](absl::string_view word) {
        return word == "--help" || word == "-h";
      })) {
    parsed.help = true;
    return parsed;
  }
  for (auto word = words.begin(); word != dashes; ++word) {
    // "-" alone is a word: standard input.
    if (!absl::StartsWith(*word, "-") || *word == "-") {
      parsed.words.emplace_back(*word);
      continue;
    }
    const size_t equals = word->find('=');
    const absl::string_view given = word->substr(0, equals);
    const auto flag =
        std::find_if(flags.begin(), flags.end(), [&](const FlagSpec& known) {
          return given == absl::StrCat("--", known.name);
        });
    if (flag == flags.end()) return Unknown(*word, flags);
    std::vector<std::string>& values = parsed.flags[std::string(flag->name)];
    if (!values.empty() && !flag->repeated) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected ", given, " once, found it twice"));
    }
    const bool has_value = equals != absl::string_view::npos;
    if (flag->value.empty()) {
      if (has_value) {
        return absl::InvalidArgumentError(
            absl::StrCat("expected ", given, " alone, found ", Quoted(*word)));
      }
      values.emplace_back();
    } else if (has_value) {
      values.emplace_back(word->substr(equals + 1));
    } else if (word + 1 != dashes) {
      values.emplace_back(*++word);
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          "expected ", Written(*flag), ", found nothing behind it"));
    }
  }
  if (dashes != words.end()) {
    parsed.behind.emplace(dashes + 1, words.end());
  }
  return parsed;
}

}  // namespace tandem::slow_lane
