#include "base/os/available_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "absl/strings/match.h"
#include "base/error.h"

namespace tandem {
namespace {

class AvailableMemory : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(groups_.mount);
    std::ofstream(groups_.process) << "0::/\n";
    std::ofstream(groups_.mount + "/memory.max") << "5000\n";
    std::ofstream(groups_.mount + "/memory.current") << "3000\n";
    std::ofstream(groups_.mount + "/memory.stat") << "inactive_file 700\n";
  }

  const ControlGroupPaths groups_ = {.process = testing::TempDir() + "/process",
                                     .mount = testing::TempDir() + "/mount"};
  const ControlGroupPaths no_groups_ = {.process = "/no/such",
                                        .mount = "/no/such"};
};

TEST_F(AvailableMemory, IsRemainderOfControlGroupLimit) {
  EXPECT_EQ(AvailableMemoryBytes(groups_), 2700u);
  EXPECT_GT(AvailableMemoryBytes(no_groups_), 1u << 20);
}

TEST_F(AvailableMemory, ResidentMemoryGrowsByWhatIsWritten) {
  constexpr size_t kBytes = 64 << 20;
  const uint64_t before = ResidentMemoryBytes();
  const std::string written(kBytes, 'x');
  EXPECT_GE(ResidentMemoryBytes(), before + kBytes / 2);
  EXPECT_EQ(written.back(), 'x');
}

TEST_F(AvailableMemory, AcceptsSizeThatFits) {
  EXPECT_TRUE(CheckMemory(2700, "it needs", "use less", groups_).ok());
  EXPECT_TRUE(CheckMemory(1 << 20, "it needs", "use less", no_groups_).ok());
}

TEST_F(AvailableMemory, TheErrorNamesEveryFigureAndTheFileOfTheLimit) {
  const absl::Status status =
      CheckMemory(2701, "it needs", "use less", groups_);
  EXPECT_EQ(CodeOf(status), ErrorCode::kOutOfSharedMemory) << status;
  for (const std::string& part :
       {std::string("it needs 2701 bytes"), std::string("2700 are available"),
        std::string("5000 bytes"), std::string("3000"), std::string("700"),
        std::string("use less"), groups_.mount + "/memory.max"}) {
    EXPECT_TRUE(absl::StrContains(status.message(), part)) << part << status;
  }
}

TEST_F(AvailableMemory, ErrorNamesMachineWhereMachineIsTheLimit) {
  const absl::Status status =
      CheckMemory(std::numeric_limits<uint64_t>::max() - 1, "it needs",
                  "use less", no_groups_);
  EXPECT_EQ(CodeOf(status), ErrorCode::kOutOfSharedMemory) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "this machine")) << status;
}

}  // namespace
}  // namespace tandem
