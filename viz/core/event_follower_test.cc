#include "viz/core/event_follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "viz/core/daemon_client.h"
#include "viz/core/testing/test_daemon.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using Events = EventFollower::Events;

Events Await(const EventFollower& follower,
             absl::FunctionRef<bool(const Events&)> is_so) {
  for (;;) {
    Events events = follower.Read();
    if (is_so(events)) return events;
    absl::SleepFor(absl::Milliseconds(10));
  }
}

std::string SubmitTo(const DaemonClient& client, const std::string& script) {
  AwaitRuns(client, [](const DaemonRuns&) { return true; });
  absl::StatusOr<std::string> run_id = client.Submit(ConfigOf(script));
  EXPECT_TRUE(run_id.ok()) << run_id.status();
  return *run_id;
}

// Every step that is kept has the number after that of the one before.
void ExpectGapless(const Events& events) {
  for (size_t i = 1; i < events.steps.size(); ++i) {
    EXPECT_EQ(events.steps[i].number, events.steps[i - 1].number + 1);
  }
}

TEST(EventFollower, FollowsARunToItsEnd) {
  TestDaemon daemon;
  const DaemonClient client(daemon.target());
  const std::string run_id = SubmitTo(
      client, "for i in 1 2 3 4 5; do echo $STEP; echo $EPISODE; done");
  EventFollower follower(daemon.target(), run_id);
  const Events events =
      Await(follower, [](const Events& now) { return now.has_ended; });
  EXPECT_EQ(events.problem, "");
  EXPECT_EQ(events.last_step, 5U);
  EXPECT_EQ(events.steps.size(), 5U);
  EXPECT_EQ(events.steps.front().reward, 0.5);
  ExpectGapless(events);
  EXPECT_EQ(events.last_episode, 5U);
}

TEST(EventFollower, ContinuesWhenTheDaemonWasKilledAndCameBack) {
  TestDaemon daemon;
  const DaemonClient client(daemon.target());
  const std::string run_id = SubmitTo(
      client, "while :; do echo $STEP; echo $EPISODE; sleep 0.01; done");
  EventFollower follower(daemon.target(), run_id);
  uint64_t before = 0;
  for (int kills = 0; kills < 2; ++kills) {
    before = Await(follower, [&](const Events& now) {
               return now.connected && now.last_step > before + 20 &&
                      now.last_episode > before + 20;
             }).last_step;
    daemon.Kill();
    Await(follower, [](const Events& now) { return !now.connected; });
    daemon.Start();
  }
  const Events events = Await(follower, [&](const Events& now) {
    return now.connected && now.last_step > before + 20;
  });
  ExpectGapless(events);
  // Each episode once.
  AwaitRuns(client, [](const DaemonRuns&) { return true; });
  EXPECT_TRUE(client.Cancel(run_id).ok());
}

TEST(EventFollower, TakesFewOfManySteps) {
  TestDaemon daemon;
  const DaemonClient client(daemon.target());
  const std::string run_id =
      SubmitTo(client, "yes \"$STEP\" | head -n 20000; sleep 1000");
  AwaitRuns(client, [](const DaemonRuns& runs) {
    return runs.runs.size() == 1 && runs.runs[0].steps == 20'000;
  });
  EventFollower follower(daemon.target(), run_id);
  Await(follower, [](const Events& now) { return now.last_step > 300; });
  const Events events = follower.Read();
  EXPECT_EQ(events.steps.size(), EventFollower::kKeptSteps);
  ExpectGapless(events);
  EXPECT_LT(events.last_step, 2000U);  // 100 a second
  EXPECT_TRUE(client.Cancel(run_id).ok());
}

TEST(EventFollower, ReportsAnUnknownRun) {
  TestDaemon daemon;
  const DaemonClient client(daemon.target());
  AwaitRuns(client, [](const DaemonRuns&) { return true; });
  EventFollower follower(daemon.target(), "no-such-run");
  const Events events =
      Await(follower, [](const Events& now) { return !now.problem.empty(); });
  EXPECT_THAT(events.problem, HasSubstr("no-such-run"));
}

TEST(EventFollower, EndsWhileItLooksForADaemon) {
  EventFollower follower("unix:/no/such.sock", "a-run");
  EXPECT_FALSE(follower.Read().connected);
}  // the destructor returns

}  // namespace
}  // namespace tandem
