#include "engine_adapter/rpc/main_thread_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace tandem {
namespace {

TEST(MainThreadQueue, PumpingThreadRunsWorkInOrder) {
  std::vector<int> done;
  MainThreadQueue queue([] {});
  for (int i = 0; i < 3; ++i) queue.Post([&done, i] { done.push_back(i); });
  EXPECT_TRUE(done.empty());
  queue.Pump();
  EXPECT_EQ(done, (std::vector<int>{0, 1, 2}));
}

TEST(MainThreadQueue, WorkPostedByWorkRunsInTheNextPump) {
  int done = 0;
  MainThreadQueue queue([] {});
  queue.Post([&] { queue.Post([&] { ++done; }); });
  queue.Pump();
  EXPECT_EQ(done, 0);
  queue.Pump();
  EXPECT_EQ(done, 1);
}

TEST(MainThreadQueue, EachThreadsWorkIsDoneOnceAndWakes) {
  constexpr int kPosts = 10'000;
  std::atomic<int> wakes{0};
  int done = 0;  // used by the pumping thread only
  MainThreadQueue queue([&] { ++wakes; });
  auto post = [&] {
    for (int i = 0; i < kPosts; ++i) queue.Post([&] { ++done; });
  };
  std::thread one(post);
  std::thread two(post);
  while (done < 2 * kPosts) queue.Pump();
  one.join();
  two.join();
  EXPECT_EQ(wakes, 2 * kPosts);
}

TEST(MainThreadQueue, ClosedQueueDropsWorkAndWakesNoThread) {
  int wakes = 0;
  MainThreadQueue queue([&] { ++wakes; });
  const auto held = std::make_shared<int>(0);
  queue.Post([held] { ++*held; });
  queue.Close();
  EXPECT_EQ(held.use_count(), 1);
  queue.Post([held] { ++*held; });
  queue.Pump();
  EXPECT_EQ(*held, 0);
  EXPECT_EQ(wakes, 1);
}

}  // namespace
}  // namespace tandem
