#include "slow_lane/runs/worker_launch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "schema/protos/slow_lane.pb.h"
#include "slow_lane/runs/process_identity.h"
#include "slow_lane/runs/process_tree.h"
#include "slow_lane/runs/run_folder.h"
#include "slow_lane/runs/testing/test_processes.h"

namespace tandem::slow_lane {
namespace {

using State = AdoptedWorker::State;

class WorkerLaunch : public testing::Test {
 protected:
  WorkerLaunch() {
    // Workers of killed launchers become children of this process.
    EXPECT_TRUE(BecomeSubreaper().ok());
    EXPECT_TRUE(folder_.Create().ok());
    plan_.token = absl::StrCat("token-", data_.path());
  }

  ~WorkerLaunch() override {
    const auto self = IdentityOf(getpid());
    EXPECT_TRUE(self.ok());
    const auto end =
        EndTree({.token = plan_.token, .roots = {*self}, .excluded = {}}, 0);
    EXPECT_TRUE(end.ok() && end->left.empty());
    ReapOrphans(-1);
  }

  // A plan for hostile_worker in that mode; it writes into said_.
  LaunchPlan Hostile(const std::string& mode) const {
    LaunchPlan plan = plan_;
    plan.argv = {HostileWorker(), mode, said_};
    return plan;
  }

  LaunchPlan Shell(const std::string& script) const {
    LaunchPlan plan = plan_;
    plan.argv = {"sh", "-c", script};
    return plan;
  }

  static WorkerExit WaitForEnd(const RunningWorker& worker) {
    std::optional<WorkerExit> exit;
    WaitUntil("the worker's end",
              [&] { return (exit = EndOf(worker)).has_value(); });
    return *exit;
  }

  // Runs a plan to its end, and returns the output's lines.
  std::vector<std::string> OutputOf(const LaunchPlan& plan) {
    const auto worker = LaunchWorker(folder_, plan);
    EXPECT_TRUE(worker.ok()) << worker.status();
    if (!worker.ok()) return {};
    WaitForEnd(*worker);
    Reap(*worker);
    return ReadLines(folder_.stdout_path());
  }

  void ExpectNeverStarted(const LaunchPlan& plan,
                          std::vector<std::string> facts) {
    const auto worker = LaunchWorker(folder_, plan);
    ASSERT_TRUE(absl::IsFailedPrecondition(worker.status())) << worker.status();
    for (const std::string& fact : facts) {
      EXPECT_TRUE(absl::StrContains(worker.status().message(), fact))
          << worker.status();
    }
    const auto exit = folder_.ReadExit();
    ASSERT_TRUE(exit.ok() && exit->has_value()) << exit.status();
    EXPECT_EQ((*exit)->how, WorkerExit::How::kNotStarted);
    EXPECT_EQ((*exit)->reason, worker.status().message());
    const auto adopted = AdoptWorker(folder_, plan.token);
    ASSERT_TRUE(adopted.ok()) << adopted.status();
    EXPECT_EQ(adopted->state, State::kEnded);
    EXPECT_EQ(adopted->exit, *exit);
    EXPECT_TRUE(absl::IsAlreadyExists(LaunchWorker(folder_, plan).status()));
    // The child that failed to execute was reaped.
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
    EXPECT_EQ(errno, ECHILD);
  }

