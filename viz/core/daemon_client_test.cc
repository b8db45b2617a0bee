#include "viz/core/daemon_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "viz/core/daemon_channel.h"
#include "viz/core/testing/test_daemon.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

// A run is EXEC when its first event is stored.
constexpr char kSleeps[] = "echo $STEP; exec sleep 1000";

bool Answers(const DaemonRuns&) { return true; }

TEST(DaemonClient, SubmitsPausesResumesAndCancels) {
  TestDaemon daemon;
  const DaemonClient client(daemon.target());
  EXPECT_EQ(AwaitRuns(client, Answers).state, "ok");
  const absl::StatusOr<std::string> run_id = client.Submit(ConfigOf(kSleeps));
  ASSERT_TRUE(run_id.ok()) << run_id.status();
  const DaemonRun run = AwaitState(client, "EXEC");
  EXPECT_EQ(run.run_id, *run_id);
  EXPECT_EQ(run.name, "test");
  EXPECT_GT(run.worker_pid, 0);
  EXPECT_EQ(run.steps, 1U);
  EXPECT_FALSE(run.has_ended);
  ASSERT_TRUE(client.SetPaused(*run_id, true).ok());
  AwaitState(client, "PAUSE");
  ASSERT_TRUE(client.SetPaused(*run_id, false).ok());
  AwaitState(client, "EXEC");
  ASSERT_TRUE(client.Cancel(*run_id).ok());
  EXPECT_TRUE(AwaitState(client, "TERM").has_ended);
}

TEST(DaemonClient, ReadsCurvesToTheirEnd) {
  TestDaemon daemon;
  const DaemonClient client(daemon.target());
  AwaitRuns(client, Answers);
  const absl::StatusOr<std::string> run_id =
      client.Submit(ConfigOf("for i in $(seq 1200); do echo $STEP; done; echo "
                             "$EPISODE; echo $EPISODE"));
  ASSERT_TRUE(run_id.ok()) << run_id.status();
  const DaemonRun run = AwaitState(client, "TERM");
  EXPECT_EQ(run.steps, 1200U);
  RunCurves curves{RunAttempt()};
  while (!client.ReadCurves(*run_id, true, &curves).value()) {
  }
  EXPECT_EQ(curves.last_episode(), 2U);
  EXPECT_EQ(curves.curves()[RunCurves::kReturn].Points(1)[0].sum, 3);
}

TEST(DaemonClient, ReturnsTheDaemonsRefusals) {
  TestDaemon daemon;
  const DaemonClient client(daemon.target());
  AwaitRuns(client, Answers);
  EXPECT_EQ(client.Submit("{}").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(client.Cancel("no-such-run").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(client.SetPaused("no-such-run", true).code(),
            absl::StatusCode::kNotFound);
}

TEST(DaemonClient, FindsADaemonThatWasKilledAndCameBack) {
  TestDaemon daemon;
  const DaemonClient client(daemon.target());
  AwaitRuns(client, Answers);
  const absl::StatusOr<std::string> run_id = client.Submit(ConfigOf(kSleeps));
  ASSERT_TRUE(run_id.ok()) << run_id.status();
  daemon.Kill();
  const absl::Status gone = client.ListRuns().status();
  EXPECT_EQ(gone.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(gone.message()), HasSubstr("TANDEM_DAEMON"));
  daemon.Start();
  EXPECT_EQ(AwaitState(client, "EXEC").run_id, *run_id);
  EXPECT_TRUE(client.Cancel(*run_id).ok());
}

TEST(DaemonClient, AnUnreadableTokenIsRefusedBeforeTheCall) {
  setenv("TANDEM_TOKEN_FILE", "/no/such/token", 1);
  const DaemonClient client("unix:/no/such.sock");
  const absl::Status status = client.ListRuns().status();
  unsetenv("TANDEM_TOKEN_FILE");
  EXPECT_THAT(std::string(status.message()), HasSubstr("/no/such/token"));
}

TEST(FactsText, HasTheLastAttemptsShareOfMaxSteps) {
  DaemonRun run;
  run.steps = 1200;
  run.attempt_steps = 200;
  EXPECT_THAT(FactsText(run), HasSubstr("1,200 steps"));
  run.max_steps = 5000;
  EXPECT_THAT(FactsText(run), HasSubstr("200 of 5,000 steps"));
}

TEST(DaemonTarget, IsTheVariableOrTheDefaultAddress) {
  setenv("TANDEM_DAEMON", "unix:/tmp/here.sock", 1);
  EXPECT_EQ(DaemonTarget(), "unix:/tmp/here.sock");
  unsetenv("TANDEM_DAEMON");
  EXPECT_EQ(DaemonTarget(), "127.0.0.1:50055");
}

}  // namespace
}  // namespace tandem
