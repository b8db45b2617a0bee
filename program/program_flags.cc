#include "program/program_flags.h"

#include <cstddef>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/flags/reflection.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/error.h"
#include "base/quoted.h"

namespace tandem {
namespace {

constexpr absl::string_view kBetween("\0", 1);  // no word contains it

absl::Status Refused(const absl::CommandLineFlag& flag,
                     absl::string_view found) {
  return MakeError(ErrorCode::kInvalidArgument,
                   absl::StrCat("--", flag.Name(), ": expected ", flag.Help(),
                                "; found ", found));
}

// Whether --name and --noname set it.
bool IsSwitch(const absl::CommandLineFlag& flag) {
  return flag.IsOfType<bool>() || flag.IsOfType<std::optional<bool>>();
}

// Returns lines of at most 80 columns, for the place below a flag's name.
std::string Indented(absl::string_view text) {
  constexpr size_t kColumns = 80;
  constexpr absl::string_view kIndent = "\n      ";
  std::string lines;
  size_t column = kColumns;
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    const bool fits = column + 1 + word.size() <= kColumns;
    column = (fits ? column + 1 : kIndent.size() - 1) + word.size();
    absl::StrAppend(&lines, fits ? " " : kIndent, word);
  }
  return lines;
}

}  // namespace

bool AbslParseFlag(absl::string_view text, RepeatedFlag* flag, std::string*) {
  flag->values = absl::StrSplit(text, kBetween);
  return !absl::c_linear_search(flag->values, "");
}

std::string AbslUnparseFlag(const RepeatedFlag& flag) {
  return absl::StrJoin(flag.values, kBetween);
}

ProgramFlags::ProgramFlags(absl::string_view folder,
                           std::vector<std::string> others)
    : others_(std::move(others)) {
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    if (absl::StrContains(flag->Filename(), folder)) {
      flags_.emplace(flag->Name(), flag);
    }
  }
}

bool ProgramFlags::WantHelp(absl::Span<const absl::string_view> words) {
  const auto flags = words.first(
      static_cast<size_t>(absl::c_find(words, "--") - words.begin()));
  return absl::c_any_of(flags, [](absl::string_view word) {
    return word == "--help" || word == "-help" || word == "-h";
  });
}

absl::CommandLineFlag* ProgramFlags::Find(absl::string_view name) const {
  const auto found = flags_.find(std::string(name));
  return found == flags_.end() ? nullptr : found->second;
}

absl::Status ProgramFlags::Unknown(absl::string_view word,
                                   absl::string_view where,
                                   absl::string_view except) const {
  std::vector<std::string> known;
  for (const auto& [name, flag] : flags_) {
    if (name != except) known.push_back(absl::StrCat("--", name));
  }
  for (const std::string& name : others_) {
    known.push_back(absl::StrCat("--", name));
  }
  absl::c_sort(known);
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat("expected one of the flags ", absl::StrJoin(known, " "),
                   ", found ", Quoted(word),
                   where.empty() ? "" : absl::StrCat(" in '", where, "'"),
                   "; --help explains them"));
}

absl::Status ProgramFlags::Set(absl::CommandLineFlag* flag,
                               absl::string_view value) {
  std::string text(value);
  if (const auto before = flag->TryGet<RepeatedFlag>();
      before.has_value() && !before->values.empty()) {
    text = absl::StrCat(flag->CurrentValue(), kBetween, value);
  }
  std::string error;
  if (flag->ParseFrom(text, &error)) return absl::OkStatus();
  // `error` is "Illegal value 'x' specified for flag 'y'", without the help.
  return Refused(*flag, Quoted(value));
}

absl::Status ProgramFlags::Refuse(const absl::CommandLineFlag& flag) {
  return Refused(flag, Quoted(flag.CurrentValue()));
}

absl::Status ProgramFlags::SetFromWords(
    absl::Span<const absl::string_view> words,
    std::vector<std::string>* names) const {
  bool only_names = false;
  for (size_t i = 0; i < words.size(); ++i) {
    if (names != nullptr && !only_names && words[i] == "--") {
      only_names = true;
      continue;
    }
    if (only_names || !absl::StartsWith(words[i], "-")) {
      if (names == nullptr) return Unknown(words[i]);
      names->emplace_back(words[i]);
      continue;
    }
    const absl::string_view word =
        words[i].substr(absl::StartsWith(words[i], "--") ? 2 : 1);
    const std::vector<absl::string_view> parts =
        absl::StrSplit(word, absl::MaxSplits('=', 1));
    absl::CommandLineFlag* flag = Find(parts[0]);
    absl::string_view value = parts.size() > 1 ? parts[1] : "";
    if (flag == nullptr && parts.size() == 1 &&
        absl::StartsWith(parts[0], "no")) {
      flag = Find(parts[0].substr(2));
      if (flag != nullptr && !IsSwitch(*flag)) flag = nullptr;
      value = "false";
    } else if (flag != nullptr && parts.size() == 1) {
      if (IsSwitch(*flag)) {
        value = "true";
      } else if (++i < words.size()) {
        value = words[i];
      } else {
        return Refused(*flag, "no value");
      }
    }
    if (flag == nullptr) return Unknown(words[i]);
    TANDEM_RETURN_IF_ERROR(Set(flag, value));
  }
  return absl::OkStatus();
}

std::string ProgramFlags::Help(absl::string_view usage) const {
  std::string text = absl::StrCat(usage, "\n\nFlags:\n");
  for (const auto& [name, flag] : flags_) {
    const std::string initially = flag->DefaultValue();
    absl::StrAppend(&text, "  --", name, Indented(flag->Help()), "\n");
    if (!initially.empty()) {
      absl::StrAppend(&text, "      default: ", initially, "\n");
    }
  }
  return text;
}

}  // namespace tandem
