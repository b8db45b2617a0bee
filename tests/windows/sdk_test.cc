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

// The build folder has tests/THIS.exe and sdk/.
std::string PathOf(const std::string& program) {
  std::string folder = ProgramPath();
  for (int up = 0; up < 2; ++up) folder.resize(folder.find_last_of("\\/"));
  return folder + "\\sdk\\" + program + ".exe";
}

class Sdk : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { alarm(300); }
  void TearDown() override { alarm(0); }

  ChildProgram StartEngine() {
    return ChildProgram(
        {PathOf(GetParam()), absl::StrCat("--name=", name_), "--num_envs=3"});
  }
  void AwaitName(bool exists) {
    while (SharedRegion::At(name_).has_value() != exists) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  // Runs the client, and expects that it steps the engine.
  void ExpectSteps() {
    ChildProgram client({PathOf("c_client"), name_});
    const std::string line = client.ReadLine();
    EXPECT_EQ(line.find("3 environments, 1000 steps, return "), 0u) << line;
    EXPECT_EQ(client.ExitCode(), 0);
  }

  const std::string name_ = UniqueRegionName("sdk");
};

TEST_P(Sdk, AnEngineServesOneClientAfterAnother) {
  ChildProgram engine = StartEngine();
  ExpectSteps();
  ExpectSteps();
  engine.Kill();
  EXPECT_EQ(SharedRegion::At(name_), std::nullopt);
}

TEST_P(Sdk, AKilledEnginesNameIsFreeAtOnce) {
  for (int run = 0; run < 3; ++run) {
    ChildProgram engine = StartEngine();
    ExpectSteps();
    engine.Kill();
  }
}

TEST_P(Sdk, AnEngineStopsByCtrlC) {
  ChildProgram engine = StartEngine();
  AwaitName(true);
  ExpectSteps();
  engine.Interrupt();
  EXPECT_EQ(engine.ExitCode(), 0);
  EXPECT_EQ(SharedRegion::At(name_), std::nullopt);
}

TEST_P(Sdk, ASecondEngineOfTheNameIsRefused) {
  ChildProgram engine = StartEngine();
  AwaitName(true);
  EXPECT_NE(StartEngine().ExitCode(), 0);
  ExpectSteps();
}

INSTANTIATE_TEST_SUITE_P(Examples, Sdk,
                         testing::Values("c_engine", "cpp_engine"));

}  // namespace
}  // namespace tandem
