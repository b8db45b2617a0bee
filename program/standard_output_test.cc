#include "program/standard_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "absl/strings/match.h"
#include "transport/base/error.h"
#include "transport/base/unique_fd.h"

namespace tandem {
namespace {

// Whether `holds` in a process with that standard output.
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

TEST(Print, WritesAtOnce) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const UniqueFd reading(ends[0]), writing(ends[1]);
  EXPECT_TRUE(HoldsWith(writing, [] { return Print("text").ok(); }));
  char text[8] = {};
  EXPECT_EQ(read(reading.get(), text, sizeof(text)), 4);
  EXPECT_STREQ(text, "text");
}

TEST(Print, SaysWhatKeepsItFromWriting) {
  EXPECT_TRUE(HoldsWith(UniqueFd(open("/dev/full", O_WRONLY)), [] {
    const absl::Status status = Print("text");
    return absl::StrContains(status.message(), "No space left") &&
           absl::StrContains(status.message(), "standard output") &&
           CodeOf(status) != ErrorCode::kPeerGone;
  }));
}

TEST(Print, TellsAPipeThatNobodyReads) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const UniqueFd writing(ends[1]);
  close(ends[0]);
  EXPECT_TRUE(HoldsWith(
      writing, [] { return CodeOf(Print("text")) == ErrorCode::kPeerGone; }));
}

}  // namespace
}  // namespace tandem
