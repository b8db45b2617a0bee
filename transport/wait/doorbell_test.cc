// A sleep in these tests lasts an hour at most. So a lost wake-up hangs the
// test, and the watchdog (alarm) ends it.
#include "transport/wait/doorbell.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <thread>

#include "schema/layout/shared_word.h"

namespace tandem {
namespace {

constexpr int64_t kHourNs = 3'600'000'000'000;

// The word that one side waits for, and its bell.
struct Side {
  alignas(128) SharedWord<uint32_t> turn{};
  alignas(128) SharedWord<uint32_t> bell_word{};
  alignas(128) SharedWord<uint32_t> sleepers{};

  Doorbell bell() { return Doorbell(&bell_word, &sleepers); }
  uint32_t rings() const { return bell_word.load(std::memory_order_relaxed); }
  uint32_t asleep() const { return sleepers.load(std::memory_order_relaxed); }
};

class DoorbellTest : public testing::Test {
 protected:
  void SetUp() override { alarm(240); }
  void TearDown() override { alarm(0); }
};

TEST_F(DoorbellTest, DoesNotNotifyWithoutSleeper) {
  Side side;
  side.bell().NotifyIfWaiting();
  EXPECT_EQ(side.rings(), 0U);
}

TEST_F(DoorbellTest, NotifiesAnnouncedSleeper) {
  Side side;
  side.sleepers.store(1, std::memory_order_relaxed);
  side.bell().NotifyIfWaiting();
  EXPECT_EQ(side.rings(), 1U);
}

TEST_F(DoorbellTest, ClearsSleepersOfDeadOwner) {
  Side side;
  side.sleepers.store(3, std::memory_order_relaxed);
  side.bell().ClearSleepers();
  side.bell().NotifyIfWaiting();
  EXPECT_EQ(side.rings(), 0U);
}

TEST_F(DoorbellTest, DoesNotSleepWhenReady) {
  Side side;
  EXPECT_EQ(side.bell().SleepUnless([] { return true; }, kHourNs),
            Doorbell::Wake::kReady);
  EXPECT_EQ(side.asleep(), 0U);
}

TEST_F(DoorbellTest, AnnouncesSleeperBeforeLastPoll) {
  Side side;
  uint32_t announced = 0;
  const Doorbell::Wake wake = side.bell().SleepUnless(
      [&] {
        announced = side.asleep();
        return true;
      },
      kHourNs);
  EXPECT_EQ(wake, Doorbell::Wake::kReady);
  EXPECT_EQ(announced, 1U);
}

TEST_F(DoorbellTest, NotificationBetweenLastPollAndSleepIsNotLost) {
  Side side;
  const Doorbell::Wake wake = side.bell().SleepUnless(
      [&] {
        side.bell().NotifyIfWaiting();
        return false;
      },
      kHourNs);
  EXPECT_EQ(wake, Doorbell::Wake::kNotified);
  EXPECT_EQ(side.rings(), 1U);
}

TEST_F(DoorbellTest, SleepEndsWithItsSliceForAnyPeerWrite) {
  Side side;
  for (const uint32_t garbage : {0U, 1U, 0xFFFFFFFFU}) {
    side.bell_word.store(garbage, std::memory_order_relaxed);
    side.sleepers.store(garbage, std::memory_order_relaxed);
    EXPECT_EQ(side.bell().SleepUnless([] { return false; }, 1000),
              Doorbell::Wake::kSliceOver);
    EXPECT_EQ(side.asleep(), garbage);
  }
}

TEST_F(DoorbellTest, OneNotificationWakesEverySleeper) {
  constexpr uint32_t kThreads = 4;
  Side side;
  const auto sleep = [&side] {
    const auto notified = [&side] {
      return side.turn.load(std::memory_order_acquire) == 1;
    };
    while (!notified()) side.bell().SleepUnless(notified, kHourNs);
  };
  std::thread threads[kThreads];
  for (std::thread& thread : threads) thread = std::thread(sleep);
  while (side.asleep() < kThreads) sched_yield();
  side.turn.store(1, std::memory_order_release);
  side.bell().NotifyIfWaiting();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(side.asleep(), 0U);
}

// Waits for the turns 1 to `count` of `own`. After turn i, sets the turn of
// `other` to i + `ahead`.
void HandOver(Side& own, Side& other, uint32_t count, uint32_t ahead,
              uint64_t* plain_counter) {
  for (uint32_t i = 1; i <= count; ++i) {
    const auto my_turn = [&] {
      return own.turn.load(std::memory_order_acquire) == i;
    };
    while (!my_turn()) own.bell().SleepUnless(my_turn, kHourNs);
    ++*plain_counter;  // Only the turns order these accesses.
    other.turn.store(i + ahead, std::memory_order_release);
    other.bell().NotifyIfWaiting();
  }
}

constexpr uint32_t kHandOvers = 50'000;  // Each way.

// Binds the calling thread to core `index` of `allowed`, modulo their number.
void PinTo(int index, const cpu_set_t& allowed) {
  index %= CPU_COUNT(&allowed);
  int core = 0;
  while (!CPU_ISSET(core, &allowed) || index-- > 0) ++core;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
}

TEST_F(DoorbellTest, LosesNoWakeBetweenTwoThreads) {
  Side first;
  Side second;
  uint64_t counter = 0;
  second.turn.store(1, std::memory_order_release);
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  std::thread thread([&] {
    PinTo(0, before);
    HandOver(second, first, kHandOvers, 0, &counter);
  });
  PinTo(1, before);
  HandOver(first, second, kHandOvers, 1, &counter);
  EXPECT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  thread.join();
  EXPECT_EQ(counter, 2 * kHandOvers);
}

// The notifier does not sleep. So its store and its load of `sleepers` happen
// at every step of the other side towards sleep. Without the notifier's fence
// this test hangs in most runs.
TEST_F(DoorbellTest, LosesNoWakeToQuickNotifier) {
  constexpr uint32_t kRounds = 2 * kHandOvers;
  Side side;
  SharedWord<uint32_t> seen{};
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "needs two cores";
  std::thread sleeping([&] {
    PinTo(0, before);
    for (uint32_t i = 1; i <= kRounds; ++i) {
      const auto my_turn = [&] {
        return side.turn.load(std::memory_order_acquire) == i;
      };
      while (!my_turn()) side.bell().SleepUnless(my_turn, kHourNs);
      seen.store(i, std::memory_order_release);
    }
  });
  PinTo(1, before);
  for (uint32_t i = 1; i <= kRounds; ++i) {
    // These reads bring the word `sleepers` into the cache. Only then can the
    // notifier's load of it overtake the store.
    for (uint32_t look = 0; look < i % 256; ++look) (void)side.asleep();
    side.turn.store(i, std::memory_order_release);
    side.bell().NotifyIfWaiting();
    while (seen.load(std::memory_order_acquire) != i) {
    }
  }
  sleeping.join();
  EXPECT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

// On one core, a side runs only while the other side sleeps or is preempted.
TEST_F(DoorbellTest, LosesNoWakeBetweenTwoProcessesOnOneCore) {
  struct Shared {
    Side first;
    Side second;
    uint64_t counter;
  };
  void* mapping = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapping, MAP_FAILED);
  auto* shared = static_cast<Shared*>(mapping);
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  PinTo(0, before);
  shared->second.turn.store(1, std::memory_order_release);
  const pid_t child = fork();
  if (child == 0) {
    alarm(240);
    HandOver(shared->second, shared->first, kHandOvers, 0, &shared->counter);
    _exit(0);
  }
  HandOver(shared->first, shared->second, kHandOvers, 1, &shared->counter);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(shared->counter, 2 * kHandOvers);
  EXPECT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  munmap(mapping, sizeof(Shared));
}

}  // namespace
}  // namespace tandem
