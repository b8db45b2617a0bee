// ShellQuoted: a path in a command that a message proposes.
//
// Data flow: a path of the caller -> a command that a user can paste into sh.
//
//   absl::StrCat("next: chmod 700 ", ShellQuoted(folder));

#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace tandem {

// Returns one word for sh; without quotes if none are necessary. Allocates.
inline std::string ShellQuoted(absl::string_view text) {
  const bool plain =
      !text.empty() && text.find_first_not_of(
                           "abcdefghijklmnopqrstuvwxyz"
                           "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                           "0123456789_./+-") == absl::string_view::npos;
  return plain ? std::string(text)
               : absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}),
                              "'");
}

}  // namespace tandem
