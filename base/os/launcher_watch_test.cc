#include "base/os/launcher_watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <future>

#include "base/os/unique_fd.h"

namespace tandem {
namespace {

class LauncherWatchTest : public testing::Test {
 protected:
  void SetUp() override {
    alarm(60);
    std::array<int, 2> ends;
    ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    read_end_ = ends[0];
    write_end_ = UniqueFd(ends[1]);
  }
  void TearDown() override { alarm(0); }

  int read_end_;
  UniqueFd write_end_;
  std::promise<void> left_;
};

TEST_F(LauncherWatchTest, ReportsExitOfLauncher) {
  LauncherWatch watch(
      read_end_, [this] { left_.set_value(); }, [] {});
  EXPECT_FALSE(watch.HasLeft());
  write_end_.reset();
  left_.get_future().wait();
  EXPECT_TRUE(watch.HasLeft());
}

TEST_F(LauncherWatchTest, DiscardsInput) {
  LauncherWatch watch(
      read_end_, [this] { left_.set_value(); }, [] {});
  ASSERT_EQ(write(write_end_.get(), "x", 1), 1);
  write_end_.reset();
  left_.get_future().wait();
}

TEST_F(LauncherWatchTest, StopsBeforeTheLauncher) {
  {
    const LauncherWatch watch(
        read_end_, [this] { left_.set_value(); }, [] {});
  }
  EXPECT_EQ(left_.get_future().wait_for(std::chrono::seconds(0)),
            std::future_status::timeout);
}

TEST_F(LauncherWatchTest, ReportsUnclosedPipe) {
  std::promise<void> stuck;
  LauncherWatch watch(
      read_end_, [this] { left_.set_value(); }, [&] { stuck.set_value(); });
  write_end_.reset();
  left_.get_future().wait();
  stuck.get_future().wait();
}

}  // namespace
}  // namespace tandem
