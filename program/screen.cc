#include "program/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "program/clipped_lines.h"
#include "program/standard_output.h"

namespace tandem {
namespace {

// Of xterm, which all terminals take: the other screen, no cursor; and back.
constexpr char kEnter[] = "\x1b[?1049h\x1b[?25l";
constexpr char kLeave[] = "\x1b[?25h\x1b[?1049l";
constexpr char kToTopLeft[] = "\x1b[H";
constexpr char kClearRest[] = "\x1b[J";  // of the line, and below

}  // namespace

bool TakesEscapes(int descriptor) {
  const char* const variable = std::getenv("TERM");
  const absl::string_view kind = variable == nullptr ? "" : variable;
  return !kind.empty() && kind != "dumb" && isatty(descriptor) == 1;
}

Screen::Screen() : replaces_(TakesEscapes(STDOUT_FILENO)) {}

absl::Status Screen::Show(const std::string& text) {
  if (!replaces_) return Print(text);
  winsize window = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_row == 0 ||
      window.ws_col == 0) {
    window.ws_row = 24;
    window.ws_col = 80;
  }
  // Behind a character in the last column the cursor is still in that column,
  // for what clears: it stays empty.
  const std::vector<std::string> lines =
      ClippedLines(text, window.ws_row, window.ws_col - 1u);
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
