#include "viz/inspect/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tandem {
namespace {

// The alternate screen and no cursor; and back. xterm's, which all take.
constexpr char kEnter[] = "\x1b[?1049h\x1b[?25l";
constexpr char kLeave[] = "\x1b[?25h\x1b[?1049l";
constexpr char kHome[] = "\x1b[H";
constexpr char kClearBelow[] = "\x1b[J";
constexpr char kClearToEnd[] = "\x1b[K";

}  // namespace

std::string ClippedTo(absl::string_view text, size_t rows, size_t columns) {
  const std::vector<absl::string_view> lines =
      absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
  const size_t shown = lines.size() <= rows ? lines.size()
                       : rows > 0           ? rows - 1
                                            : 0;
  std::string clipped;
  for (size_t i = 0; i < shown; ++i) {
    if (i > 0) absl::StrAppend(&clipped, "\r\n");
    absl::StrAppend(&clipped, lines[i].substr(0, columns), kClearToEnd);
  }
  if (shown < lines.size() && rows > 0) {
    const std::string rest = absl::StrCat("... ", lines.size() - shown,
                                          " more lines: a larger window, or "
                                          "without --watch");
    absl::StrAppend(&clipped, shown > 0 ? "\r\n" : "", rest.substr(0, columns),
                    kClearToEnd);
  }
  return clipped;
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
    out = absl::StrCat(std::exchange(entered_, true) ? "" : kEnter, kHome,
                       ClippedTo(text, window.ws_row, window.ws_col),
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

}  // namespace tandem
