#include "slow_lane/runs/run_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"

namespace tandem::slow_lane {
namespace {

RunFolder NewFolder() {
  const auto* const test =
      testing::UnitTest::GetInstance()->current_test_info();
  const std::string data_dir =
      testing::TempDir() + test->test_suite_name() + test->name();
  std::filesystem::remove_all(data_dir);
  std::filesystem::create_directory(data_dir);
  const RunFolder folder = RunFolder::At(data_dir, "run_1");
  EXPECT_TRUE(folder.Create().ok());
  return folder;
}

mode_t ModeOf(const std::string& path) {
  struct stat facts = {};
  EXPECT_EQ(stat(path.c_str(), &facts), 0) << path;
  return facts.st_mode & 0777;
}

void Write(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

LaunchPlan SomePlan() {
  return {.argv = {"python3", "-c", "print('\u00e9')", ""},
          .environment = {"PATH=/bin", "EMPTY=", "NO_UTF8=\xff\xfe", "odd"},
          .working_directory = "/tmp/\x80",
          .token = "secret"};
}

TEST(RunFolder, HasMode0700) {
  const RunFolder folder = NewFolder();
  EXPECT_EQ(ModeOf(folder.path()), 0700u);
  ASSERT_TRUE(folder.WriteLaunchPlan(SomePlan()).ok());
  EXPECT_EQ(ModeOf(folder.launch_path()), 0600u);
}

TEST(RunFolder, IsMadeOnce) {
  const RunFolder folder = NewFolder();
  EXPECT_TRUE(absl::IsAlreadyExists(folder.Create()));
  EXPECT_TRUE(folder.SetAside().ok());
  EXPECT_TRUE(folder.SetAside().ok());
  EXPECT_TRUE(folder.Create().ok());
}

TEST(RunFolder, IsNotMadeWhereTheDataFolderIsMissing) {
  EXPECT_FALSE(RunFolder::At("/nowhere/at/all", "run_1").Create().ok());
}

TEST(RunFolder, KeepsTheLaunchPlanByteForByte) {
  const RunFolder folder = NewFolder();
  EXPECT_TRUE(absl::IsNotFound(folder.ReadLaunchPlan().status()));
  ASSERT_TRUE(folder.WriteLaunchPlan(SomePlan()).ok());
  const auto plan = folder.ReadLaunchPlan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(*plan, SomePlan());
}

TEST(RunFolder, RefusesOtherFilesAsLaunchPlans) {
  const RunFolder folder = NewFolder();
  for (const char* text : {"", "{", "{}", "[]", "{\"argv\": 1}",
                           "{\"argv\":[{\"base64\":\"*\"}],\"environment\":[],"
                           "\"working_directory\":\"\",\"token\":\"\"}"}) {
    Write(folder.launch_path(), text);
    EXPECT_TRUE(absl::IsDataLoss(folder.ReadLaunchPlan().status())) << text;
  }
}

TEST(RunFolder, ReadsTheExitThatItWrote) {
  const RunFolder folder = NewFolder();
  EXPECT_EQ(*folder.ReadExit(), std::nullopt);
  const WorkerExit kExits[] = {
      {WorkerExit::How::kExited, 0, ""},
      {WorkerExit::How::kExited, 255, ""},
      {WorkerExit::How::kSignalled, SIGKILL, ""},
      {WorkerExit::How::kUnknown, 0, "no process saw it"},
      {WorkerExit::How::kNotStarted, 0, "no such file: 'a b'"},
  };
  for (const WorkerExit& exit : kExits) {
    ASSERT_TRUE(folder.WriteExit(exit).ok());
    const auto read = folder.ReadExit();
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, exit) << exit.Describe();
    EXPECT_NE(ToProto(exit).how_case(), v1::WorkerEnded::HOW_NOT_SET);
  }
}

TEST(RunFolder, EscapesControlCharactersOfAReason) {
  const RunFolder folder = NewFolder();
  ASSERT_TRUE(folder
                  .WriteExit({WorkerExit::How::kNotStarted, 0,
                              "no such file: \x1b[31mred"})
                  .ok());
  const auto read = folder.ReadExit();
  ASSERT_TRUE(read.ok() && read->has_value()) << read.status();
  EXPECT_EQ((*read)->reason, "no such file: \\x1b[31mred");
}

TEST(RunFolder, RefusesOtherFilesAsRecords) {
  const RunFolder folder = NewFolder();
  for (const char* text :
       {"", "exited", "exited x", "left 1", "signalled \n"}) {
    Write(folder.exit_path(), text);
    EXPECT_TRUE(absl::IsDataLoss(folder.ReadExit().status())) << text;
  }
  for (const char* text : {"", "1", "1 2", "x 2 b", "1 x b", "1 2 b c"}) {
    Write(folder.worker_path(), text);
    EXPECT_TRUE(absl::IsDataLoss(folder.ReadWorker().status())) << text;
  }
}

TEST(RunFolder, ReadsTheWorkersIdentity) {
  const RunFolder folder = NewFolder();
  EXPECT_EQ(*folder.ReadWorker(), std::nullopt);
  Write(folder.worker_path(), "4711 123456 some-boot\n");
  const auto worker = folder.ReadWorker();
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_EQ(*worker, (ProcessIdentity{4711, 123456, "some-boot"}));
}

TEST(ProxyLock, IsHeldByOneAtATime) {
  const RunFolder folder = NewFolder();
  EXPECT_FALSE(*folder.HasProxy());
  {
    const auto lock = ProxyLock::Acquire(folder);
    ASSERT_TRUE(lock.ok()) << lock.status();
    EXPECT_TRUE(*folder.HasProxy());
    EXPECT_TRUE(absl::IsAlreadyExists(ProxyLock::Acquire(folder).status()));
    // The query does not release the lock.
    EXPECT_TRUE(*folder.HasProxy());
  }
  EXPECT_FALSE(*folder.HasProxy());
  EXPECT_TRUE(ProxyLock::Acquire(folder).ok());
}

TEST(ProxyLock, EndsWithItsProcess) {
  const RunFolder folder = NewFolder();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t proxy = fork();
  if (proxy == 0) {
    alarm(120);
    const auto lock = ProxyLock::Acquire(folder);
    (void)!write(ends[1], lock.ok() ? "y" : "n", 1);
    for (;;) pause();
  }
  char locked = 0;
  ASSERT_EQ(read(ends[0], &locked, 1), 1);
  EXPECT_EQ(locked, 'y');
  EXPECT_TRUE(*folder.HasProxy());
  EXPECT_TRUE(absl::IsAlreadyExists(ProxyLock::Acquire(folder).status()));
  kill(proxy, SIGKILL);
  ASSERT_EQ(waitpid(proxy, nullptr, 0), proxy);
  EXPECT_FALSE(*folder.HasProxy());
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace tandem::slow_lane
