// The rules of docs/waiting.md, on a simulated machine. The test drives its
// clock and scheduler.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/clock.h"
#include "schema/layout/error_codes.h"
#include "transport/wait/doorbell.h"
#include "transport/wait/spin_budget.h"
#include "transport/wait/waiter.h"
#include "transport/wait_strategy.h"

namespace tandem {
namespace {

// A simulated machine whose clock the test drives. One answer is pending.
struct FakeMachine {
  struct Clock {
    int64_t Nanos() { return now_ns += 25; }
  };
  struct Bell {
    // Sleeps until the slice ends, or until the answer wakes it.
    template <typename Ready>
    Doorbell::Wake SleepUnless(Ready&& ready, int64_t slice_ns) {
      if (ready()) return Doorbell::Wake::kReady;
      slices_ns.push_back(slice_ns);
      slept_from_ns = now_ns;
      if (answer_ns == kWhenAsleep) answer_ns = now_ns;
      const int64_t woken_ns = std::max(now_ns, answer_ns) + wake_ns;
      const bool answered = woken_ns <= now_ns + slice_ns;
      now_ns = answered ? woken_ns : now_ns + slice_ns;
      return answered && rings ? Doorbell::Wake::kNotified
                               : Doorbell::Wake::kSliceOver;
    }
  };
  static void Pause() { now_ns += 40; }
  static void Yield() {
    ++yields;
    now_ns += yield_ns;
  }
  static bool IsRealTime() { return is_real_time; }
  static bool MayMigrate() { return may_migrate; }

  // An answer of a peer that runs only while this side sleeps.
  static constexpr int64_t kWhenAsleep = std::numeric_limits<int64_t>::max();

  static void Reset() {
    now_ns = 1'000'000'000;
    answer_ns = 0;
    wake_ns = 50'000;
    yield_ns = 200;
    yields = 0;
    slices_ns.clear();
    rings = may_migrate = true;
    is_real_time = false;
  }
  static inline int64_t now_ns, answer_ns, wake_ns, yield_ns, slept_from_ns;
  static inline int yields;
  static inline std::vector<int64_t> slices_ns;  // Of all sleeps.
  static inline bool rings, may_migrate, is_real_time;
};

struct CountingWatch : WaitWatch {
  ErrorCode Check(int64_t, bool) override {
    ++calls;
    return ErrorCode::kOk;
  }
  int calls = 0;
};

class WaitingRules : public testing::Test {
 protected:
  using FakeWaiter = BasicWaiter<FakeMachine>;

  void SetUp() override { FakeMachine::Reset(); }

  // Waits at most `limit_ns` for an answer that comes after `answer_ns`.
  // Returns whether it slept.
  bool Wait(FakeWaiter& waiter, int64_t answer_ns,
            int64_t limit_ns = 1'000'000'000'000) {
    FakeMachine::answer_ns = FakeMachine::now_ns + answer_ns;
    FakeMachine::slices_ns.clear();
    const ErrorCode code = waiter.Until(
        [] { return FakeMachine::now_ns >= FakeMachine::answer_ns; },
        Deadline::At(FakeMachine::now_ns + limit_ns), watch_);
    EXPECT_EQ(code,
              answer_ns <= limit_ns ? ErrorCode::kOk : ErrorCode::kStepTimeout);
    return !FakeMachine::slices_ns.empty();
  }

