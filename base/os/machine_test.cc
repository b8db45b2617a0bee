#include "base/os/machine.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/os/linux/cgroup_cores.h"

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

void StayOn(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  ASSERT_EQ(pthread_setaffinity_np(pthread_self(), sizeof(cores), &cores), 0);
}

TEST(CoreWait, GrowsWhileAnotherThreadHasTheCore) {
  const int core = sched_getcpu();
  std::atomic<bool> stop{false};
  std::thread([&] {
    StayOn(core);
    std::thread other([&] {
      StayOn(core);
      while (!stop.load(std::memory_order_relaxed)) {
      }
    });
    const CoreWait line;
    const int64_t begin_ns = MonotonicNanos();
    const int64_t before_ns = line.Nanos();
    // Two threads that never sleep share a core, so one must wait.
    while (line.Nanos() == before_ns) {
      ASSERT_LT(MonotonicNanos() - begin_ns, 60'000'000'000) << "a watchdog";
    }
    EXPECT_LE(line.Nanos() - before_ns, MonotonicNanos() - begin_ns);
    stop.store(true, std::memory_order_relaxed);
    other.join();
  }).join();
}

cpu_set_t Cores() {
  cpu_set_t cores;
  EXPECT_EQ(sched_getaffinity(0, sizeof(cores), &cores), 0);
  return cores;
}

class OnCoreTest : public testing::Test {
 protected:
  void TearDown() override { sched_setaffinity(0, sizeof(all_), &all_); }
  const cpu_set_t all_ = Cores();
};

TEST_F(OnCoreTest, StaysOnTheCoreWhileItExists) {
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &all_)) continue;
    const OnCore placed(core);
    EXPECT_EQ(placed.core(), core);
    EXPECT_EQ(CurrentCore(), core);
    const cpu_set_t here = Cores();
    EXPECT_EQ(CPU_COUNT(&here), 1);
  }
  const cpu_set_t after = Cores();
  EXPECT_TRUE(CPU_EQUAL(&all_, &after));
}

TEST_F(OnCoreTest, NeverUsesACoreThatTheThreadMayNotUse) {
  StayOn(CurrentCore());
  const cpu_set_t one = Cores();
  for (const int core : {-2, -1, CurrentCore() + 1, CPU_SETSIZE, 1 << 30}) {
    const OnCore placed(core);
    EXPECT_EQ(placed.core(), -1);
    const cpu_set_t now = Cores();
    EXPECT_TRUE(CPU_EQUAL(&one, &now));
  }
}

TEST_F(OnCoreTest, KeepsWhatAnotherProgramSetMeanwhile) {
  if (CPU_COUNT(&all_) < 2) GTEST_SKIP() << "one core";
  int first = 0;
  while (!CPU_ISSET(first, &all_)) ++first;
  int second = first + 1;
  while (!CPU_ISSET(second, &all_)) ++second;
  {
    const OnCore placed(first);
    StayOn(second);
  }
  const cpu_set_t after = Cores();
  EXPECT_EQ(CPU_COUNT(&after), 1);
  EXPECT_TRUE(CPU_ISSET(second, &after));
}

}  // namespace
}  // namespace tandem
