#include "program/clipped_lines.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tandem {
namespace {

// The first `count` code points.
absl::string_view FirstCharacters(absl::string_view utf8, size_t count) {
  size_t at = 0;
  while (at < utf8.size()) {
    const bool begins = (utf8[at] & 0xC0) != 0x80;
    if (begins && count-- == 0) break;
    ++at;
  }
  return utf8.substr(0, at);
}

}  // namespace

std::string ClippedLine(absl::string_view line, size_t columns) {
  if (FirstCharacters(line, columns).size() == line.size()) {
    return std::string(line);
  }
  const absl::string_view rest = absl::string_view("...").substr(0, columns);
  return absl::StrCat(FirstCharacters(line, columns - rest.size()), rest);
}

std::vector<std::string> ClippedLines(absl::string_view text, size_t rows,
                                      size_t columns) {
  std::vector<std::string> lines =
      absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
  const size_t all = lines.size();
  if (all > rows) lines.resize(rows > 0 ? rows - 1 : 0);
  const size_t missing = all - lines.size();
  for (std::string& line : lines) line = ClippedLine(line, columns);
  if (missing > 0 && rows > 0) {
    const std::string rest = absl::StrCat(
        "... ", missing, " more lines; a larger window shows them");
    lines.emplace_back(FirstCharacters(rest, columns));  // the number is first
  }
  return lines;
}

}  // namespace tandem
