#include "viz/core/daemon_starter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "viz/core/daemon_client.h"
#include "viz/core/program_start.h"

namespace tandem {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

class DaemonStarterTest : public testing::Test {
 protected:
  DaemonStarterTest() {
    // Short: a socket's path has at most 107 characters.
    std::string name = "/tmp/tandem-XXXXXX";
    folder_ = mkdtemp(name.data());
    target_ = absl::StrCat("unix:", folder_, "/view.sock");
  }
  ~DaemonStarterTest() override {
    if (const pid_t pid = Pid(); pid > 0) {
      kill(pid, SIGTERM);
      waitpid(pid, nullptr, 0);
    }
    std::filesystem::remove_all(folder_);
  }

  std::string Data() const { return absl::StrCat(folder_, "/data"); }
  // Of the daemon, which its folder names; 0: none.
  pid_t Pid() const {
    std::ifstream file(absl::StrCat(Data(), "/daemon.pid"));
    pid_t pid = 0;
    file >> pid;
    return pid;
  }

  std::string folder_;
  std::string target_;
};

TEST_F(DaemonStarterTest, StartsOneThatIsFoundTheNextTime) {
  ASSERT_TRUE(StartDaemon(Data(), target_).ok());
  const pid_t pid = Pid();
  EXPECT_GT(pid, 0);
  EXPECT_TRUE(DaemonClient(target_).ListRuns().ok());
  EXPECT_EQ(getsid(pid), pid);
  ASSERT_TRUE(StartDaemon(Data(), target_).ok());
  EXPECT_EQ(Pid(), pid);
}

TEST_F(DaemonStarterTest, StartsOneByDefaultInTheUsersFolder) {
  setenv("XDG_STATE_HOME", folder_.c_str(), 1);
  const std::string data = DefaultDataDir();
  EXPECT_EQ(data, absl::StrCat(folder_, "/tandem/data"));
  ASSERT_TRUE(StartWantedDaemon("test", {.target = target_}).ok());
  ASSERT_TRUE(StartWantedDaemon("test", {.target = "", .flag = true}).ok());
  ASSERT_TRUE(
      StartWantedDaemon("test", {.target = "192.0.2.1:1", .by_default = true})
          .ok());
  DaemonOptions options = {
      .target = target_, .flag = false, .by_default = true};
  ASSERT_TRUE(StartWantedDaemon("test", options).ok());
  EXPECT_FALSE(std::filesystem::exists(data));
  options.flag.reset();
  ASSERT_TRUE(StartWantedDaemon("test", options).ok());
  EXPECT_TRUE(DaemonClient(target_).ListRuns().ok());
  std::filesystem::create_symlink(data, Data());  // for the end
  unsetenv("XDG_STATE_HOME");
}

TEST_F(DaemonStarterTest, AFailureIsAnErrorOnlyIfTheFlagWantsADaemon) {
  std::filesystem::create_directory(Data());
  std::filesystem::permissions(Data(), std::filesystem::perms::all);
  DaemonOptions options = {
      .target = target_, .by_default = true, .data_dir = Data()};
  EXPECT_TRUE(StartWantedDaemon("test", options).ok());
  options.flag = true;
  EXPECT_EQ(CodeOf(StartWantedDaemon("test", options)), ErrorCode::kNotReady);
}

TEST_F(DaemonStarterTest, SaysThatItHasExited) {
  // A folder that others may open is refused.
  std::filesystem::create_directory(Data());
  std::filesystem::permissions(Data(), std::filesystem::perms::all);
  const absl::Status status = StartDaemon(Data(), target_);
  EXPECT_EQ(CodeOf(status), ErrorCode::kNotReady);
  EXPECT_THAT(std::string(status.message()), HasSubstr("exited"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("mode 0777"));
}

TEST_F(DaemonStarterTest, FindsTheProgramInPath) {
  const std::string before = std::getenv("PATH");
  std::ofstream(absl::StrCat(folder_, "/tandem-daemon")) << "#!/bin/sh\n";
  std::filesystem::permissions(absl::StrCat(folder_, "/tandem-daemon"),
                               std::filesystem::perms::owner_all);
  setenv("PATH", folder_.c_str(), 1);
  EXPECT_EQ(*FindProgram("tandem-daemon", "slow_lane/daemon/"),
            absl::StrCat(folder_, "/tandem-daemon"));
  setenv("PATH", "/nonexistent", 1);
  // This test's runfiles have one.
  EXPECT_THAT(*FindProgram("tandem-daemon", "slow_lane/daemon/"),
              EndsWith("slow_lane/daemon/tandem-daemon"));
  setenv("PATH", before.c_str(), 1);
}

}  // namespace
}  // namespace tandem