  CountingWatch watch_;
  FakeWaiter adaptive_{{}, WaitStrategy::kAdaptive};
  FakeWaiter spin_{{}, WaitStrategy::kSpin};
  FakeWaiter block_{{}, WaitStrategy::kBlock};
};

TEST_F(WaitingRules, AdaptiveSpinsForAnswersSoonerThanASleep) {
  for (int i = 0; i < 200; ++i) ASSERT_FALSE(Wait(adaptive_, 100'000));
}

TEST_F(WaitingRules, AdaptiveSleepsThroughAnswersLaterThanASpin) {
  for (int i = 0; i < 100; ++i) Wait(adaptive_, 20'000'000);
  const int64_t start = FakeMachine::now_ns;
  EXPECT_TRUE(Wait(adaptive_, 20'000'000));
  EXPECT_LE(FakeMachine::slices_ns.size(), 2U);
  EXPECT_LT(FakeMachine::now_ns - start, 20'100'000);
}

TEST_F(WaitingRules, AdaptiveSpinsThroughALateAnswerOfAQuickPeer) {
  for (int i = 0; i < 100; ++i) Wait(adaptive_, 1'000);
  EXPECT_FALSE(Wait(adaptive_, 10'000'000));
  EXPECT_EQ(FakeMachine::yields, 0);
}

TEST_F(WaitingRules, ALongSpinYieldsEvery50Microseconds) {
  for (int i = 0; i < 2; ++i) Wait(adaptive_, 40'000);
  EXPECT_EQ(FakeMachine::yields, 0);
  EXPECT_FALSE(Wait(adaptive_, 400'000));
  EXPECT_EQ(FakeMachine::yields, 7);
}

TEST_F(WaitingRules, SpinAndBlockNeverYield) {
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(Wait(spin_, 400'000));
    EXPECT_TRUE(Wait(block_, 400'000));
  }
  EXPECT_EQ(FakeMachine::yields, 0);
}

// The peer shares this core: it runs only while this side yields.
TEST_F(WaitingRules, SleepsWhereAnswersComeDuringYields) {
  FakeMachine::yield_ns = 5'000;
  for (int i = 0; i < 2; ++i) Wait(adaptive_, 40'000);
  int slept = 0;
  for (int i = 0; i < 12; ++i) slept += Wait(adaptive_, 52'000);
  EXPECT_GE(slept, 6);
}

TEST_F(WaitingRules, ShortYieldsAreHits) {
  for (int i = 0; i < 100; ++i) ASSERT_FALSE(Wait(adaptive_, 50'150));
}

TEST_F(WaitingRules, SpinsThatTimeOutLeadToSleeps) {
  int slept = 0;
  for (int i = 0; i < 20; ++i) slept += Wait(adaptive_, 1'000'000, 100'000);
  EXPECT_GE(slept, 15);
}

// Both sides share a core, so no answer comes during a spin.
TEST_F(WaitingRules, SpinsOnALoanWhereTheSchedulerMayMigrateASide) {
  for (const bool may_migrate : {false, true}) {
    FakeMachine::Reset();
    FakeMachine::may_migrate = may_migrate;
    FakeMachine::wake_ns = 1'000;
    FakeWaiter waiter({}, WaitStrategy::kAdaptive);
    int64_t longest_spin_ns = 0;
    for (int i = 0; i < 1000; ++i) {
      const int64_t start_ns = FakeMachine::now_ns;
      FakeMachine::answer_ns = FakeMachine::kWhenAsleep;
      ASSERT_EQ(
          waiter.Until(
              [] { return FakeMachine::now_ns >= FakeMachine::answer_ns; },
              Deadline::Infinite(), watch_),
          ErrorCode::kOk);
      longest_spin_ns =
          std::max(longest_spin_ns, FakeMachine::slept_from_ns - start_ns);
    }
    EXPECT_EQ(longest_spin_ns > SpinBudget::kMostSavingNs, may_migrate);
  }
}

TEST_F(WaitingRules, SpinNeverSleepsUnderANormalPolicy) {
  EXPECT_FALSE(Wait(spin_, 1'000'000'000));
}

TEST_F(WaitingRules, SpinSleepsAfter10MillisecondsUnderARealTimePolicy) {
  FakeMachine::is_real_time = true;
  EXPECT_FALSE(Wait(spin_, 9'900'000));
  EXPECT_TRUE(Wait(spin_, 10'100'000));
}

TEST_F(WaitingRules, ConsecutiveTimeoutsCountAsOneRealTimeSpin) {
  FakeMachine::is_real_time = true;
  for (int i = 0; i < 9; ++i) {
    EXPECT_FALSE(Wait(spin_, 2'000'000, 1'000'000));
  }
  EXPECT_TRUE(Wait(spin_, 2'000'000, 1'900'000));
  EXPECT_FALSE(Wait(spin_, 2'000'000, 1'900'000));
}

TEST_F(WaitingRules, SleepsLongForAPeerThatRings) {
  Wait(block_, 35'000'000);
  EXPECT_EQ(FakeMachine::slices_ns, std::vector<int64_t>(4, 10'000'000));
}

TEST_F(WaitingRules, SleepsNoLongerThanItHasWaitedForAPeerThatDoesNotRing) {
  FakeMachine::rings = false;
  Wait(block_, 35'000'000);
  Wait(block_, 1'000'000);
  int64_t slept = 0;
  for (const int64_t slice : FakeMachine::slices_ns) {
    EXPECT_LE(slice, std::max<int64_t>(50'000, slept + 1'000));
    slept += slice;
  }
  EXPECT_LE(slept, 2'000'000);
}

TEST_F(WaitingRules, ChecksAfterAMillisecondAndThenEveryFive) {
  Wait(spin_, 900'000);
  EXPECT_EQ(watch_.calls, 0);
  Wait(spin_, 1'100'000);
  EXPECT_EQ(watch_.calls, 1);
  Wait(spin_, 11'100'000);
  EXPECT_EQ(watch_.calls, 4);
}

}  // namespace
}  // namespace tandem
