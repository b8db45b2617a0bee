// Quoted: an untrusted text, in quotes, for a message.
//
// Data flow: a peer's text -> an error text that repeats it.
//
//   absl::StrCat("name: expected agent_0, found ", Quoted(request.name));

#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/printable.h"

namespace tandem {

// Returns the printable text in single quotes. A text of more than 80 bytes
// gives its beginning and its length. Allocates.
inline std::string Quoted(absl::string_view text) {
  constexpr size_t kShown = 80;
  if (text.size() <= kShown) return absl::StrCat("'", Printable(text), "'");
  size_t shown = kShown;
  // Does not cut inside a UTF-8 character.
  while (shown > kShown - 4 && (text[shown] & 0xC0) == 0x80) --shown;
  return absl::StrCat("'", Printable(text.substr(0, shown)), "'... of ",
                      text.size(), " bytes");
}

}  // namespace tandem
