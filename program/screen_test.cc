#include "program/screen.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/unique_fd.h"

namespace tandem {
namespace {

// What a terminal of 3 rows and 6 columns gets of these; `kind`: TERM.
std::string ShownOn(std::optional<std::string> kind,
                    const std::vector<std::string>& texts = {"one\n",
                                                             "two\n"}) {
  const UniqueFd terminal(posix_openpt(O_RDWR | O_NOCTTY));
  EXPECT_EQ(grantpt(terminal.get()), 0);
  EXPECT_EQ(unlockpt(terminal.get()), 0);
  const pid_t child = fork();
  if (child == 0) {
    kind ? setenv("TERM", kind->c_str(), 1) : unsetenv("TERM");
    dup2(open(ptsname(terminal.get()), O_RDWR | O_NOCTTY), STDOUT_FILENO);
    const winsize window = {
        .ws_row = 3, .ws_col = 6, .ws_xpixel = 0, .ws_ypixel = 0};
    ioctl(STDOUT_FILENO, TIOCSWINSZ, &window);
    {
      Screen screen;
      for (const std::string& text : texts) {
        if (!screen.Show(text).ok()) _exit(1);
      }
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
            "\x1b[?1049h\x1b[?25l\x1b[Hone\x1b[J"
            "\x1b[Htwo\x1b[J\x1b[?25h\x1b[?1049l");
}

TEST(Screen, ATextIsClippedToTheWindowButForItsLastColumn) {
  // Before "\n" the terminal itself puts "\r", too.
  EXPECT_EQ(ShownOn("xterm", {"12345\n123456\n3\n4\n"}),
            "\x1b[?1049h\x1b[?25l\x1b[H"
            "12345\x1b[K\r\r\n12...\x1b[K\r\r\n... 2"
            "\x1b[J\x1b[?25h\x1b[?1049l");
}

TEST(Screen, ADumbTerminalGetsNoEscapes) {
  EXPECT_EQ(ShownOn("dumb"), "one\r\ntwo\r\n");
  EXPECT_EQ(ShownOn(""), "one\r\ntwo\r\n");
  EXPECT_EQ(ShownOn(std::nullopt), "one\r\ntwo\r\n");
}

TEST(Screen, APipeIsNoTerminal) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const UniqueFd out(ends[0]), in(ends[1]);
  EXPECT_FALSE(TakesEscapes(in.get()));
}

}  // namespace
}  // namespace tandem
