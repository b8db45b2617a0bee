#include "viz/core/testing/test_daemon.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/os/end_with_parent.h"

namespace tandem {

TestDaemon::TestDaemon() {
  // Short: a socket's path has at most 107 characters.
  std::string folder = "/tmp/tandem-XXXXXX";
  folder_ = mkdtemp(folder.data());
  Start();
}

TestDaemon::~TestDaemon() {
  Kill();
  std::filesystem::remove_all(folder_);
}

void TestDaemon::Start() {
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ != 0) return;
  EndWithParent(SIGTERM, parent);
  const std::string data_dir = absl::StrCat("--data_dir=", folder_);
  execl("slow_lane/daemon/tandem-daemon", "tandem-daemon", data_dir.c_str(),
        "--listen=none", "--gpu_slots=0", "--kill_grace=100ms", nullptr);
  _exit(127);
}

void TestDaemon::Kill() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::string TestDaemon::target() const {
  return absl::StrCat("unix:", folder_, "/daemon.sock");
}

std::string ConfigOf(absl::string_view script) {
  const nlohmann::json step = {{"event_type", "step"},
                               {"episode", 0},
                               {"step_index", 0},
                               {"reward", 0.5}};
  const nlohmann::json episode = {{"event_type", "episode"},
                                  {"episode", 0},
                                  {"total_reward", 1.5},
                                  {"steps", 3}};
  const nlohmann::json config = {
      {"run_name", "test"},
      {"entry_point", "/bin/sh"},
      {"arguments", {"-c", std::string(script)}},
      {"environment", {{"STEP", step.dump()}, {"EPISODE", episode.dump()}}},
      {"resources",
       {{"cpus", 1}, {"memory_mb", 256}, {"gpus", {{"requested", 0}}}}},
      {"artifacts", nlohmann::json::object()}};
  return config.dump();
}

DaemonRuns AwaitRuns(const DaemonClient& client,
                     absl::FunctionRef<bool(const DaemonRuns&)> is_so) {
  for (;;) {
    const absl::StatusOr<DaemonRuns> runs = client.ListRuns();
    if (runs.ok() && is_so(*runs)) return *runs;
    absl::SleepFor(absl::Milliseconds(10));
  }
}

DaemonRun AwaitState(const DaemonClient& client, absl::string_view state) {
  return AwaitRuns(client,
                   [&](const DaemonRuns& runs) {
                     return runs.runs.size() == 1 &&
                            runs.runs[0].state == state;
                   })
      .runs[0];
}

}  // namespace tandem
