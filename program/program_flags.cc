#include "program/program_flags.h"

#include <cstddef>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/reflection.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "transport/base/error.h"
#include "transport/base/quoted.h"

namespace tandem {

ProgramFlags::ProgramFlags(absl::string_view folder) {
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    if (absl::StrContains(flag->Filename(), folder)) {
      flags_.emplace(flag->Name(), flag);
    }
  }
}

bool ProgramFlags::WantHelp(absl::Span<const absl::string_view> words) {
  return absl::c_any_of(words, [](absl::string_view word) {
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
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat("expected one of the flags ", absl::StrJoin(known, " "),
                   ", found ", Quoted(word),
                   where.empty() ? "" : absl::StrCat(" in '", where, "'"),
                   "; --help explains them"));
}

absl::Status ProgramFlags::Set(absl::CommandLineFlag* flag,
                               absl::string_view value) {
  std::string error;
  if (flag->ParseFrom(value, &error)) return absl::OkStatus();
  // "Illegal value 'x' specified for flag 'y'", then the type's own words.
  return MakeError(ErrorCode::kInvalidArgument,
                   absl::StrCat("--", flag->Name(), ": expected ", flag->Help(),
                                "; found ", Quoted(value)));
}

absl::Status ProgramFlags::SetFromWords(
    absl::Span<const absl::string_view> words) const {
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

std::string ProgramFlags::Help(absl::string_view usage) const {
  std::string text = absl::StrCat(usage, "\n\nFlags:\n");
  for (const auto& [name, flag] : flags_) {
    const std::string initially = flag->DefaultValue();
    absl::StrAppend(&text, "  --", name, "\n      ", flag->Help(), "\n");
    if (!initially.empty()) {
      absl::StrAppend(&text, "      default: ", initially, "\n");
    }
  }
  return text;
}

}  // namespace tandem
