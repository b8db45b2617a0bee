#include "viz/core/async_daemon_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/clock.h"
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

AsyncDaemonClient::List AwaitList(
    AsyncDaemonClient* client,
    absl::FunctionRef<bool(const AsyncDaemonClient::List&)> is_so) {
  for (;;) {
    const int64_t now_ns = MonotonicNanos();
    const auto list = client->Runs(now_ns, 0);
    if (list != nullptr && is_so(*list)) return *list;
    absl::SleepFor(absl::Milliseconds(5));
  }
}

TEST(AsyncDaemonClient, SubmitsListsAndCancels) {
  TestDaemon daemon;
  AsyncDaemonClient client(daemon.target());
  AwaitList(&client, [](const auto& list) { return list.problem.empty(); });
  const absl::StatusOr<std::string> submitted =
      Await(*client.Act(SubmitRun{ConfigOf("echo $STEP; exec sleep 1000")}));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_THAT(*submitted, StartsWith("Submitted "));
  const auto has_state = [](const char* state) {
    return [state](const AsyncDaemonClient::List& list) {
      return list.runs.size() == 1 && list.runs[0].state == state;
    };
  };
  const std::string run_id =
      AwaitList(&client, has_state("EXEC")).runs[0].run_id;
  EXPECT_EQ(*submitted, "Submitted " + run_id);
  ASSERT_TRUE(Await(*client.Act(PauseRun{.run_id = run_id, .on = true})).ok());
  AwaitList(&client, has_state("PAUSE"));
  ASSERT_TRUE(Await(*client.Act(CancelRun{run_id})).ok());
  AwaitList(&client, has_state("TERM"));
}

TEST(AsyncDaemonClient, TheDaemonAcceptsTheExample) {
  TestDaemon daemon;
  const DaemonClient client(daemon.target());
  AwaitRuns(client, [](const DaemonRuns&) { return true; });
  EXPECT_TRUE(client.Submit(std::string(kExampleConfig)).ok());
  AwaitState(client, "FAULT");  // there is no train.py
}

TEST(AsyncDaemonClient, WithoutADaemonTheProblemSaysWhatToDo) {
  AsyncDaemonClient client("unix:/no/such/daemon.sock");
  const AsyncDaemonClient::List list = AwaitList(
      &client, [](const auto& found) { return !found.problem.empty(); });
  EXPECT_TRUE(list.runs.empty());
  EXPECT_THAT(list.problem, HasSubstr("TANDEM_DAEMON"));
}

TEST(AsyncDaemonClient, KeepsTheRunsOfADaemonThatIsGone) {
  TestDaemon daemon;
  AsyncDaemonClient client(daemon.target());
  AwaitList(&client, [](const auto& list) { return list.problem.empty(); });
  ASSERT_TRUE(
      Await(*client.Act(SubmitRun{ConfigOf("echo $STEP; exec sleep 1000")}))
          .ok());
  AwaitList(&client, [](const auto& list) {
    return list.runs.size() == 1 && list.runs[0].state == "EXEC";
  });
  daemon.Kill();
  const AsyncDaemonClient::List list = AwaitList(
      &client, [](const auto& found) { return !found.problem.empty(); });
  ASSERT_EQ(list.runs.size(), 1u);
  EXPECT_EQ(list.runs[0].state, "EXEC");
  EXPECT_TRUE(list.runs[0].unreachable);
  EXPECT_NE(client.Find(list.runs[0].run_id), nullptr);
  daemon.Start();
  AwaitList(&client, [](const auto& found) {
    return found.problem.empty() && found.runs.size() == 1 &&
           !found.runs[0].unreachable;
  });
}

}  // namespace
}  // namespace tandem
