// Behaviour on the real machine; waiter_rules_test.cc drives a simulated clock.
#include "transport/wait/waiter.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>

#include "base/clock.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/shared_word.h"
#include "transport/wait/doorbell.h"

namespace tandem {
namespace {

// Counts its calls, and returns `code` from call number `from` on.
struct CountingWatch : WaitWatch {
  void OnLongWait() override { ++lasted; }
  ErrorCode Check(int64_t, bool interrupted) override {
    ++calls;
    EXPECT_GE(lasted, 1);
    interruptions += interrupted;
    return calls >= from ? code : ErrorCode::kOk;
  }
  int calls = 0;
  int lasted = 0;
  int interruptions = 0;
  int from = 1;
  ErrorCode code = ErrorCode::kOk;
};

void ComputeFor(int64_t ns) {
  const int64_t start = MonotonicNanos();
  while (MonotonicNanos() - start < ns) {
  }
}

class WaiterTest : public testing::TestWithParam<WaitStrategy> {
 protected:
  void SetUp() override { alarm(60); }
  void TearDown() override { alarm(0); }

  uint32_t asleep() const { return sleepers_.load(std::memory_order_relaxed); }

  SharedWord<uint32_t> bell_{};
  SharedWord<uint32_t> sleepers_{};
  CountingWatch watch_;
  Waiter waiter_{Doorbell(&bell_, &sleepers_), GetParam()};
};

INSTANTIATE_TEST_SUITE_P(AllStrategies, WaiterTest,
                         testing::Values(WaitStrategy::kSpin,
                                         WaitStrategy::kAdaptive,
                                         WaitStrategy::kBlock));

TEST_P(WaiterTest, ReturnsAtOnceWhenReady) {
  int looks = 0;
  EXPECT_EQ(
      waiter_.Until([&] { return ++looks > 0; }, Deadline::Infinite(), watch_),
      ErrorCode::kOk);
  EXPECT_EQ(looks, 1);
  EXPECT_EQ(watch_.calls, 0);
}

TEST_P(WaiterTest, DoesNotPollOnceReady) {
  for (const int yes : {1, 2, 3, 30, 300}) {
    int looks = 0;
    EXPECT_EQ(waiter_.Until([&] { return ++looks == yes; },
                            Deadline::Infinite(), watch_),
              ErrorCode::kOk);
    EXPECT_EQ(looks, yes);
  }
}

TEST_P(WaiterTest, PollsOnceOnADeadlineOfNow) {
  int looks = 0;
  EXPECT_EQ(waiter_.Until([&] { return ++looks > 1; }, Deadline::Now(), watch_),
            ErrorCode::kStepTimeout);
  EXPECT_EQ(looks, 1);
  EXPECT_EQ(waiter_.Until([] { return true; }, Deadline::Now(), watch_),
            ErrorCode::kOk);
  EXPECT_EQ(watch_.calls, 0);
}

TEST_P(WaiterTest, PollsOnAPassedDeadline) {
  const Deadline deadline = Deadline::After(1e-9);
  while (!deadline.PassedAt(MonotonicNanos())) {
  }
  EXPECT_EQ(waiter_.Until([] { return false; }, deadline, watch_),
            ErrorCode::kStepTimeout);
  EXPECT_EQ(waiter_.Until([] { return true; }, deadline, watch_),
            ErrorCode::kOk);
}

TEST_P(WaiterTest, TimesOutAtTheDeadlineAndNotBefore) {
  for (const double secs : {1e-6, 1e-4, 5e-3}) {
    const Deadline deadline = Deadline::After(secs);
    EXPECT_EQ(waiter_.Until([] { return false; }, deadline, watch_),
              ErrorCode::kStepTimeout);
    EXPECT_TRUE(deadline.PassedAt(waiter_.NowNs()));
    // The waiter's clock and CLOCK_MONOTONIC differ by less than 500 us.
    EXPECT_TRUE(deadline.PassedAt(MonotonicNanos() + 500'000));
    EXPECT_EQ(asleep(), 0U);
  }
}

TEST_P(WaiterTest, LastPollAtTheDeadlineWins) {
  const Deadline deadline = Deadline::After(1e-3);
  EXPECT_EQ(waiter_.Until([&] { return deadline.PassedAt(waiter_.NowNs()); },
                          deadline, watch_),
            ErrorCode::kOk);
}

TEST_P(WaiterTest, ReportsTimeOfTheCondition) {
  const int64_t due = waiter_.NowNs() + 300'000;
  int64_t not_yet = 0;
  ASSERT_EQ(waiter_.Until(
                [&] {
                  const int64_t now = waiter_.NowNs();
                  if (now < due) not_yet = now;
                  return now >= due;
                },
                Deadline::Infinite(), watch_),
            ErrorCode::kOk);
  const int64_t came = waiter_.CameAtNs();
  EXPECT_GE(came, not_yet);
  EXPECT_LE(came, waiter_.NowNs());
  const int64_t again = waiter_.NowNs();
  ASSERT_EQ(waiter_.Until([] { return true; }, Deadline::Infinite(), watch_),
            ErrorCode::kOk);
  EXPECT_GE(waiter_.CameAtNs(), again);
}

TEST_P(WaiterTest, CallsOnLongWaitOnce) {
  const int64_t due = MonotonicNanos() + 10 * WaitWatch::kQuickNs;
  // An emulator may need longer than that for the first two polls.
  EXPECT_EQ(waiter_.Until(
                [&] { return watch_.lasted > 0 && MonotonicNanos() >= due; },
                Deadline::Infinite(), watch_),
            ErrorCode::kOk);
  EXPECT_EQ(watch_.lasted, 1);
}

TEST_P(WaiterTest, DoesNotCallOnLongWaitBeforeANearDeadline) {
  EXPECT_EQ(waiter_.Until([] { return false; }, Deadline::After(1e-6), watch_),
            ErrorCode::kStepTimeout);
  if (GetParam() != WaitStrategy::kBlock) {
    EXPECT_EQ(watch_.lasted, 0);
  }
}

// OnLongWait may release Python's GIL, which takes long.
TEST_P(WaiterTest, DoesNotCallOnLongWaitIfTheAnswerCameDuringPreemption) {
  int looks = 0;
  EXPECT_EQ(waiter_.Until(
                [&] {
                  if (++looks == 2) ComputeFor(1'000'000);
                  return looks == 3;
                },
                Deadline::Infinite(), watch_),
            ErrorCode::kOk);
  EXPECT_EQ(watch_.lasted, GetParam() == WaitStrategy::kBlock ? 1 : 0);
}

TEST_P(WaiterTest, CallsOnLongWaitBeforeSleep) {
  ASSERT_EQ(waiter_.Until(
                [&] {
                  if (asleep() == 0) return false;
                  EXPECT_EQ(watch_.lasted, 1);
                  return true;
                },
                GetParam() == WaitStrategy::kSpin ? Deadline::After(1)
                                                  : Deadline::Infinite(),
                watch_),
            GetParam() == WaitStrategy::kSpin ? ErrorCode::kStepTimeout
                                              : ErrorCode::kOk);
  EXPECT_EQ(watch_.lasted, 1);
}

// If the thread is preempted in the first poll of its spin, a check is due
// afterwards.
TEST_P(WaiterTest, CallsOnLongWaitBeforeCheck) {
  int looks = 0;
  EXPECT_EQ(waiter_.Until(
                [&] {
                  if (++looks == 2) ComputeFor(2'000'000);
                  return looks == 9;
                },
                Deadline::Infinite(), watch_),
            ErrorCode::kOk);
  EXPECT_EQ(watch_.lasted, 1);
}

TEST_P(WaiterTest, ReturnsTheCodeOfTheWatch) {
  watch_.code = ErrorCode::kPeerGone;
  watch_.from = 3;
  EXPECT_EQ(waiter_.Until([] { return false; }, Deadline::Infinite(), watch_),
            ErrorCode::kPeerGone);
  EXPECT_EQ(watch_.calls, 3);
  EXPECT_EQ(asleep(), 0U);
}

TEST_P(WaiterTest, LastPollPrecedesTheWatch) {
  watch_.code = ErrorCode::kPeerGone;
  EXPECT_EQ(waiter_.Until([&] { return watch_.calls > 0; },
                          Deadline::Infinite(), watch_),
            ErrorCode::kOk);
}

TEST_P(WaiterTest, AsksTheWatchOnlyOnALongWait) {
  watch_.code = ErrorCode::kPeerGone;
  const int64_t start = MonotonicNanos();
  EXPECT_EQ(waiter_.Until([] { return false; }, Deadline::Infinite(), watch_),
            ErrorCode::kPeerGone);
  EXPECT_GE(MonotonicNanos() - start, 1'000'000);
}

TEST_P(WaiterTest, SeesAPeerThatRingsNoBell) {
  SharedWord<uint32_t> word{};
  std::thread peer([&] { word.store(1, std::memory_order_release); });
  EXPECT_EQ(
      waiter_.Until([&] { return word.load(std::memory_order_acquire) == 1; },
                    Deadline::Infinite(), watch_),
      ErrorCode::kOk);
  peer.join();
}

TEST_P(WaiterTest, ContinuesAfterUnrelatedNotification) {
  Doorbell bell(&bell_, &sleepers_);
  int looks = 0;
  EXPECT_EQ(waiter_.Until(
                [&] {
                  bell.NotifyIfWaiting();
                  return ++looks > 1000;
                },
                Deadline::Infinite(), watch_),
            ErrorCode::kOk);
  EXPECT_EQ(looks > 1000, true);
}

TEST_P(WaiterTest, SleepsByItsStrategy) {
  // The sleeper count at the second poll, the first that a sleeper can make,
  // and the largest count at any poll; the number of polls as a sleeper.
  const bool spins = GetParam() == WaitStrategy::kSpin;
  int looks = 0;
  int sleeping_looks = 0;
  uint32_t at_second_look = 0;
  uint32_t most = 0;
  EXPECT_EQ(waiter_.Until(
                [&] {
                  if (++looks == 2) at_second_look = asleep();
                  most = std::max(most, asleep());
                  sleeping_looks += asleep() > 0;
                  return sleeping_looks == 50;
                },
                spins ? Deadline::After(1) : Deadline::Infinite(), watch_),
            spins ? ErrorCode::kStepTimeout : ErrorCode::kOk);
  EXPECT_EQ(most, GetParam() == WaitStrategy::kSpin ? 0U : 1U);
  EXPECT_EQ(at_second_look, GetParam() == WaitStrategy::kBlock ? 1U : 0U);
}

class AdaptiveWaiterTest : public WaiterTest {};
INSTANTIATE_TEST_SUITE_P(Adaptive, AdaptiveWaiterTest,
                         testing::Values(WaitStrategy::kAdaptive));

TEST_P(AdaptiveWaiterTest, SleepsAtOnceAfterMissedSpins) {
  for (int i = 0; i < 20; ++i) {
    // The condition becomes true only for a sleeper.
    int looks = 0;
    EXPECT_EQ(waiter_.Until(
                  [&] {
                    ++looks;
                    return asleep() == 1;
                  },
                  Deadline::Infinite(), watch_),
              ErrorCode::kOk);
    if (i >= 10 && i < 15) {
      EXPECT_EQ(looks, 2);  // The first poll, and one as a sleeper.
    }
  }
}

class SleepingWaiterTest : public WaiterTest {};
INSTANTIATE_TEST_SUITE_P(SleepingStrategies, SleepingWaiterTest,
                         testing::Values(WaitStrategy::kAdaptive,
                                         WaitStrategy::kBlock));

// A signal whose handler runs during the sleep reaches the watch, with and
// without SA_RESTART.
TEST_P(SleepingWaiterTest, ASignalReachesTheWatch) {
  for (const int flags : {0, SA_RESTART}) {
    struct sigaction action = {};
    action.sa_handler = [](int) {};
    action.sa_flags = flags;
    struct sigaction before;
    ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
    struct InterruptedWatch : CountingWatch {
      ErrorCode Check(int64_t now_ns, bool interrupted) override {
        (void)CountingWatch::Check(now_ns, interrupted);
        return interrupted ? ErrorCode::kInterrupted : ErrorCode::kOk;
      }
    } watch;
    std::atomic<bool> done = false;
    const pthread_t waiting = pthread_self();
    std::thread signalling([&] {
      while (!done.load(std::memory_order_acquire)) {
        if (asleep() > 0) pthread_kill(waiting, SIGUSR1);
        sched_yield();
      }
    });
    EXPECT_EQ(waiter_.Until([] { return false; }, Deadline::Infinite(), watch),
              ErrorCode::kInterrupted);
    EXPECT_EQ(watch.interruptions, 1);
    // The condition can be waited for again.
    EXPECT_EQ(waiter_.Until([] { return true; }, Deadline::Infinite(), watch),
              ErrorCode::kOk);
    done.store(true, std::memory_order_release);
    signalling.join();
    EXPECT_EQ(asleep(), 0U);
    ASSERT_EQ(sigaction(SIGUSR1, &before, nullptr), 0);
  }
}

}  // namespace
}  // namespace tandem
