#include "slow_lane/ctl/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "slow_lane/ctl/text_table.h"

namespace tandem::slow_lane {
namespace {

// Of xterm, which all terminals take: the other screen, no cursor; and back.
constexpr char kEnter[] = "\x1b[?1049h\x1b[?25l";
constexpr char kLeave[] = "\x1b[?25h\x1b[?1049l";
constexpr char kToTopLeft[] = "\x1b[H";
constexpr char kClearRestOfLine[] = "\x1b[K";
constexpr char kClearBelow[] = "\x1b[J";

}  // namespace

std::string CutTo(absl::string_view text, size_t rows, size_t columns) {
  std::vector<std::string> lines =
      absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
  if (lines.size() > rows) {
    const size_t missing = lines.size() - rows + 1;
    lines.resize(rows);
    if (rows > 0) {
      lines.back() =
          absl::StrCat("... ", missing, " more lines than the window has");
    }
  }
  for (std::string& line : lines) {
    line = absl::StrCat(OneLine(line, columns), kClearRestOfLine);
  }
  return absl::StrJoin(lines, "\r\n");
}

Screen::Screen() : is_terminal_(isatty(STDOUT_FILENO) == 1) {}

bool Screen::Show(const std::string& text) {
  std::string out = text;
  if (is_terminal_) {
    winsize window = {};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_row == 0 ||
        window.ws_col == 0) {
      window.ws_row = 24;
      window.ws_col = 80;
    }
    // A cursor behind the last column is still in it for what clears: that one
    // stays empty.
    out = absl::StrCat(std::exchange(entered_, true) ? "" : kEnter, kToTopLeft,
                       CutTo(text, window.ws_row, window.ws_col - 1u),
                       kClearBelow);
  }
  return std::fwrite(out.data(), 1, out.size(), stdout) == out.size() &&
         std::fflush(stdout) == 0;
}

void Screen::Leave() {
  if (!std::exchange(entered_, false)) return;
  std::fputs(kLeave, stdout);
  std::fflush(stdout);
}

}  // namespace tandem::slow_lane
