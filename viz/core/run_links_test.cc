#include "viz/core/run_links.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>

namespace tandem {
namespace {

// Starts a process with one variable, and ends it.
class Sleeper {
 public:
  explicit Sleeper(std::string variable) {
    std::array<char*, 2> variables = {variable.data(), nullptr};
    std::string program = "sleep";
    std::string secs = "1000";
    std::array<char*, 3> words = {program.data(), secs.data(), nullptr};
    std::array<int, 2> ends = {-1, -1};
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      execve("/bin/sleep", words.data(), variables.data());
      _exit(127);
    }
    close(ends[1]);
    char byte = 0;
    EXPECT_EQ(read(ends[0], &byte, 1), 0);  // execve has closed the other end
    close(ends[0]);
    // execve makes them readable only after that.
    const std::string file = "/proc/" + std::to_string(pid_) + "/environ";
    while (std::ifstream(file).peek() == EOF) usleep(1000);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  ~Sleeper() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

TEST(RunOfProcess, ReadsTheVariableOfTheDaemon) {
  EXPECT_EQ(RunOfProcess(Sleeper("TANDEM_RUN_ID=01KATF46").pid()), "01KATF46");
  EXPECT_EQ(RunOfProcess(Sleeper("TANDEM_RUN_ID=\x1b[2J").pid()), "\\x1b[2J");
  EXPECT_EQ(RunOfProcess(Sleeper("NOT_TANDEM_RUN_ID=1").pid()), "");
  EXPECT_EQ(RunOfProcess(0), "");
}

TEST(WantsFrames, IsTheMemberOfTheConfiguration) {
  std::string folder = testing::TempDir() + "run-links-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  EXPECT_FALSE(WantsFrames(folder));
  const auto with = [&](const char* text) {
    std::ofstream(folder + "/config.json") << text;
    return WantsFrames(folder);
  };
  EXPECT_TRUE(with(R"({"metadata": {"tandem": {"fast_lane": {}}}})"));
  EXPECT_FALSE(with(R"({"metadata": {"tandem": {"fast_lane": 1}}})"));
  EXPECT_FALSE(with(R"({"metadata": {"tandem": {}}})"));
  EXPECT_FALSE(with(R"({"metadata": ["tandem"]})"));
  EXPECT_FALSE(with(R"({"metadata)"));
  EXPECT_FALSE(with("[]"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tandem
