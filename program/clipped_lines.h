// What of a text fits into a terminal's window.
//
//   for (const std::string& line : ClippedLines(text, rows, columns)) ...

#ifndef TANDEM_PROGRAM_CLIPPED_LINES_H_
#define TANDEM_PROGRAM_CLIPPED_LINES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tandem {

// `line`, UTF-8, if it has no more than `columns` characters, else so many: how
// it begins, and "...".
std::string ClippedLine(absl::string_view line, size_t columns);

// At most `rows` lines, each clipped; where there are more, the last says how
// many are missing.
std::vector<std::string> ClippedLines(absl::string_view text, size_t rows,
                                      size_t columns);

}  // namespace tandem

#endif  // TANDEM_PROGRAM_CLIPPED_LINES_H_
