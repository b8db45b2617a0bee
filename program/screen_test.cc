#include "program/screen.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/error.h"
#include "base/os/unique_fd.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

// Returns the output of Screen to a terminal of 3 rows and 6 columns.
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
  // Reads to the end: EIO, when no process has the other side open.
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
  // The terminal prints "\r" before each "\n".
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

// Returns whether `holds` is true in a process with that standard output.
bool HoldsWith(const UniqueFd& output, const std::function<bool()>& holds) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGPIPE, SIG_IGN);
    dup2(output.get(), STDOUT_FILENO);
    _exit(holds() ? 0 : 1);
  }
  int how = 0;
  EXPECT_EQ(waitpid(child, &how, 0), child);
  return how == 0;
}

TEST(Screen, APipeIsNoTerminal) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const UniqueFd out(ends[0]), in(ends[1]);
  EXPECT_TRUE(HoldsWith(in, [] { return !Screen().replaces(); }));
}

TEST(ClippedLines, TextThatFitsIsUnchanged) {
  EXPECT_THAT(ClippedLines("ab\ncd\n", 2, 2), ElementsAre("ab", "cd"));
  EXPECT_THAT(ClippedLines("ab\n\ncd\n", 9, 9), ElementsAre("ab", "", "cd"));
}

TEST(ClippedLines, LongLinesAreCutBetweenCharacters) {
  EXPECT_THAT(
      ClippedLines("\u00e4\u00e4\u00e4\u00e4\u00e4\nabcd\nabcde\n", 3, 4),
      ElementsAre("\u00e4...", "abcd", "a..."));
  EXPECT_THAT(ClippedLines("abcdef\n", 1, 3), ElementsAre("..."));
  EXPECT_THAT(ClippedLines("abcdef\n", 1, 2), ElementsAre(".."));
  EXPECT_THAT(ClippedLines("abcdef\n", 1, 0), ElementsAre(""));
}

TEST(ClippedLines, LastLineCountsTheOmittedLines) {
  EXPECT_THAT(ClippedLines("a\nb\nc\nd\n", 3, 80),
              ElementsAre("a", "b", StartsWith("... 2 more lines")));
  EXPECT_THAT(ClippedLines("a\nb\n", 1, 5), ElementsAre("... 2"));
  EXPECT_THAT(ClippedLines("a\nb\n", 0, 5), IsEmpty());
}

TEST(Print, WritesAtOnce) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const UniqueFd reading(ends[0]), writing(ends[1]);
  EXPECT_TRUE(HoldsWith(writing, [] { return Print("text").ok(); }));
  char text[8] = {};
  EXPECT_EQ(read(reading.get(), text, sizeof(text)), 4);
  EXPECT_STREQ(text, "text");
}

TEST(Print, ReturnsTheErrorOfAFullDisk) {
  EXPECT_TRUE(HoldsWith(UniqueFd(open("/dev/full", O_WRONLY)), [] {
    const absl::Status status = Print("text");
    return absl::StrContains(status.message(), "No space left") &&
           absl::StrContains(status.message(), "standard output") &&
           CodeOf(status) != ErrorCode::kPeerGone;
  }));
}

TEST(Print, ReturnsPeerGoneForAPipeWithoutAReader) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const UniqueFd writing(ends[1]);
  close(ends[0]);
  EXPECT_TRUE(HoldsWith(
      writing, [] { return CodeOf(Print("text")) == ErrorCode::kPeerGone; }));
}

}  // namespace
}  // namespace tandem
