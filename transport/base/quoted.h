// Quoted: a text from outside in a message.
//
// Data flow: a peer's text -> an error's text that may repeat it.
//
//   absl::StrCat("name: expected agent_0, found ", Quoted(request.name));

#ifndef TANDEM_TRANSPORT_BASE_QUOTED_H_
#define TANDEM_TRANSPORT_BASE_QUOTED_H_

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "transport/base/printable.h"

namespace tandem {

// Printable, in single quotes. Of a text of more than 80 bytes: its beginning
// and its length. Allocates.
inline std::string Quoted(absl::string_view text) {
  constexpr size_t kShown = 80;
  if (text.size() <= kShown) return absl::StrCat("'", Printable(text), "'");
  size_t shown = kShown;
  // Not within a character of UTF-8.
  while (shown > kShown - 4 && (text[shown] & 0xC0) == 0x80) --shown;
  return absl::StrCat("'", Printable(text.substr(0, shown)), "'... of ",
                      text.size(), " bytes");
}

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_BASE_QUOTED_H_
