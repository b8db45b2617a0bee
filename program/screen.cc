#include "program/screen.h"

#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/error.h"
#include "program/terminal.h"

namespace tandem {
namespace {

// xterm's sequences, which all terminals take: the alternate screen without a
// cursor, and back.
constexpr char kEnter[] = "\x1b[?1049h\x1b[?25l";
constexpr char kLeave[] = "\x1b[?25h\x1b[?1049l";
constexpr char kToTopLeft[] = "\x1b[H";
constexpr char kClearRestOfLine[] = "\x1b[K";
constexpr char kClearRest[] = "\x1b[J";  // clears to the end of the screen

// Returns the first `count` code points.
absl::string_view FirstCharacters(absl::string_view utf8, size_t count) {
  size_t at = 0;
  while (at < utf8.size()) {
    const bool begins = (utf8[at] & 0xC0) != 0x80;
    if (begins && count-- == 0) break;
    ++at;
  }
  return utf8.substr(0, at);
}

std::string ClippedLine(absl::string_view line, size_t columns) {
  if (FirstCharacters(line, columns).size() == line.size()) {
    return std::string(line);
  }
  const absl::string_view rest = absl::string_view("...").substr(0, columns);
  return absl::StrCat(FirstCharacters(line, columns - rest.size()), rest);
}

}  // namespace

absl::Status Print(absl::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
      std::fflush(stdout) == 0) {
    return absl::OkStatus();
  }
  const int error = errno;
  const absl::Status status =
      MakeSystemError("write", "standard output", error);
  return IsClosedPipe(error) ? MakeError(ErrorCode::kPeerGone, status.message())
                             : status;
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
    lines.emplace_back(FirstCharacters(rest, columns));  // keeps the number
  }
  return lines;
}

Screen::Screen() : replaces_(TerminalTakesEscapes()) {}

absl::Status Screen::Show(const std::string& text) {
  if (!replaces_) return Print(text);
  const TerminalSize window = SizeOfTerminal();
  // The last column stays empty. After a character in it, the cursor would stay
  // there, and clearing the rest of the line would remove the character.
  const std::vector<std::string> lines =
      ClippedLines(text, window.rows, window.columns - 1u);
  return Print(
      absl::StrCat(std::exchange(entered_, true) ? "" : kEnter, kToTopLeft,
                   absl::StrJoin(lines, absl::StrCat(kClearRestOfLine, "\r\n")),
                   kClearRest));
}

void Screen::Leave() {
  if (!std::exchange(entered_, false)) return;
  std::fputs(kLeave, stdout);
  std::fflush(stdout);
}

}  // namespace tandem
