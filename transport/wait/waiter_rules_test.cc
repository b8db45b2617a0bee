// The rules of docs/waiting.md, on a simulated machine. The test drives its
// clock and scheduler.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include "base/clock.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/shared_word.h"
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
      // relaxed: here and below, there is one thread.
      cores_told.push_back(own_core.load(std::memory_order_relaxed));
      slept_from_ns = now_ns;
      if (answer_ns == kWhenAsleep) answer_ns = now_ns;
      const int64_t woken_ns = std::max(now_ns, answer_ns) + wake_ns;
      const bool answered = woken_ns <= now_ns + slice_ns;
      now_ns = answered ? woken_ns : now_ns + slice_ns;
      return answered && rings ? Doorbell::Wake::kNotified
                               : Doorbell::Wake::kSliceOver;
    }
  };
  struct Placement {
    explicit Placement(int core) : on(cores.contains(core) ? core : -1) {
      if (core < 0) return;
      cores_asked.push_back(core);
      now_ns += place_ns;
    }
    int core() const { return on; }
    int on;
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
    place_ns = 0;
    cores = {0, 1};
    cores_asked.clear();
    cores_told.clear();
    own_core.store(0, std::memory_order_relaxed);
  }
  static inline int64_t now_ns, answer_ns, wake_ns, yield_ns, slept_from_ns;
  static inline int yields;
  static inline std::vector<int64_t> slices_ns;  // Of all sleeps.
  static inline bool rings, may_migrate, is_real_time;
  static inline int64_t place_ns;
  static inline SharedWord<uint32_t> own_core;     // As a waiter tells it.
  static inline std::vector<uint32_t> cores_told;  // During all sleeps.
  static inline std::set<int> cores;               // Those that are allowed.
  static inline std::vector<int> cores_asked;      // For all sleeps.
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

class SharedCores : public WaitingRules {
 protected:
  SharedCores() {
    for (FakeWaiter* waiter : {&adaptive_, &spin_, &block_}) {
      waiter->ShareCore(&peer_core_, &FakeMachine::own_core);
    }
    // relaxed: here and below, there is one thread.
    peer_core_.store(1 + 1, std::memory_order_relaxed);
  }
  void WaitOften(FakeWaiter& waiter, int64_t answer_ns) {
    for (int i = 0; i < 100; ++i) Wait(waiter, answer_ns);
    FakeMachine::cores_asked.clear();
    FakeMachine::cores_told.clear();
  }

  SharedWord<uint32_t> peer_core_{};
  SharedWord<uint64_t> wakes_{}, hits_{};
};

TEST_F(SharedCores, SleepsOnThePeersCoreBetweenSlowRequests) {
  for (FakeWaiter* waiter : {&adaptive_, &block_}) {
    WaitOften(*waiter, 2'000'000);
    EXPECT_TRUE(Wait(*waiter, 2'000'000));
    EXPECT_EQ(FakeMachine::cores_asked, std::vector<int>{1});
    EXPECT_EQ(FakeMachine::cores_told, std::vector<uint32_t>{1 + 1});
    EXPECT_EQ(FakeMachine::own_core.load(std::memory_order_relaxed), 0U);
  }
}

TEST_F(SharedCores, SpinSharesNone) {
  FakeMachine::is_real_time = true;
  WaitOften(spin_, 20'000'000);
  EXPECT_TRUE(Wait(spin_, 20'000'000));
  EXPECT_TRUE(FakeMachine::cores_asked.empty());
}

