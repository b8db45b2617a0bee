#include "transport/base/screen.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <optional>

#include "absl/strings/str_cat.h"
#include "transport/base/unique_fd.h"

namespace tandem {
namespace {

std::string SaysTheWindow(absl::string_view text, size_t rows, size_t columns) {
  return absl::StrCat(text, " in ", rows, "x", columns, kClearRestOfLine);
}

// What a terminal of 6 rows and 40 columns gets of two texts; `kind`: TERM.
std::string ShownOn(std::optional<std::string> kind) {
  const UniqueFd terminal(posix_openpt(O_RDWR | O_NOCTTY));
  EXPECT_EQ(grantpt(terminal.get()), 0);
  EXPECT_EQ(unlockpt(terminal.get()), 0);
  const pid_t child = fork();
  if (child == 0) {
    kind ? setenv("TERM", kind->c_str(), 1) : unsetenv("TERM");
    dup2(open(ptsname(terminal.get()), O_RDWR | O_NOCTTY), STDOUT_FILENO);
    const winsize window = {
        .ws_row = 6, .ws_col = 40, .ws_xpixel = 0, .ws_ypixel = 0};
    ioctl(STDOUT_FILENO, TIOCSWINSZ, &window);
    {
      Screen screen(SaysTheWindow);
      if (!screen.Show("one").ok() || !screen.Show("two").ok()) _exit(1);
    }
    _exit(0);
  }
  // To the end: EIO, once nobody has the other side open.
  std::string shown;
  std::array<char, 1024> block;
  for (;;) {
    const ssize_t bytes = read(terminal.get(), block.data(), block.size());
    if (bytes > 0) shown.append(block.data(), static_cast<size_t>(bytes));
    if (bytes <= 0 && waitpid(child, nullptr, WNOHANG) == child) return shown;
  }
}

TEST(Screen, EachTextReplacesTheLastOnATerminal) {
  EXPECT_EQ(ShownOn("xterm"),
            "\x1b[?1049h\x1b[?25l\x1b[Hone in 6x40\x1b[K\x1b[J"
            "\x1b[Htwo in 6x40\x1b[K\x1b[J\x1b[?25h\x1b[?1049l");
}

TEST(Screen, ADumbTerminalGetsNoEscapes) {
  EXPECT_EQ(ShownOn("dumb"), "onetwo");
  EXPECT_EQ(ShownOn(""), "onetwo");
  EXPECT_EQ(ShownOn(std::nullopt), "onetwo");
}

TEST(Screen, APipeIsNoTerminal) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const UniqueFd out(ends[0]), in(ends[1]);
  EXPECT_FALSE(TakesEscapes(in.get()));
}

}  // namespace
}  // namespace tandem
