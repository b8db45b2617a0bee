#include "base/work_queue.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <utility>

namespace tandem {
namespace {

TEST(WorkQueue, CallsInTheOrderOfArrivalAndTheRestOfAWorkFirst) {
  std::string order;
  {
    std::promise<void> go;  // outlives the queue's functions, as the others do
    WorkQueue queue(1, 8);
    ASSERT_TRUE(queue.Add([&] { go.get_future().wait(); }));
    ASSERT_TRUE(queue.Add([&] { order += 'a'; }));
    ASSERT_TRUE(queue.Add([&] { order += 'b'; }));
    queue.AddFirst([&] { order += 'c'; });
    go.set_value();
  }
  EXPECT_EQ(order, "cab");
}

TEST(WorkQueue, RefusesWorkBeyondItsMaximum) {
  int calls = 0;
  {
    std::promise<void> begun;
    std::promise<void> go;
    WorkQueue queue(1, 1);
    ASSERT_TRUE(queue.Add([&] {
      begun.set_value();
      go.get_future().wait();
    }));
    begun.get_future().wait();
    EXPECT_TRUE(queue.Add([&] { ++calls; }));
    EXPECT_FALSE(queue.Add([&] { ++calls; }));
    go.set_value();
  }
  EXPECT_EQ(calls, 1);
}

TEST(WorkQueue, BlockedThreadLeavesWorkToTheOthers) {
  std::promise<void> go;
  std::promise<void> done;
  WorkQueue queue(2, 8);
  ASSERT_TRUE(queue.Add([&] { go.get_future().wait(); }));
  ASSERT_TRUE(queue.Add([&] { done.set_value(); }));
  done.get_future().wait();
  go.set_value();
}

TEST(WorkQueue, DropsWhatWaitsAtItsEnd) {
  std::promise<void> dropped;
  std::promise<void> begun;
  std::promise<void> go;
  bool is_called = false;
  {
    auto held = std::shared_ptr<void>(nullptr, [&](void*) {
      dropped.set_value();
      go.set_value();
    });
    WorkQueue queue(1, 1, WorkQueue::AtEnd::kDropWaiting);
    ASSERT_TRUE(queue.Add([&] {
      begun.set_value();
      go.get_future().wait();
    }));
    begun.get_future().wait();
    ASSERT_TRUE(queue.Add([&, held = std::move(held)] { is_called = true; }));
  }
  dropped.get_future().wait();
  EXPECT_FALSE(is_called);
}

}  // namespace
}  // namespace tandem
