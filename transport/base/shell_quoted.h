// ShellQuoted: a path in a command that a message proposes.
//
// Data flow: a path of the caller's -> a command that can be pasted into sh.
//
//   absl::StrCat("next: chmod 700 ", ShellQuoted(folder));

#ifndef TANDEM_TRANSPORT_BASE_SHELL_QUOTED_H_
#define TANDEM_TRANSPORT_BASE_SHELL_QUOTED_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace tandem {

// One word for sh, as it is where sh reads it so. Allocates.
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

#endif  // TANDEM_TRANSPORT_BASE_SHELL_QUOTED_H_
