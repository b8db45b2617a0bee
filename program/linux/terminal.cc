#include "program/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "absl/strings/string_view.h"

namespace tandem {

bool TerminalTakesEscapes() {
  const char* const variable = std::getenv("TERM");
  const absl::string_view kind = variable == nullptr ? "" : variable;
  return !kind.empty() && kind != "dumb" && isatty(STDOUT_FILENO) == 1;
}

TerminalSize SizeOfTerminal() {
  winsize window = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_row == 0 ||
      window.ws_col == 0) {
    return {};
  }
  return {.rows = window.ws_row, .columns = window.ws_col};
}

bool IsClosedPipe(int error) { return error == EPIPE; }

}  // namespace tandem
