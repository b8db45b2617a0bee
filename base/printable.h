// Printable: converts untrusted bytes to text that is safe for a terminal, a
// log and a database.
//
// Data flow: a name, a reason or a line of another program -> the text that an
// error, a table or a log shows. client_py/tandem/printable.py has the same
// rule in Python; tests of both use testdata/printable.json.
//
//   absl::StrCat("expected frames, found ", Printable(file_name));

#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace tandem {

// Returns valid UTF-8, with these bytes as \xNN:
//  - control characters (below U+0020, U+007F to U+009F), also line breaks;
//  - line and paragraph separators, U+2028 and U+2029;
//  - marks that change the direction of text: U+061C, U+200E, U+200F, U+202A to
//    U+202E, U+2066 to U+2069;
//  - bytes that are not UTF-8.
//
// Every other character is unchanged; so is a printable text. Allocates.
std::string Printable(absl::string_view text);

// The same, except that '\n' and '\t' are unchanged: for texts of several
// lines.
std::string PrintableLines(absl::string_view text);

// Returns the beginning of Printable(text), at most `max_bytes` bytes, cut
// between two characters.
std::string PrintableHead(absl::string_view text, size_t max_bytes);

}  // namespace tandem