  const TestFolder data_;
  const RunFolder folder_ = RunFolder::At(data_.path(), "run");
  const std::string said_ = data_.File("said");
  LaunchPlan plan_ = {.argv = {},
                      .environment = {"PATH=/usr/bin:/bin"},
                      .working_directory = data_.path(),
                      .token = ""};
};

TEST_F(WorkerLaunch, RunsThePlanInItsWorkingDirectory) {
  LaunchPlan plan = Shell(
      "pwd; echo \"$A|$TANDEM_RUN_TOKEN|$HOME\"; cat; echo errors >&2; "
      "echo \"$0 $1\"");
  plan.argv.insert(plan.argv.end(), {"zero", "with blanks "});
  plan.environment.push_back("A=b=c");
  plan.environment.push_back("TANDEM_RUN_TOKEN=another");
  EXPECT_EQ(OutputOf(plan),
            (std::vector<std::string>{
                std::filesystem::canonical(data_.path()).string(),
                absl::StrCat("b=c|", plan.token, "|"), "zero with blanks "}));
  EXPECT_EQ(ReadLines(folder_.stderr_path()),
            std::vector<std::string>{"errors"});
  for (const std::string& path :
       {folder_.stdout_path(), folder_.stderr_path(), folder_.worker_path()}) {
    struct stat facts = {};
    ASSERT_EQ(stat(path.c_str(), &facts), 0) << path;
    EXPECT_EQ(facts.st_mode & 0777, 0600u) << path;
  }
}

TEST_F(WorkerLaunch, StartsInTheRunsFolderByDefault) {
  LaunchPlan plan = Shell("pwd");
  plan.working_directory.clear();
  EXPECT_EQ(OutputOf(plan),
            std::vector<std::string>{
                std::filesystem::canonical(folder_.path()).string()});
}

TEST_F(WorkerLaunch, WorkerInheritsNoDescriptors) {
  // A descriptor without close-on-exec, an ignored and a blocked signal.
  const int leaking = open("/dev/null", O_RDONLY);
  ASSERT_GE(leaking, 0);
  signal(SIGPIPE, SIG_IGN);
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  // The shell blocks signals while it forks, so at the end it becomes grep.
  const std::vector<std::string> output = OutputOf(
      Shell("ls /proc/$$/fd; set -- $(cat /proc/$$/stat); echo $$ $5 $6; "
            "exec grep -E '^Sig(Blk|Ign)' /proc/self/status"));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  signal(SIGPIPE, SIG_DFL);
  close(leaking);

  const auto worker = folder_.ReadWorker();
  ASSERT_TRUE(worker.ok() && worker->has_value());
  const pid_t pid = (*worker)->pid;
  EXPECT_EQ(output,
            (std::vector<std::string>{
                "0", "1", "2", absl::StrCat(pid, " ", pid, " ", pid),
                "SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000"}));
}

TEST_F(WorkerLaunch, AppendsToExistingOutput) {
  std::ofstream(folder_.stdout_path()) << "before\n";
  EXPECT_EQ(OutputOf(Shell("echo after")),
            (std::vector<std::string>{"before", "after"}));
}

TEST_F(WorkerLaunch, FindsTheProgramByTheWorkersPath) {
  // Only one of three folders has an executable of that name.
  const auto make = [this](const std::string& name, const char* text) {
    std::filesystem::create_directory(data_.File(name));
    std::ofstream(data_.File(name + "/tool")) << text;
    return data_.File(name);
  };
  const std::string no_right = make("no_right", "#!/bin/sh\necho wrong\n");
  const std::string right = make("right", "#!/bin/sh\necho right\n");
  std::filesystem::permissions(right + "/tool",
                               std::filesystem::perms::owner_all);
  LaunchPlan plan = plan_;
  plan.argv = {"tool"};
  plan.environment = {
      absl::StrCat("PATH=/nowhere:", no_right, ":", right, ":/bin")};
  EXPECT_EQ(OutputOf(plan), std::vector<std::string>{"right"});
}

TEST_F(WorkerLaunch, TakesAPathFromTheWorkingDirectory) {
  std::ofstream(data_.File("tool")) << "#!/bin/sh\necho here\n";
  std::filesystem::permissions(data_.File("tool"),
                               std::filesystem::perms::owner_all);
  LaunchPlan plan = plan_;
  plan.argv = {"./tool"};
  EXPECT_EQ(OutputOf(plan), std::vector<std::string>{"here"});
}

TEST_F(WorkerLaunch, ReportsAMissingProgram) {
  LaunchPlan plan = plan_;
  plan.argv = {"no_such_program"};
  ExpectNeverStarted(plan, {"entry_point", "(no_such_program)", "PATH",
                            "No such file or directory"});
}

TEST_F(WorkerLaunch, ReportsAFileThatMayNotBeExecuted) {
  LaunchPlan plan = plan_;
  std::ofstream(data_.File("data")) << "no program";
  plan.argv = {data_.File("data")};
  ExpectNeverStarted(plan, {"entry_point", "data", "Permission denied"});
}

TEST_F(WorkerLaunch, ReportsAFileThatIsNoProgram) {
  LaunchPlan plan = plan_;
  std::ofstream(data_.File("data")) << "no program";
  std::filesystem::permissions(data_.File("data"),
                               std::filesystem::perms::owner_all);
  plan.argv = {data_.File("data")};
  ExpectNeverStarted(plan, {"entry_point", "data", "Exec format error"});
}

TEST_F(WorkerLaunch, ReportsAMissingWorkingDirectory) {
  LaunchPlan plan = Shell("echo never");
  plan.working_directory = data_.File("missing");
  ExpectNeverStarted(
      plan, {"working_directory", "missing", "No such file or directory"});
  EXPECT_TRUE(ReadLines(folder_.stdout_path()).empty());
}

TEST_F(WorkerLaunch, CutsLongNamesBetweenCharacters) {
  for (int i = 0; i < 2; ++i) {
    const RunFolder folder = RunFolder::At(data_.path(), absl::StrCat("r", i));
    ASSERT_TRUE(folder.Create().ok());
    LaunchPlan plan = plan_;
    plan.argv = {std::string(static_cast<size_t>(i), 'x')};
    for (int j = 0; j < 10'000; ++j) plan.argv[0] += "\u00e9";
    const absl::Status status = LaunchWorker(folder, plan).status();
    ASSERT_TRUE(absl::IsFailedPrecondition(status));
    EXPECT_TRUE(absl::StrContains(status.message(), "File name too long"));
    const auto exit = folder.ReadExit();
    ASSERT_TRUE(exit.ok() && exit->has_value());
    EXPECT_GT((*exit)->reason.size(), 4000u);
    EXPECT_LT((*exit)->reason.size(), 10'000u);
    // Protobuf strings are valid UTF-8.
    v1::WorkerEnded copy;
    EXPECT_TRUE(copy.ParseFromString(ToProto(**exit).SerializeAsString()));
    EXPECT_EQ(copy.not_started(), (*exit)->reason);
  }
}

TEST_F(WorkerLaunch, DispatchesNothingWithoutAFolder) {
  ASSERT_TRUE(folder_.SetAside().ok());
  const auto worker = LaunchWorker(folder_, Hostile("once"));
  EXPECT_FALSE(worker.ok());
  EXPECT_FALSE(absl::IsAlreadyExists(worker.status())) << worker.status();
  EXPECT_FALSE(absl::IsFailedPrecondition(worker.status())) << worker.status();
  ASSERT_TRUE(folder_.Create().ok());
  EXPECT_TRUE(LaunchWorker(folder_, Hostile("once")).ok());
  WaitUntil("the worker", [&] { return ReadLines(said_).size() == 1; });
}

TEST_F(WorkerLaunch, ExecutesOnceInRepeatedCalls) {
  const auto first = LaunchWorker(folder_, Hostile("once"));
  ASSERT_TRUE(first.ok()) << first.status();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(
        absl::IsAlreadyExists(LaunchWorker(folder_, Hostile("once")).status()));
  }
  EXPECT_EQ(WaitForEnd(*first), (WorkerExit{WorkerExit::How::kExited, 0, ""}));
  Reap(*first);
  EXPECT_TRUE(
      absl::IsAlreadyExists(LaunchWorker(folder_, Hostile("once")).status()));
  EXPECT_EQ(ReadLines(said_).size(), 1u);
}

TEST_F(WorkerLaunch, ConcurrentLaunchesExecuteOnce) {
  constexpr int kLaunchers = 8;
  std::atomic<int> started = 0, refused = 0, ready = 0;
  std::vector<std::thread> launchers;
  for (int i = 0; i < kLaunchers; ++i) {
    launchers.emplace_back([&] {
      ++ready;
      while (ready < kLaunchers) std::this_thread::yield();
      const auto worker = LaunchWorker(folder_, Hostile("once"));
      if (worker.ok()) ++started;
      if (absl::IsAlreadyExists(worker.status())) ++refused;
    });
  }
  for (std::thread& launcher : launchers) launcher.join();
  EXPECT_EQ(started, 1);
  EXPECT_EQ(refused, kLaunchers - 1);
  WaitUntil("the worker", [&] { return !ReadLines(said_).empty(); });
  EXPECT_EQ(ReadLines(said_).size(), 1u);
}

TEST_F(WorkerLaunch, WorksWhileThreadsAllocate) {
  // A child that allocated could wait for a lock that no thread releases.
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        const std::string text(1000, 'x');
        setenv("SOME_VARIABLE", text.c_str(), 1);
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    const RunFolder folder = RunFolder::At(data_.path(), absl::StrCat("r", i));
    ASSERT_TRUE(folder.Create().ok());
    const auto worker = LaunchWorker(folder, Hostile("once"));
    EXPECT_TRUE(worker.ok()) << worker.status();
    if (worker.ok()) WaitForEnd(*worker);
    ReapOrphans(-1);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ReadLines(said_).size(), 20u);
}

TEST_F(WorkerLaunch, KeepsTheZombieUntilItIsReaped) {
  const auto worker = LaunchWorker(folder_, Shell("exit 3"));
  ASSERT_TRUE(worker.ok()) << worker.status();
  const WorkerExit expected = {WorkerExit::How::kExited, 3, ""};
  EXPECT_EQ(WaitForEnd(*worker), expected);
  EXPECT_EQ(EndOf(*worker), expected);
  EXPECT_FALSE(IsAlive(worker->identity));
  EXPECT_TRUE(OpenProcess(worker->identity).ok());
  ReapOrphans(worker->identity.pid);
  EXPECT_TRUE(OpenProcess(worker->identity).ok());
  Reap(*worker);
  EXPECT_TRUE(absl::IsNotFound(OpenProcess(worker->identity).status()));
}

TEST_F(WorkerLaunch, KnowsTheSignalThatEndedIt) {
  const auto worker = LaunchWorker(folder_, Shell("kill -ABRT $$"));
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_EQ(WaitForEnd(*worker),
            (WorkerExit{WorkerExit::How::kSignalled, SIGABRT, ""}));
}

TEST_F(WorkerLaunch, RunsUntilItEnds) {
  const auto worker = LaunchWorker(folder_, Hostile("polite"));
  ASSERT_TRUE(worker.ok()) << worker.status();
  WaitUntil("the worker", [&] { return !ReadLines(said_).empty(); });
  EXPECT_EQ(EndOf(*worker), std::nullopt);
  ASSERT_TRUE(SignalProcess(worker->pidfd.get(), SIGTERM).ok());
  EXPECT_EQ(WaitForEnd(*worker), (WorkerExit{WorkerExit::How::kExited, 7, ""}));
}

TEST_F(WorkerLaunch, RefusesPlansThatStartNothing) {
  EXPECT_EQ(LaunchWorker(folder_, plan_).status().code(),
            absl::StatusCode::kInvalidArgument);
  LaunchPlan plan = Hostile("once");
  plan.token.clear();
  EXPECT_EQ(LaunchWorker(folder_, plan).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(WorkerLaunch, AdoptsNoWorkerBeforeTheLaunch) {
  const auto adopted = AdoptWorker(folder_, plan_.token);
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  EXPECT_EQ(adopted->state, State::kNeverStarted);
}

TEST_F(WorkerLaunch, AdoptsTheWorkerOfADeadLauncher) {
  const pid_t launcher = fork();
  if (launcher == 0) {
    alarm(120);
    (void)LaunchWorker(folder_, Hostile("polite"));
    for (;;) pause();
  }
  WaitUntil("the worker", [&] { return !ReadLines(said_).empty(); });
  kill(launcher, SIGKILL);
  ASSERT_EQ(waitpid(launcher, nullptr, 0), launcher);

  const auto adopted = AdoptWorker(folder_, plan_.token);
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  ASSERT_EQ(adopted->state, State::kRunning);
  EXPECT_TRUE(IsAlive(adopted->worker.identity));
  EXPECT_EQ(EndOf(adopted->worker), std::nullopt);
  ASSERT_TRUE(SignalProcess(adopted->worker.pidfd.get(), SIGTERM).ok());
  EXPECT_EQ(WaitForEnd(adopted->worker),
            (WorkerExit{WorkerExit::How::kExited, 7, ""}));
}

TEST_F(WorkerLaunch, KnowsTheExitOfAnotherProcesssChild) {
  const pid_t launcher = fork();
  if (launcher == 0) {
    alarm(120);
    (void)LaunchWorker(folder_, Hostile("polite"));
    while (wait(nullptr) > 0) {
    }
    for (;;) pause();
  }
  WaitUntil("the worker", [&] { return !ReadLines(said_).empty(); });
  const auto adopted = AdoptWorker(folder_, plan_.token);
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  ASSERT_EQ(adopted->state, State::kRunning);
  ASSERT_TRUE(SignalProcess(adopted->worker.pidfd.get(), SIGTERM).ok());
  const WorkerExit exit = WaitForEnd(adopted->worker);
  if (exit.how == WorkerExit::How::kUnknown) {
    // Before Linux 6.15.
    EXPECT_TRUE(absl::StrContains(exit.reason, "another process's child"));
  } else {
    EXPECT_EQ(exit, (WorkerExit{WorkerExit::How::kExited, 7, ""}));
  }
  kill(launcher, SIGKILL);
  ASSERT_EQ(waitpid(launcher, nullptr, 0), launcher);
}

TEST_F(WorkerLaunch, AdoptsNoOtherProcess) {
  const auto worker = LaunchWorker(folder_, Hostile("polite"));
  ASSERT_TRUE(worker.ok()) << worker.status();
  WaitUntil("the worker", [&] { return !ReadLines(said_).empty(); });

  const auto other_run = AdoptWorker(folder_, "another token");
  ASSERT_TRUE(other_run.ok()) << other_run.status();
  EXPECT_EQ(other_run->state, State::kEnded);

  // The worker's pid was reused since.
  std::ofstream(folder_.worker_path())
      << worker->identity.pid << " " << worker->identity.start_time - 1 << " "
      << worker->identity.boot_id << "\n";
  const auto reused = AdoptWorker(folder_, plan_.token);
  ASSERT_TRUE(reused.ok()) << reused.status();
  EXPECT_EQ(reused->state, State::kEnded);
  EXPECT_EQ(reused->exit, std::nullopt);

  std::ofstream(folder_.worker_path()) << "garbage";
  EXPECT_TRUE(absl::IsDataLoss(AdoptWorker(folder_, plan_.token).status()));
}

}  // namespace
}  // namespace tandem::slow_lane
