#include "viz/core/daemon_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "program/end_with_parent.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

// A daemon with its own folder, reached by the folder's socket.
class Daemon {
 public:
  Daemon() {
    // Short: a socket's path has at most 107 characters.
    std::string folder = "/tmp/tandem-XXXXXX";
    folder_ = mkdtemp(folder.data());
    Start();
  }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  ~Daemon() {
    Kill();
    std::filesystem::remove_all(folder_);
  }

  void Start() {
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ != 0) return;
    EndWithParent(SIGTERM, parent);
    const std::string data_dir = absl::StrCat("--data_dir=", folder_);
    execl("slow_lane/daemon/tandem-daemon", "tandem-daemon", data_dir.c_str(),
          "--listen=none", "--gpu_slots=0", "--kill_grace=100ms", nullptr);
    _exit(127);
  }
  void Kill() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  std::string target() const {
    return absl::StrCat("unix:", folder_, "/daemon.sock");
  }

 private:
  std::string folder_;
  pid_t pid_ = -1;
};

// Asks until `is_so` holds; a daemon that starts does not answer yet.
DaemonRuns Await(const DaemonClient& client,
                 absl::FunctionRef<bool(const DaemonRuns&)> is_so) {
  for (;;) {
    const absl::StatusOr<DaemonRuns> runs = client.ListRuns();
    if (runs.ok() && is_so(*runs)) return *runs;
    absl::SleepFor(absl::Milliseconds(10));
  }
}

DaemonRun AwaitState(const DaemonClient& client, const std::string& state) {
  return Await(client,
               [&](const DaemonRuns& runs) {
                 return runs.runs.size() == 1 && runs.runs[0].state == state;
               })
      .runs[0];
}

// A run is EXEC when its first event is stored.
constexpr char kSleeps[] = R"({
  "run_name": "sleeps", "entry_point": "/bin/sh",
  "environment": {"EVENT": "{\"event_type\": \"step\", \"episode\": 0, \"step_index\": 0, \"reward\": 1}"},
  "arguments": ["-c", "echo $EVENT; sleep 1000"],
  "resources": {"cpus": 1, "memory_mb": 256, "gpus": {"requested": 0}},
  "artifacts": {}
})";

TEST(DaemonClient, SubmitsPausesResumesAndCancels) {
  Daemon daemon;
  const DaemonClient client(daemon.target());
  EXPECT_EQ(Await(client, [](const DaemonRuns&) { return true; }).state, "ok");
  const absl::StatusOr<std::string> run_id = client.Submit(kSleeps);
  ASSERT_TRUE(run_id.ok()) << run_id.status();
  const DaemonRun run = AwaitState(client, "EXEC");
  EXPECT_EQ(run.run_id, *run_id);
  EXPECT_EQ(run.name, "sleeps");
  EXPECT_GT(run.worker_pid, 0);
  EXPECT_FALSE(run.has_ended);
  ASSERT_TRUE(client.SetPaused(*run_id, true).ok());
  AwaitState(client, "PAUSE");
  ASSERT_TRUE(client.SetPaused(*run_id, false).ok());
  AwaitState(client, "EXEC");
  ASSERT_TRUE(client.Cancel(*run_id).ok());
  EXPECT_TRUE(AwaitState(client, "TERM").has_ended);
}

TEST(DaemonClient, ReturnsTheDaemonsRefusals) {
  Daemon daemon;
  const DaemonClient client(daemon.target());
  Await(client, [](const DaemonRuns&) { return true; });
  EXPECT_EQ(client.Submit("{}").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(client.Cancel("no-such-run").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(client.SetPaused("no-such-run", true).code(),
            absl::StatusCode::kNotFound);
}

TEST(DaemonClient, FindsADaemonThatWasKilledAndCameBack) {
  Daemon daemon;
  const DaemonClient client(daemon.target());
  Await(client, [](const DaemonRuns&) { return true; });
  const absl::StatusOr<std::string> run_id = client.Submit(kSleeps);
  ASSERT_TRUE(run_id.ok()) << run_id.status();
  daemon.Kill();
  const absl::Status gone = client.ListRuns().status();
  EXPECT_EQ(gone.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(gone.message()), HasSubstr("TANDEM_DAEMON"));
  daemon.Start();
  EXPECT_EQ(AwaitState(client, "EXEC").run_id, *run_id);
  EXPECT_TRUE(client.Cancel(*run_id).ok());
}

TEST(DaemonTarget, IsTheVariableOrTheDefaultAddress) {
  setenv("TANDEM_DAEMON", "unix:/tmp/here.sock", 1);
  EXPECT_EQ(DaemonTarget(), "unix:/tmp/here.sock");
  unsetenv("TANDEM_DAEMON");
  EXPECT_EQ(DaemonTarget(), "127.0.0.1:50055");
}

}  // namespace
}  // namespace tandem
