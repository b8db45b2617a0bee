// Also runs under ThreadSanitizer.
#include "engine_adapter/core/thread_pool.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <vector>

namespace tandem {
namespace {

class ThreadPoolTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { alarm(120); }
  void TearDown() override { alarm(0); }
};

TEST_P(ThreadPoolTest, CallsEachIndexOnceAndReturnsAfterAll) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.threads(), GetParam());
  for (const uint32_t count : {0U, 1U, 2U, 3U, 7U, 64U, 1000U}) {
    std::vector<int> calls(count);  // not atomic: one thread for each index
    auto call = [&](uint32_t i) { ++calls[i]; };
    pool.ParallelFor(count, call);
    EXPECT_EQ(calls, std::vector<int>(count, 1)) << count;
  }
}

TEST_P(ThreadPoolTest, ManyJobsInARowDoNotMix) {
  ThreadPool pool(GetParam());
  constexpr uint32_t jobs = 5000;
  std::vector<uint32_t> values(37);
  for (uint32_t job = 0; job < jobs; ++job) {
    // The job is on this stack frame, which ends with the call.
    auto call = [&, job](uint32_t i) { values[i] += job + i; };
    pool.ParallelFor(1 + job % 37, call);
  }
  std::vector<uint32_t> expected(37);
  for (uint32_t job = 0; job < jobs; ++job) {
    for (uint32_t i = 0; i < 1 + job % 37; ++i) expected[i] += job + i;
  }
  EXPECT_EQ(values, expected);
}

TEST_P(ThreadPoolTest, SleepingWorkersWakeUp) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 5; ++round) {
    usleep(2000);  // lets the workers fall asleep; the test holds without it
    std::atomic<uint32_t> calls = 0;
    auto call = [&](uint32_t) {
      calls.fetch_add(1, std::memory_order_relaxed);
    };
    pool.ParallelFor(100, call);
    EXPECT_EQ(calls.load(std::memory_order_relaxed), 100);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(1, 2, 3, 5));

TEST(ThreadPool, SeveralThreadsWorkOnOneJob) {
  alarm(120);
  ThreadPool pool(2);
  std::atomic<int> inside = 0;
  // Neither call returns before the other has begun.
  auto call = [&](uint32_t) {
    inside.fetch_add(1, std::memory_order_relaxed);
    while (inside.load(std::memory_order_relaxed) < 2) usleep(10);
  };
  pool.ParallelFor(2, call);
  EXPECT_EQ(inside.load(std::memory_order_relaxed), 2);
  alarm(0);
}

TEST(ThreadPool, ClaimsShrinkToSingleIndices) {
  std::vector<uint32_t> sizes;
  for (uint32_t left = 64; left > 0; left -= sizes.back()) {
    sizes.push_back(ThreadPool::ClaimSize(left, 2));
  }
  EXPECT_EQ(sizes, (std::vector<uint32_t>{16, 12, 9, 6, 5, 4, 3, 2, 1, 1, 1, 1,
                                          1, 1, 1}));
  EXPECT_EQ(ThreadPool::ClaimSize(1, 64), 1u);
}

TEST(ThreadPool, OneThreadCallsInOrderOnTheCaller) {
  ThreadPool pool(0);
  EXPECT_EQ(pool.threads(), 1);
  std::vector<uint32_t> order;
  auto call = [&](uint32_t i) { order.push_back(i); };
  pool.ParallelFor(3, call);
  EXPECT_EQ(order, (std::vector<uint32_t>{0, 1, 2}));
}

TEST(SuitableThreads, NoMoreThanEnvironmentsAndAtLeastOne) {
  EXPECT_EQ(SuitableThreads(1), 1);
  EXPECT_EQ(SuitableThreads(0), 1);
  EXPECT_GE(SuitableThreads(1000), 1);
}

}  // namespace
}  // namespace tandem
