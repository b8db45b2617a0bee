#include "base/os/process_handle.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"

namespace tandem {
namespace {

ProcessHandle StartShell(const std::string& script) {
  return ProcessHandle::Start({"/bin/sh", "-c", script}).value();
}

TEST(ProcessHandle, ReturnsTheFirstLineThenTheExitCode) {
  ProcessHandle process = StartShell("echo first; echo second; exit 7");
  EXPECT_EQ(process.ReadFirstLine(), "first");
  ProcessHandle silent = StartShell("exit 7");
  // A process has its exit code when it closes its descriptors.
  EXPECT_EQ(silent.ReadFirstLine(), "");
  const ProcessEnd end = silent.Stop(ProcessHandle::kStopSecs);
  EXPECT_TRUE(end.exited);
  EXPECT_EQ(end.number, 7);
}

TEST(ProcessHandle, KillsAProcessThatIgnoresTheRequest) {
  ProcessHandle process =
      StartShell("trap '' TERM; echo ready; while :; do sleep 1; done");
  ASSERT_EQ(process.ReadFirstLine(), "ready");
  const ProcessEnd end = process.Stop(/*grace_secs=*/0.01);
  EXPECT_FALSE(end.exited);
  EXPECT_EQ(end.number, SIGKILL);
  EXPECT_TRUE(process.Stop(0).exited);  // the second time: nothing
}

TEST(ProcessHandle, AForkedChildLeavesTheProcessAlone) {
  ProcessHandle process = StartShell("echo ready; exec sleep 1000");
  ASSERT_EQ(process.ReadFirstLine(), "ready");
  const pid_t child = fork();
  if (child == 0) {
    { const ProcessHandle copy = std::move(process); }
    _exit(0);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  const ProcessEnd end = process.Stop(ProcessHandle::kStopSecs);
  EXPECT_FALSE(end.exited);  // it was alive, and this process ended it
  EXPECT_EQ(end.number, SIGTERM);
}

TEST(ProcessHandle, NamesAMissingProgram) {
  const auto process = ProcessHandle::Start({"/nowhere/program"});
  EXPECT_EQ(CodeOf(process.status()), ErrorCode::kSystemCallFailed);
  EXPECT_NE(process.status().message().find("/nowhere/program"),
            absl::string_view::npos);
}

TEST(WaitForInput, TellsInputFromTheTimeOut) {
  std::array<int, 2> ends;
  ASSERT_EQ(pipe(ends.data()), 0);
  EXPECT_EQ(WaitForInput(ends[0], 0), InputWait::kTimedOut);
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  EXPECT_EQ(WaitForInput(ends[0], 3'000'000'000), InputWait::kReadable);
  EXPECT_EQ(WaitForInput(-1, 1), InputWait::kTimedOut);
  close(ends[0]);
  EXPECT_EQ(WaitForInput(ends[0], 1), InputWait::kTimedOut);  // an error
  close(ends[1]);
}

}  // namespace
}  // namespace tandem
