#include "slow_lane/proxy/output_pace.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <string>

namespace tandem::slow_lane {
namespace {

bool IsReadable(int fd) {
  pollfd polled = {.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&polled, 1, 0) == 1;
}

TEST(OutputPace, AWriteWakesOnlyAfterAReadThatFoundNothing) {
  const std::string path = testing::TempDir() + "/output_pace_test";
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
  OutputPace pace;
  pace.Watch(path);
  pace.NoteRead(/*grew=*/true, /*more=*/false);
  EXPECT_EQ(pace.wake_fd(), -1);
  EXPECT_FALSE(pace.IsDue());
  pace.NoteRead(/*grew=*/false, /*more=*/true);
  EXPECT_EQ(pace.wake_fd(), -1);
  EXPECT_TRUE(pace.IsDue());

  pace.NoteRead(/*grew=*/false, /*more=*/false);
  EXPECT_FALSE(IsReadable(pace.wake_fd()));
  ASSERT_EQ(write(file.get(), "x", 1), 1);
  EXPECT_TRUE(IsReadable(pace.wake_fd()));
  pace.Wake();
  EXPECT_TRUE(pace.IsDue());
  EXPECT_FALSE(IsReadable(pace.wake_fd()));
}

TEST(OutputPace, PausesOfIdleOutputAreShorterWithoutInotify) {
  OutputPace blind;
  for (int i = 0; i < 10; ++i) blind.NoteRead(false, false);
  EXPECT_EQ(blind.wake_fd(), -1);
  EXPECT_EQ(blind.pause_ms(), OutputPace::kLongestBlindMs);
  blind.NoteRead(true, false);
  EXPECT_EQ(blind.pause_ms(), OutputPace::kShortestMs);
}

}  // namespace
}  // namespace tandem::slow_lane
