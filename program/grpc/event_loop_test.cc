#include "program/grpc/event_loop.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "base/os/unique_fd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

// Words that the loop's thread records, and that the test's thread awaits.
class Said {
 public:
  void Say(int word) {
    const std::lock_guard lock(mutex_);
    words_.push_back(word);
    changed_.notify_all();
  }
  // Blocks until there are `count`; the test's time limit is the watchdog.
  std::vector<int> WaitFor(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return words_.size() >= count; });
    return words_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> words_;
};

TEST(EventLoop, RunsTasksInTheOrderOfEachPoster) {
  Said said;
  EventLoop loop("test");
  std::vector<std::thread> posters;
  for (int poster = 0; poster < 4; ++poster) {
    posters.emplace_back([&, poster] {
      for (int i = 0; i < 1000; ++i) {
        loop.Post([&, poster, i] { said.Say(poster * 1000 + i); });
      }
    });
  }
  for (std::thread& poster : posters) poster.join();
  std::vector<int> next(4, 0);
  for (const int word : said.WaitFor(4000)) {
    EXPECT_EQ(word % 1000, next[static_cast<size_t>(word / 1000)]++);
  }
}

TEST(EventLoop, RunsTimersInTheOrderOfTheirTimes) {
  Said said;
  EventLoop loop("test");
  loop.Post([&] {
    loop.After(absl::Milliseconds(500), [&] { said.Say(2); });
    loop.After(absl::Milliseconds(10), [&] { said.Say(1); });
    const EventLoop::TimerId cancelled =
        loop.After(absl::Milliseconds(1), [&] { said.Say(99); });
    loop.Cancel(cancelled);
    loop.After(absl::ZeroDuration(), [&] { said.Say(0); });
  });
  EXPECT_THAT(said.WaitFor(3), ElementsAre(0, 1, 2));
}

TEST(EventLoop, CallsTheWatchOfADescriptorUntilUnwatch) {
  Said said;
  const UniqueFd fd(eventfd(0, EFD_CLOEXEC));
  EventLoop loop("test");
  loop.Post([&] {
    loop.Watch(fd.get(), [&, calls = 0]() mutable {
      eventfd_t value;
      eventfd_read(fd.get(), &value);
      said.Say(static_cast<int>(value));
      if (++calls == 2) loop.Unwatch(fd.get());
    });
  });
  eventfd_write(fd.get(), 7);
  said.WaitFor(1);
  eventfd_write(fd.get(), 8);
  said.WaitFor(2);
  eventfd_write(fd.get(), 9);
  loop.Post([&] { said.Say(0); });
  EXPECT_THAT(said.WaitFor(3), ElementsAre(7, 8, 0));
}

// Two descriptors are ready at once. The first callback replaces the other
// descriptor by a new one with the same number, which is not ready.
TEST(EventLoop, IgnoresEventsOfAnEarlierWatchOfTheDescriptor) {
  Said said;
  UniqueFd fds[] = {UniqueFd(eventfd(1, EFD_CLOEXEC)),
                    UniqueFd(eventfd(1, EFD_CLOEXEC))};
  const UniqueFd silent(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  EventLoop loop("test");
  loop.Post([&] {
    for (const int i : {0, 1}) {
      loop.Watch(fds[i].get(), [&, i] {
        said.Say(1);
        const int other = fds[1 - i].get();
        loop.Unwatch(fds[i].get());
        loop.Unwatch(other);
        ASSERT_EQ(dup2(silent.get(), other), other);
        loop.Watch(other, [&] {
          eventfd_t value = 99;
          eventfd_read(silent.get(), &value);
          said.Say(static_cast<int>(value));
        });
      });
    }
  });
  said.WaitFor(1);
  loop.Post([&] {
    said.Say(2);
    eventfd_write(silent.get(), 7);
  });
  EXPECT_THAT(said.WaitFor(3), ElementsAre(1, 2, 7));
}

TEST(EventLoop, DropsTasksAfterStop) {
  auto kept = std::make_shared<int>(0);
  EventLoop loop("test");
  loop.Stop();
  loop.Post([kept] { ++*kept; });
  EXPECT_EQ(kept.use_count(), 1);
  EXPECT_EQ(*kept, 0);
  loop.Stop();  // a second call has no effect
}

}  // namespace
}  // namespace tandem
