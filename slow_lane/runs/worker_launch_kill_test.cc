#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "slow_lane/runs/run_folder.h"
#include "slow_lane/runs/testing/test_processes.h"
#include "slow_lane/runs/worker_launch.h"

namespace tandem::slow_lane {
namespace {

using State = AdoptedWorker::State;

// The number of kills of the launcher, each at another moment.
int Seeds() {
  int seeds = 25;
  const char* const given = getenv("TANDEM_LAUNCH_SEEDS");
  EXPECT_TRUE(given == nullptr || absl::SimpleAtoi(given, &seeds)) << given;
  return seeds;
}

// The children end by themselves.
void WaitForAllChildren() {
  WaitUntil("the end of all children", [] {
    ReapOrphans(-1);
    return waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD;
  });
}

TEST(WorkerLaunch, ExecutesOnceWhereverItsLauncherIsKilled) {
  // Workers of killed launchers become children of this process.
  ASSERT_TRUE(BecomeSubreaper().ok());
  const TestFolder data;
  const std::string said = data.File("said");
  int launched_again = 0, found_running = 0;
  int64_t launch_ns = 0;
  const int seeds = Seeds();
  for (int seed = 0; seed < seeds; ++seed) {
    const RunFolder folder =
        RunFolder::At(data.path(), absl::StrCat("killed-", seed));
    ASSERT_TRUE(folder.Create().ok());
    const LaunchPlan plan = {
        .argv = {HostileWorker(), "once", said},
        .environment = {},
        .working_directory = "",
        .token = absl::StrCat("token-", data.path(), "-", seed)};
    if (seed == 0) {
      // Measures the duration of a launch.
      const RunFolder measured = RunFolder::At(data.path(), "measured");
      ASSERT_TRUE(measured.Create().ok());
      const int64_t begin_ns = MonotonicNanos();
      ASSERT_TRUE(LaunchWorker(measured, plan).ok());
      launch_ns = MonotonicNanos() - begin_ns;
    }
    WaitForAllChildren();
    unlink(said.c_str());
    std::mt19937_64 random(static_cast<uint64_t>(seed));
    const int64_t wait_ns = static_cast<int64_t>(
        random() % static_cast<uint64_t>(launch_ns * 3 / 2));

    const pid_t launcher = fork();
    if (launcher == 0) {
      (void)LaunchWorker(folder, plan);
      _exit(0);
    }
    const Deadline kill_at = Deadline::At(MonotonicNanos() + wait_ns);
    while (!kill_at.PassedAt(MonotonicNanos())) {
    }
    kill(launcher, SIGKILL);
    ASSERT_EQ(waitpid(launcher, nullptr, 0), launcher);

    // Adopts the worker as a restarted proxy does.
    auto adopted = AdoptWorker(folder, plan.token);
    ASSERT_TRUE(adopted.ok()) << adopted.status();
    if (adopted->state == State::kNeverStarted) {
      const auto worker = LaunchWorker(folder, plan);
      if (worker.ok()) {
        ++launched_again;
      } else {
        ASSERT_TRUE(absl::IsAlreadyExists(worker.status())) << worker.status();
      }
      adopted = AdoptWorker(folder, plan.token);
      ASSERT_TRUE(adopted.ok()) << adopted.status();
      ASSERT_NE(adopted->state, State::kNeverStarted);
    } else {
      ++found_running;
    }
    // This includes the children of the dead launcher.
    WaitForAllChildren();
    ASSERT_EQ(ReadLines(said).size(), 1u) << "seed " << seed;
  }
  std::printf("%d kills within %.1f ms: %d launched again, %d found\n", seeds,
              static_cast<double>(launch_ns) * 1.5e-6, launched_again,
              found_running);
}

// The launcher does what a daemon and its proxy do for each attempt: it sets
// the last one's records aside, unless the attempt is launched, and launches.
TEST(WorkerLaunch, ExecutesEachAttemptOnceWhereverItsLauncherIsKilled) {
  ASSERT_TRUE(BecomeSubreaper().ok());
  const TestFolder data;
  const RunFolder folder = RunFolder::At(data.path(), "attempts");
  ASSERT_TRUE(folder.Create().ok());
  const std::string said = data.File("said");
  const LaunchPlan plan = {.argv = {HostileWorker(), "once", said},
                           .environment = {},
                           .working_directory = "",
                           .token = absl::StrCat("token-", data.path())};
  int64_t launch_ns = 0;
  int kills = 0;
  std::mt19937_64 random(1);
  for (uint32_t attempt = 1; attempt <= static_cast<uint32_t>(Seeds());
       ++attempt) {
    const std::string last =
        absl::StrCat(folder.worker_path(), ".", attempt - 1);
    // The table, which says whether an attempt is dispatched, is this variable.
    bool dispatched = false;
    for (bool launched = false; !launched;) {
      const int64_t begin_ns = MonotonicNanos();
      const pid_t launcher = fork();
      if (launcher == 0) {
        if (!dispatched && attempt > 1 &&
            !folder.SetRecordsAside(attempt - 1).ok()) {
          _exit(1);
        }
        const auto worker = LaunchWorker(folder, plan);
        _exit(worker.ok() || absl::IsAlreadyExists(worker.status()) ? 0 : 1);
      }
      if (attempt > 1) {
        const Deadline kill_at = Deadline::At(
            begin_ns + static_cast<int64_t>(
                           random() % static_cast<uint64_t>(launch_ns * 2)));
        while (!kill_at.PassedAt(MonotonicNanos())) {
        }
        kill(launcher, SIGKILL);
        ++kills;
      }
      ASSERT_EQ(waitpid(launcher, nullptr, 0), launcher);
      if (attempt == 1) launch_ns = MonotonicNanos() - begin_ns;
      WaitForAllChildren();
      const bool is_aside = attempt == 1 || access(last.c_str(), F_OK) == 0;
      dispatched = is_aside && folder.ReadWorker()->has_value();
      launched = dispatched;
    }
    ASSERT_EQ(ReadLines(said).size(), attempt);
  }
  std::printf("%d kills\n", kills);
}

}  // namespace
}  // namespace tandem::slow_lane
