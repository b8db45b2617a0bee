// Windows' processes, pipes, consoles and cores behind the headers of base/os.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/os/available_memory.h"
#include "base/os/current_user.h"
#include "base/os/launcher_watch.h"
#include "base/os/machine.h"
#include "base/os/process_handle.h"
#include "base/os/stop_signals.h"
#include "base/os/windows/native.h"
#include "base/os/windows/testing/child_program.h"

namespace tandem {
namespace {

HANDLE stop_event = nullptr;

const ChildBody kSpeaker("speaker", [](const std::vector<std::string>& words) {
  for (const std::string& word : words) SayLine(word);
  return 7;
});
const ChildBody kEndless("endless", [](const std::vector<std::string>&) {
  SetConsoleCtrlHandler([](DWORD) -> BOOL { return TRUE; }, TRUE);
  SayLine("ready");
  Sleep(INFINITE);
  return 0;
});
const ChildBody kServer("server", [](const std::vector<std::string>&) {
  stop_event = CreateEventW(nullptr, TRUE, FALSE, nullptr);
  PrepareServer();
  HandleStopSignals([](int) { SetEvent(stop_event); });
  SayLine("ready");
  WaitForSingleObject(stop_event, INFINITE);
  return 5;
});

ProcessHandle StartChild(const std::vector<std::string>& words) {
  std::vector<std::string> line = {ProgramPath(), "--child"};
  line.insert(line.end(), words.begin(), words.end());
  return ProcessHandle::Start(line).value();
}

struct Pipe {
  Pipe() {
    HANDLE ends[2];
    if (!CreatePipe(&ends[0], &ends[1], nullptr, 0)) std::abort();
    reader = Owned(ends[0]);
    writer = Owned(ends[1]);
  }
  UniqueFd reader;
  UniqueFd writer;
};

TEST(ProcessHandle, PassesWordsAsTheyAre) {
  for (const std::string word :
       {"plain", "two words", "a\"b", "back\\slash\\", "\\\\\"", ""}) {
    EXPECT_EQ(StartChild({"speaker", word, "next"}).ReadFirstLine(), word);
  }
}

TEST(ProcessHandle, ReturnsTheExitCode) {
  ProcessHandle process = StartChild({"speaker"});
  EXPECT_EQ(process.ReadFirstLine(), "");  // it has ended
  const ProcessEnd end = process.Stop(ProcessHandle::kStopSecs);
  EXPECT_TRUE(end.exited);
  EXPECT_EQ(end.number, 7);
  EXPECT_EQ(process.Stop(0).number, 0);  // the second time: nothing
}

TEST(ProcessHandle, KillsAProcessThatIgnoresTheRequest) {
  ProcessHandle process = StartChild({"endless"});
  ASSERT_EQ(process.ReadFirstLine(), "ready");
  EXPECT_FALSE(process.Stop(/*grace_secs=*/0.01).exited);
}

// Stop asks by Ctrl-Break, which Wine 8 cannot send.
TEST(StopSignals, AServerGetsCtrlC) {
  ChildProgram server("server", {});
  ASSERT_EQ(server.ReadLine(), "ready");
  server.Interrupt();
  EXPECT_EQ(server.ExitCode(), 5);
}

TEST(ProcessHandle, NamesAMissingProgram) {
  const auto process = ProcessHandle::Start({"C:\\nowhere\\program.exe"});
  EXPECT_EQ(CodeOf(process.status()), ErrorCode::kSystemCallFailed);
  EXPECT_NE(process.status().message().find("nowhere"),
            absl::string_view::npos);
}

TEST(WaitForInput, TellsTheEndOfAProcessFromTheTimeOut) {
  ChildProgram child("endless", {});
  EXPECT_EQ(WaitForInput(child.handle(), 0), InputWait::kTimedOut);
  child.Kill();
  EXPECT_EQ(WaitForInput(child.handle(), 3'000'000'000), InputWait::kReadable);
  EXPECT_EQ(WaitForInput(-1, 1), InputWait::kTimedOut);
}

TEST(LauncherWatch, ReportsTheEndOfThePipe) {
  Pipe pipe;
  std::promise<void> left;
  std::promise<void> stuck;
  LauncherWatch watch(
      pipe.reader.release(), [&] { left.set_value(); },
      [&] { stuck.set_value(); });
  DWORD written = 0;
  WriteFile(HandleOf(pipe.writer.get()), "x", 1, &written, nullptr);
  EXPECT_FALSE(watch.HasLeft());
  pipe.writer.reset();
  left.get_future().wait();
  EXPECT_TRUE(watch.HasLeft());
  stuck.get_future().wait();
}

TEST(LauncherWatch, StopsBeforeTheLauncher) {
  Pipe pipe;
  bool left = false;
  {
    const LauncherWatch watch(
        pipe.reader.release(), [&] { left = true; }, [] {});
  }
  EXPECT_FALSE(left);
}

// As Python's os.environ does, whose C library is not this one.
TEST(EnvironmentVariable, HasWhatTheSystemHas) {
  EXPECT_EQ(EnvironmentVariable("TANDEM_TEST_VARIABLE"), "");
  SetEnvironmentVariableW(L"TANDEM_TEST_VARIABLE", L"\u00E4");
  EXPECT_EQ(EnvironmentVariable("TANDEM_TEST_VARIABLE"), "\xC3\xA4");
}

TEST(UniqueFd, ClosesAtTheEnd) {
  DWORD flags = 0;
  int number = -1;
  {
    const UniqueFd event = Owned(CreateEventW(nullptr, TRUE, FALSE, nullptr));
    number = event.get();
    EXPECT_TRUE(GetHandleInformation(HandleOf(number), &flags));
    EXPECT_TRUE(HideFromChildren(number));
  }
  EXPECT_FALSE(GetHandleInformation(HandleOf(number), &flags));
  EXPECT_FALSE(HideFromChildren(number));
  EXPECT_FALSE(Owned(nullptr).valid());
  EXPECT_FALSE(Owned(INVALID_HANDLE_VALUE).valid());
}

// mingw-w64's own order is the other one: then an allocation gets the memory.
TEST(ThreadLocals, AreDestroyedBeforeTheirMemoryIsFreed) {
  static std::atomic<int> intact{0};
  struct Local {
    ~Local() {
      std::vector<std::string> others;
      while (others.size() < 100) others.emplace_back(text.size() + 16, 'y');
      intact += std::ranges::count(text, 'x') == std::ssize(text);
    }
    std::array<char, 100> text;
  };
  for (int run = 0; run < 50; ++run) {
    std::thread([] {
      thread_local Local local;
      local.text.fill('x');
    }).join();
  }
  EXPECT_EQ(intact, 50);
}

TEST(OnCore, LimitsTheThreadAndAllowsItsCoresAgain) {
  std::thread([] {
    const int all = AllowedCores();
    EXPECT_GE(all, 1);
    const int core = CurrentCore();
    {
      const OnCore here(core);
      EXPECT_EQ(here.core(), core);
      EXPECT_EQ(AllowedCores(), 1);
      EXPECT_EQ(CurrentCore(), core);
    }
    EXPECT_EQ(AllowedCores(), all);
    EXPECT_EQ(OnCore(-1).core(), -1);
    EXPECT_EQ(OnCore(1 << 20).core(), -1);
  }).join();
}

TEST(Machine, FillsRandomBytes) {
  std::array<std::byte, 16> first = {};
  std::array<std::byte, 16> second = {};
  FillRandom(first);
  FillRandom(second);
  EXPECT_NE(first, second);
}

TEST(AvailableMemory, RefusesMoreThanThereIs) {
  EXPECT_TRUE(CheckMemory(1, "a byte needs", "use less").ok());
  EXPECT_EQ(CodeOf(CheckMemory(uint64_t{1} << 60, "it needs", "use less")),
            ErrorCode::kOutOfSharedMemory);
  EXPECT_GT(ResidentMemoryBytes(), 0u);
}

TEST(CurrentUser, HasAHomeFolderAndReadsItsFiles) {
  EXPECT_TRUE(HomeFolder("").has_value());
  EXPECT_TRUE(MayRead(ProgramPath()));
  EXPECT_FALSE(MayRun("C:\\nowhere\\program.exe"));
}

}  // namespace
}  // namespace tandem
