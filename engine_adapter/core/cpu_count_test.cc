#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "engine_adapter/core/thread_pool.h"

namespace tandem {
namespace {

class CgroupCoresTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(mount_ + "/a/b");
  }
  void TearDown() override { std::filesystem::remove_all(mount_); }
  void Limit(const std::string& group, const std::string& text) {
    std::ofstream(mount_ + group + "/cpu.max") << text;
  }
  const std::string mount_ = testing::TempDir() + "/cgroup";
};

TEST_F(CgroupCoresTest, ReturnsNoLimitWithoutAQuota) {
  EXPECT_EQ(CgroupCores(mount_, "/a/b"), 0);
  Limit("/a", "max 100000\n");
  EXPECT_EQ(CgroupCores(mount_, "/a/b"), 0);
}

TEST_F(CgroupCoresTest, PartsOfACoreCountAsOne) {
  Limit("/a/b", "150000 100000\n");
  EXPECT_EQ(CgroupCores(mount_, "/a/b"), 2);
  Limit("/a/b", "1000 100000\n");
  EXPECT_EQ(CgroupCores(mount_, "/a/b"), 1);
}

TEST_F(CgroupCoresTest, TheTightestGroupOnTheWayUpCounts) {
  Limit("/a/b", "800000 100000\n");
  Limit("/a", "300000 100000\n");
  EXPECT_EQ(CgroupCores(mount_, "/a/b"), 3);
  Limit("", "200000 100000\n");
  EXPECT_EQ(CgroupCores(mount_, "/a/b"), 2);
  EXPECT_EQ(CgroupCores(mount_, "/"), 2);
}

TEST_F(CgroupCoresTest, IgnoresUnreadableLimit) {
  Limit("/a/b", "many\n");
  EXPECT_EQ(CgroupCores(mount_, "/a/b"), 0);
}

TEST(SuitableThreads, NoMoreThanEnvironmentsAndAtLeastOne) {
  EXPECT_EQ(SuitableThreads(1), 1);
  EXPECT_EQ(SuitableThreads(0), 1);
  EXPECT_GE(SuitableThreads(1000), 1);
}

}  // namespace
}  // namespace tandem
