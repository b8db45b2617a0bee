#include "viz/core/daemon_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "viz/core/daemon_channel.h"
#include "viz/core/testing/test_daemon.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

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

TEST(DaemonClient, ReadsRowsFromAnyNumberOn) {
  TestDaemon daemon;
  const DaemonClient client(daemon.target());
  AwaitRuns(client, Answers);
  const absl::StatusOr<std::string> run_id =
      client.Submit(ConfigOf("for i in $(seq 1200); do echo $STEP; done; echo "
                             "$EPISODE; echo $EPISODE"));
  ASSERT_TRUE(run_id.ok()) << run_id.status();
  const DaemonRun run = AwaitState(client, "TERM");
  EXPECT_EQ(run.stored_steps, 1200U);
  const auto numbers = [&](DaemonClient::Table table, uint64_t first,
                           uint32_t count) {
    const absl::StatusOr<std::vector<DaemonRow>> rows =
        client.ReadRows(*run_id, table, first, count);
    EXPECT_TRUE(rows.ok()) << rows.status();
    std::vector<uint64_t> found;
    for (const DaemonRow& row : rows.value_or(std::vector<DaemonRow>())) {
      found.push_back(row.number);
    }
    return found;
  };
  using Table = DaemonClient::Table;
  EXPECT_THAT(numbers(Table::kSteps, 1, 3), ElementsAre(1, 2, 3));
  EXPECT_THAT(numbers(Table::kSteps, 1199, 3), ElementsAre(1199, 1200));
  EXPECT_THAT(numbers(Table::kSteps, 1201, 3), IsEmpty());
  EXPECT_THAT(numbers(Table::kSteps, 900, 1'000'000),
              SizeIs(301));  // at most kMostRows, of 301
  EXPECT_THAT(numbers(Table::kSteps, 1, 1'000'000),
              SizeIs(DaemonClient::kMostRows));
  EXPECT_THAT(numbers(Table::kEpisodes, 1, 9), ElementsAre(1, 2));
  EXPECT_THAT(numbers(Table::kEpisodes, 1, 0), IsEmpty());
  const std::vector<DaemonRow> episodes =
      *client.ReadRows(*run_id, Table::kEpisodes, 2, 1);
  EXPECT_EQ(episodes[0].value, 1.5);
  EXPECT_EQ(episodes[0].step, 3U);
  RunCurves curves{RunAttempt()};
  while (!client.ReadCurves(*run_id, true, &curves).value()) {
  }
  EXPECT_EQ(curves.last_episode(), 2U);
  EXPECT_EQ(curves.curves()[RunCurves::kReturn].Points(1)[0].sum, 3);
  EXPECT_EQ(client.ReadRows("no-such-run", Table::kSteps, 1, 1).status().code(),
            absl::StatusCode::kNotFound);
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

TEST(DaemonTarget, IsTheVariableOrTheDefaultAddress) {
  setenv("TANDEM_DAEMON", "unix:/tmp/here.sock", 1);
  EXPECT_EQ(DaemonTarget(), "unix:/tmp/here.sock");
  unsetenv("TANDEM_DAEMON");
  EXPECT_EQ(DaemonTarget(), "127.0.0.1:50055");
}

}  // namespace
}  // namespace tandem