TEST_F(SharedCores, SpinsOnWhereSpinsSeeTheRequest) {
  WaitOften(adaptive_, 300'000);
  EXPECT_FALSE(Wait(adaptive_, 300'000));
}

TEST_F(SharedCores, SpinsAgainWhenRequestsAreQuick) {
  WaitOften(adaptive_, 2'000'000);
  WaitOften(adaptive_, 1'000);
  EXPECT_FALSE(Wait(adaptive_, 1'000));
  EXPECT_TRUE(FakeMachine::cores_asked.empty());
}

// The request comes while the system calls of the placement run.
TEST_F(SharedCores, SpinsAgainWhenRequestsComeBeforeTheSleep) {
  FakeMachine::place_ns = 2'000;
  WaitOften(adaptive_, 2'000'000);
  WaitOften(adaptive_, 1'000);
  EXPECT_FALSE(Wait(adaptive_, 1'000));
  EXPECT_TRUE(FakeMachine::cores_asked.empty());
}

TEST_F(SharedCores, LeavesTheCoreOfAPeerThatIsAwayForLong) {
  WaitOften(block_, 2'000'000);
  Wait(block_, 500'000'000);
  EXPECT_EQ(FakeMachine::cores_asked.size(), 10U);  // slices of 10 ms
  EXPECT_EQ(FakeMachine::cores_told.back(), 0U);
}

// Also if the caller's deadlines end the waits.
TEST_F(SharedCores, LeavesTheCoreOfAFrozenPeer) {
  WaitOften(block_, 2'000'000);
  for (int i = 0; i < 100; ++i) Wait(block_, 90'000'000, 5'000'000);
  EXPECT_LE(FakeMachine::cores_asked.size(), 21U);
  EXPECT_EQ(FakeMachine::cores_told.back(), 0U);
}

TEST_F(SharedCores, TellsThePeerOfNoCoreOnWhichItMayNotRun) {
  FakeMachine::cores = {0};
  WaitOften(block_, 2'000'000);
  EXPECT_TRUE(Wait(block_, 2'000'000));
  EXPECT_EQ(FakeMachine::cores_asked, std::vector<int>{1});
  EXPECT_EQ(FakeMachine::cores_told, std::vector<uint32_t>{0});
}

TEST_F(SharedCores, SharesNoneWithAPeerThatNamesNone) {
  peer_core_.store(0, std::memory_order_relaxed);
  for (FakeWaiter* waiter : {&adaptive_, &block_}) {
    WaitOften(*waiter, 2'000'000);
    EXPECT_TRUE(Wait(*waiter, 2'000'000));
    EXPECT_TRUE(FakeMachine::cores_asked.empty());
  }
}

class OwnCore : public WaitingRules {
 protected:
  // Waits for an answer that the peer computes on this core.
  void WaitForThePeer(FakeWaiter& waiter, int64_t answer_ns) {
    FakeMachine::answer_ns = FakeMachine::now_ns + answer_ns;
    FakeMachine::slices_ns.clear();
    const auto came = [] {
      return FakeMachine::now_ns >= FakeMachine::answer_ns;
    };
    EXPECT_EQ(waiter.Until(came, Deadline::Infinite(), watch_, 1),
              ErrorCode::kOk);
  }
};

TEST_F(OwnCore, SleepsThereAtOnce) {
  for (FakeWaiter* waiter : {&adaptive_, &block_}) {
    FakeMachine::Reset();
    WaitForThePeer(*waiter, 1'000);
    EXPECT_EQ(FakeMachine::slices_ns.size(), 1U);
    EXPECT_EQ(FakeMachine::cores_asked, std::vector<int>{1});
  }
}

TEST_F(OwnCore, IsKeptForTheFirstSleepOfALongWait) {
  WaitForThePeer(adaptive_, 25'000'000);
  EXPECT_EQ(FakeMachine::slices_ns.size(), 3U);
  EXPECT_EQ(FakeMachine::cores_asked, std::vector<int>{1});
}

TEST_F(OwnCore, TeachesNothing) {
  for (int i = 0; i < 100; ++i) WaitForThePeer(adaptive_, 1'000);
  EXPECT_FALSE(Wait(adaptive_, 400'000)) << "it spins for as long as at first";
}

TEST_F(OwnCore, DoesNotMakeSpinSleep) {
  WaitForThePeer(spin_, 1'000);
  EXPECT_TRUE(FakeMachine::slices_ns.empty());
}

TEST_F(SharedCores, WakesBeforeARegularRequest) {
  adaptive_.WakeEarly(&wakes_, &hits_);
  for (int i = 0; i < 100; ++i) Wait(adaptive_, 2'000'000);
  const int64_t start_ns = FakeMachine::now_ns;
  Wait(adaptive_, 2'000'000);
  EXPECT_EQ(FakeMachine::slices_ns.size(), 1U);
  EXPECT_LT(FakeMachine::now_ns - start_ns, 2'000'000 + 1'000)
      << "it paid for a wake-up";
  EXPECT_LE(adaptive_.CameAtNs(), start_ns + 2'000'000 + 100);
  EXPECT_GT(FakeMachine::slices_ns[0], 1'700'000) << "it polled for too long";
  const uint64_t hits = hits_.load(std::memory_order_relaxed);
  EXPECT_GT(hits, 20U);
  EXPECT_GE(wakes_.load(std::memory_order_relaxed), hits);
}

TEST_F(SharedCores, SharesTheCoreAfterAForecastThatFailed) {
  adaptive_.WakeEarly(&wakes_, &hits_);
  for (int i = 0; i < 100; ++i) Wait(adaptive_, 2'000'000);
  FakeMachine::cores_asked.clear();
  EXPECT_TRUE(Wait(adaptive_, 9'000'000));
  EXPECT_EQ(FakeMachine::slices_ns.size(), 2U);
  EXPECT_EQ(FakeMachine::cores_asked, std::vector<int>{1});
}

TEST_F(SharedCores, BlockDoesNotWakeEarly) {
  block_.WakeEarly(&wakes_, &hits_);
  WaitOften(block_, 2'000'000);
  EXPECT_TRUE(Wait(block_, 2'000'000));
  EXPECT_EQ(FakeMachine::cores_asked, std::vector<int>{1});
}

TEST_F(SharedCores, AForecastKeepsTheDeadline) {
  adaptive_.WakeEarly(&wakes_, &hits_);
  for (int i = 0; i < 100; ++i) Wait(adaptive_, 2'000'000);
  const int64_t start_ns = FakeMachine::now_ns;
  EXPECT_TRUE(Wait(adaptive_, 9'000'000, 1'990'000));
  EXPECT_LT(FakeMachine::now_ns - start_ns, 1'991'000);
}

TEST_F(SharedCores, DoesNotWakeEarlyForQuickRequests) {
  adaptive_.WakeEarly(&wakes_, &hits_);
  for (int i = 0; i < 100; ++i) ASSERT_FALSE(Wait(adaptive_, 1'000));
}

}  // namespace
}  // namespace tandem
