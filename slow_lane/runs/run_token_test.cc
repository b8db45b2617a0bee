#include "slow_lane/runs/run_token.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "slow_lane/runs/process_identity.h"
#include "slow_lane/runs/testing/test_processes.h"

namespace tandem::slow_lane {
namespace {

// A process with a given environment; it sleeps, or its first thread exits.
class RunTokenTest : public testing::Test {
 protected:
  ~RunTokenTest() override {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  ProcessStat Start(const std::string& mode,
                    const std::vector<std::string>& environment) {
    const std::string said = folder_.File("said");
    pid_ = StartProgram({HostileWorker(), mode, said, "sleeper"}, environment);
    WaitUntil("the process", [&] { return !ReadLines(said).empty(); });
    const auto stat = ReadProcessStat(pid_, &text_);
    EXPECT_TRUE(stat.ok()) << stat.status();
    return *stat;
  }

  const TestFolder folder_;
  pid_t pid_ = -1;
  std::string text_;
};

TEST_F(RunTokenTest, IsFoundAtAnyPlaceInTheEnvironment) {
  const std::string large = absl::StrCat("LARGE=", std::string(100'000, 'x'));
  const ProcessStat stat =
      Start("sleep", {large, "A=", "TANDEM_RUN_TOKEN=abc", "LAST=1"});
  EXPECT_TRUE(*RunToken("abc").IsOf(stat));
  EXPECT_EQ(RunTokenOf(pid_), "abc");
}

TEST_F(RunTokenTest, MatchesTheFullValueOfItsVariable) {
  const ProcessStat stat =
      Start("sleep", {"XTANDEM_RUN_TOKEN=abc", "B=TANDEM_RUN_TOKEN=abc",
                      "TANDEM_RUN_TOKEN=abcd", "TANDEM_RUN_TOKEN_=abc"});
  EXPECT_FALSE(*RunToken("abc").IsOf(stat));
  EXPECT_FALSE(*RunToken("abcde").IsOf(stat));
  EXPECT_FALSE(*RunToken("").IsOf(stat));
  EXPECT_TRUE(*RunToken("abcd").IsOf(stat));
}

TEST_F(RunTokenTest, IsFoundInThreadsThatOutliveTheFirst) {
  const ProcessStat stat = Start("headless", {"TANDEM_RUN_TOKEN=abc"});
  ASSERT_EQ(stat.state, 'Z');
  EXPECT_TRUE(stat.IsAlive());
  EXPECT_TRUE(*RunToken("abc").IsOf(stat));
  EXPECT_FALSE(*RunToken("ab").IsOf(stat));
}

TEST_F(RunTokenTest, IsNotInAnEmptyEnvironmentOrADeadProcess) {
  ProcessStat stat = Start("sleep", {});
  EXPECT_FALSE(*RunToken("abc").IsOf(stat));
  EXPECT_EQ(RunTokenOf(pid_), std::nullopt);
  stat.pid = 0;
  EXPECT_FALSE(*RunToken("abc").IsOf(stat));
  EXPECT_EQ(RunTokenOf(0), std::nullopt);
}

TEST_F(RunTokenTest, MarksWithoutAnEnvironmentByTheLimit) {
  const RunToken token("abc");
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_LOCKS, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = token.limit();
  ASSERT_EQ(setrlimit(RLIMIT_LOCKS, &limit), 0);  // children inherit it
  const ProcessStat stat = Start("sleep", {});
  ASSERT_EQ(setrlimit(RLIMIT_LOCKS, &before), 0);
  EXPECT_TRUE(*token.IsOf(stat));
  EXPECT_FALSE(*RunToken("abd").IsOf(stat));
}

}  // namespace
}  // namespace tandem::slow_lane
