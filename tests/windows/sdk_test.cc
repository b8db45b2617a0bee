// The SDK's library and its examples, as a user on Windows builds and runs
// them.

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/os/process_handle.h"
#include "base/os/shared_region.h"
#include "base/os/windows/testing/child_program.h"
#include "transport/memory/testing/unique_region_name.h"

namespace tandem {
namespace {

// Returns the command of an example: "c_engine", or "Client.exe" in C#.
// The build folder has tests/THIS.exe, sdk/, and csharp/ with .NET's runtime.
std::vector<std::string> CommandOf(const std::string& program) {
  std::string folder = ProgramPath();
  for (int up = 0; up < 2; ++up) folder.resize(folder.find_last_of("\\/"));
  if (program.find(".exe") == std::string::npos) {
    return {folder + "\\sdk\\" + program + ".exe"};
  }
  const std::string csharp = folder + "\\csharp\\";
  return {csharp + "runtime\\dotnet.exe", "exec", "--runtimeconfig",
          csharp + "runtimeconfig.json", csharp + program};
}

class Sdk : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { alarm(300); }
  void TearDown() override { alarm(0); }

  ChildProgram StartEngine() {
    std::vector<std::string> words = CommandOf(GetParam());
    words.push_back(absl::StrCat("--name=", name_));
    words.push_back("--num_envs=3");
    return ChildProgram(words);
  }
  void AwaitName(const ChildProgram& engine) {
    while (!SharedRegion::At(name_).has_value()) {
      ASSERT_FALSE(engine.HasEnded());
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  // Runs a client, and expects that it steps the engine.
  void ExpectSteps(const std::string& program = "c_client") {
    std::vector<std::string> words = CommandOf(program);
    words.push_back(name_);
    ChildProgram client(words);
    std::string output;
    while (output.find("1000 steps, return ") == std::string::npos) {
      const std::string line = client.ReadLine();
      ASSERT_NE(line, "") << output;
      output += line;
    }
    EXPECT_NE(output.find("3 environments"), std::string::npos) << output;
    EXPECT_EQ(client.ExitCode(), 0);
  }

  const std::string name_ = UniqueRegionName("sdk");
};

TEST_P(Sdk, AnEngineServesOneClientAfterAnother) {
  ChildProgram engine = StartEngine();
  AwaitName(engine);
  ExpectSteps();
  ExpectSteps("Client.exe");
  engine.Kill();
  EXPECT_EQ(SharedRegion::At(name_), std::nullopt);
}

TEST_P(Sdk, AKilledEnginesNameIsFreeAtOnce) {
  for (int run = 0; run < 3; ++run) {
    ChildProgram engine = StartEngine();
    AwaitName(engine);
    ExpectSteps();
    engine.Kill();
  }
}

TEST_P(Sdk, AnEngineStopsByCtrlC) {
  ChildProgram engine = StartEngine();
  AwaitName(engine);
  ExpectSteps();
  engine.Interrupt();
  EXPECT_EQ(engine.ExitCode(), 0);
  EXPECT_EQ(SharedRegion::At(name_), std::nullopt);
}

TEST_P(Sdk, ASecondEngineOfTheNameIsRefused) {
  ChildProgram engine = StartEngine();
  AwaitName(engine);
  EXPECT_NE(StartEngine().ExitCode(), 0);
  ExpectSteps();
}

INSTANTIATE_TEST_SUITE_P(Examples, Sdk,
                         testing::Values("c_engine", "cpp_engine",
                                         "CounterEngine.exe"));

}  // namespace
}  // namespace tandem
