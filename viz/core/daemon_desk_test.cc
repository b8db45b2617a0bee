#include "viz/core/daemon_desk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/error.h"
#include "viz/core/background.h"
#include "viz/core/testing/test_daemon.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

absl::StatusOr<std::string> Await(const Pending& pending) {
  while (!pending.Get().has_value()) absl::SleepFor(absl::Milliseconds(1));
  return *pending.Get();
}

DaemonDesk::List AwaitList(
    DaemonDesk* desk, absl::FunctionRef<bool(const DaemonDesk::List&)> is_so) {
  for (;;) {
    const int64_t now_ns = MonotonicNanos();
    const auto list = desk->Runs(now_ns, 0);
    if (list != nullptr && is_so(*list)) return *list;
    absl::SleepFor(absl::Milliseconds(5));
  }
}

TEST(DaemonDesk, SubmitsListsAndCancels) {
  TestDaemon daemon;
  DaemonDesk desk(daemon.target());
  AwaitList(&desk, [](const auto& list) { return list.problem.empty(); });
  const absl::StatusOr<std::string> submitted = Await(*desk.Act(
      {.what = "submit", .config = ConfigOf("echo $STEP; exec sleep 1000")}));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_THAT(*submitted, StartsWith("Submitted "));
  const auto has_state = [](const char* state) {
    return [state](const DaemonDesk::List& list) {
      return list.runs.size() == 1 && list.runs[0].state == state;
    };
  };
  const std::string run_id = AwaitList(&desk, has_state("EXEC")).runs[0].run_id;
  EXPECT_EQ(*submitted, "Submitted " + run_id);
  ASSERT_TRUE(
      Await(*desk.Act({.what = "hold", .run_id = run_id, .on = true})).ok());
  AwaitList(&desk, has_state("PAUSE"));
  const std::shared_ptr<EventFollower> follower = desk.Follower(run_id);
  EXPECT_EQ(desk.Follower(run_id), follower);
  while (follower->Read().last_step < 1) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  ASSERT_TRUE(Await(*desk.Act({.what = "cancel", .run_id = run_id})).ok());
  AwaitList(&desk, has_state("TERM"));
  EXPECT_EQ(CodeOf(Await(*desk.Act({.what = "fly"})).status()),
            ErrorCode::kInvalidArgument);
}

TEST(DaemonDesk, TheDaemonAcceptsTheExample) {
  TestDaemon daemon;
  const DaemonClient client(daemon.target());
  AwaitRuns(client, [](const DaemonRuns&) { return true; });
  EXPECT_TRUE(client.Submit(std::string(kExampleConfig)).ok());
  AwaitState(client, "FAULT");  // there is no train.py
}

TEST(DaemonDesk, WithoutADaemonTheProblemSaysWhatToDo) {
  DaemonDesk desk("unix:/no/such/daemon.sock");
  const DaemonDesk::List list = AwaitList(
      &desk, [](const auto& found) { return !found.problem.empty(); });
  EXPECT_TRUE(list.runs.empty());
  EXPECT_THAT(list.problem, HasSubstr("TANDEM_DAEMON"));
}

TEST(DaemonDesk, KeepsTheRunsOfADaemonThatIsGone) {
  TestDaemon daemon;
  DaemonDesk desk(daemon.target());
  AwaitList(&desk, [](const auto& list) { return list.problem.empty(); });
  ASSERT_TRUE(
      Await(*desk.Act({.what = "submit",
                       .config = ConfigOf("echo $STEP; exec sleep 1000")}))
          .ok());
  AwaitList(&desk, [](const auto& list) {
    return list.runs.size() == 1 && list.runs[0].state == "EXEC";
  });
  daemon.Kill();
  const DaemonDesk::List list = AwaitList(
      &desk, [](const auto& found) { return !found.problem.empty(); });
  ASSERT_EQ(list.runs.size(), 1u);
  EXPECT_EQ(list.runs[0].state, "EXEC");
  EXPECT_TRUE(list.runs[0].unreachable);
  EXPECT_NE(desk.Find(list.runs[0].run_id), nullptr);
  daemon.Start();
  AwaitList(&desk, [](const auto& found) {
    return found.problem.empty() && found.runs.size() == 1 &&
           !found.runs[0].unreachable;
  });
}

TEST(DaemonDesk, FollowsAtMostSixteenRuns) {
  DaemonDesk desk("unix:/no/such/daemon.sock");
  std::vector<std::shared_ptr<EventFollower>> followers;
  for (size_t i = 0; i < DaemonDesk::kMostFollowers; ++i) {
    followers.push_back(desk.Follower(std::to_string(i)));
    ASSERT_NE(followers.back(), nullptr);
  }
  EXPECT_EQ(desk.Follower("another"), nullptr);
  followers.pop_back();
  EXPECT_NE(desk.Follower("another"), nullptr);
}

}  // namespace
}  // namespace tandem
