#include "transport/wait/spin_budget.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tandem {
namespace {

constexpr int64_t kFree = SpinBudget::kFreeNs;

// Waits that end by sleeping, until the budget is gone. Returns how many.
int FailUntilGone(SpinBudget& budget) {
  int waits = 0;
  while (budget.ForThisWait() > 0) {
    budget.Failed();
    ++waits;
    if (waits > 1000) break;
  }
  return waits;
}

// How many waits sleep at once before one probes.
int WaitsUntilProbe(SpinBudget& budget) {
  int waits = 0;
  while (budget.ForThisWait() == 0 && waits < 10'000) ++waits;
  return waits;
}

TEST(SpinBudget, StartsWithTheLongestSpin) {
  SpinBudget budget;
  EXPECT_EQ(budget.ForThisWait(), kFree + SpinBudget::kLongestNs);
}

TEST(SpinBudget, IsGoneAfterAFewWaitsThatDidNotPay) {
  SpinBudget budget;
  EXPECT_LE(FailUntilGone(budget), 10);
  EXPECT_EQ(budget.ForThisWait(), 0);
}

TEST(SpinBudget, ShrinksWithEachWaitThatDidNotPay) {
  SpinBudget budget;
  int64_t last = budget.ForThisWait();
  while (last > 0) {
    budget.Failed();
    const int64_t now = budget.ForThisWait();
    EXPECT_LT(now, last);
    EXPECT_TRUE(now == 0 || now >= SpinBudget::kShortestNs);
    last = now;
  }
}

TEST(SpinBudget, StaysWhileSpinningPays) {
  SpinBudget budget;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_GT(budget.ForThisWait(), 0);
    budget.Paid(kFree + 10'000);
  }
  EXPECT_GE(budget.ForThisWait(), 20'000);  // twice what was needed
}

TEST(SpinBudget, FallsSlowlyToTwiceWhatAnswersNeed) {
  SpinBudget budget;
  budget.Paid(kFree + 4000);
  EXPECT_GT(budget.ForThisWait(), SpinBudget::kLongestNs / 2);
  for (int i = 0; i < 1000; ++i) budget.Paid(kFree + 4000);
  EXPECT_EQ(budget.ForThisWait(), kFree + 8000);
}

TEST(SpinBudget, RisesAtOnceWhenAnswersTakeLonger) {
  SpinBudget budget;
  for (int i = 0; i < 1000; ++i) budget.Paid(kFree + 4000);
  budget.Paid(kFree + 8000);
  EXPECT_EQ(budget.ForThisWait(), kFree + 16'000);
  budget.Paid(kFree + 1'000'000);
  EXPECT_EQ(budget.ForThisWait(), kFree + SpinBudget::kLongestNs);
}

TEST(SpinBudget, TakesLittleForASingleWaitThatDidNotPay) {
  SpinBudget budget;
  for (int i = 0; i < 60; ++i) {
    budget.Paid(kFree + SpinBudget::kLongestNs * 3 / 4);
    budget.Failed();
    ASSERT_GT(budget.ForThisWait(), SpinBudget::kLongestNs * 3 / 4);
  }
}

TEST(SpinBudget, LongWaitsSleepNowAndThenThoughSpinningPays) {
  SpinBudget budget;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 64; ++i) {
      ASSERT_GT(budget.ForThisWait(), 0);
      budget.Paid(kFree + 100'000);
    }
    ASSERT_EQ(budget.ForThisWait(), 0);
    budget.Slept(150'000);
  }
}

TEST(SpinBudget, AQuickAnswerPutsThatOff) {
  SpinBudget budget;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_GT(budget.ForThisWait(), 0);
    budget.Paid(kFree + (i % 64 == 0 ? 1000 : 100'000));
  }
}

// What spins for longer than sleeps take gains nothing.
TEST(SpinBudget, SpinsNoLongerThanWaitsThatSleptHaveLasted) {
  SpinBudget budget;
  int sleeps = 0;
  for (int i = 0; i < 10'000 && budget.ForThisWait() > 0; ++i) {
    budget.Paid(kFree + 100'000);
    if (i % 64 == 63 && budget.ForThisWait() == 0) {
      budget.Slept(60'000);
      ++sleeps;
    }
    if (budget.ForThisWait() < kFree + 100'000) break;
  }
  EXPECT_GE(sleeps, 3);  // one or two say little
  EXPECT_LE(sleeps, 10);
  FailUntilGone(budget);
  // A probe spins for as long as two of them.
  while (budget.ForThisWait() == 0) budget.Slept(60'000);
  EXPECT_LE(budget.ForThisWait(), kFree + 2 * 65'000);
  // Sleeps that take longer, because the machine is another now, are learnt.
  budget.Failed();
  for (int i = 0; i < 1000; ++i) {
    if (budget.ForThisWait() == 0) budget.Slept(1'000'000);
  }
  budget.Paid(kFree + 150'000);
  EXPECT_GT(budget.ForThisWait(), 150'000);
}

TEST(SpinBudget, LosingTheCoreOnceChangesNothing) {
  SpinBudget budget;
  for (int i = 0; i < 10; ++i) {
    budget.Displaced();
    for (int k = 0; k < 64; ++k) {
      ASSERT_EQ(budget.ForThisWait(), kFree + SpinBudget::kLongestNs);
    }
  }
}

TEST(SpinBudget, LosingTheCoreAgainShortensLongSpinsForAWhile) {
  constexpr int64_t kWanted = kFree + SpinBudget::kLongestOnWantedCoreNs;
  SpinBudget budget;
  budget.Displaced();
  budget.Displaced();
  EXPECT_EQ(budget.ForThisWait(), kWanted);
  budget.Paid(kFree + 45'000);
  EXPECT_EQ(budget.ForThisWait(), kWanted);
  for (int i = 0; i < 10; ++i) budget.Displaced();
  int waits = 0;
  for (; budget.ForThisWait() <= kWanted && waits < 10'000; ++waits) {
    budget.Paid(kFree + (waits % 2 == 0 ? 45'000 : 5'000));
  }
  EXPECT_GT(waits, 500);
  EXPECT_LT(waits, 1000);
}

TEST(SpinBudget, AWaitThatSpunFirstTellsNothingAboutSleeps) {
  SpinBudget budget;
  for (int i = 0; i < 60; ++i) {
    ASSERT_GT(budget.ForThisWait(), 0);
    budget.Failed();
    budget.Slept(10'000);
    budget.Paid(kFree + SpinBudget::kLongestNs);
  }
  EXPECT_EQ(budget.ForThisWait(), kFree + SpinBudget::kLongestNs);
}

TEST(SpinBudget, QuickAnswersSaveForALateOne) {
  SpinBudget budget;
  for (int i = 0; i < 1000; ++i) budget.Paid(kFree + 4000);
  const int64_t without = budget.ForThisWait();
  for (int i = 0; i < 500; ++i) budget.Paid(kFree + 1000);
  EXPECT_GT(budget.ForThisWait(), without + 1'500'000);
  // A late one takes from them what it took beyond the budget.
  const int64_t before = budget.ForThisWait();
  budget.Paid(kFree + 1'000'000);
  EXPECT_LT(budget.ForThisWait(), before - 900'000);
  EXPECT_GT(budget.ForThisWait(), SpinBudget::kLongestNs);
  // One that did not come takes all.
  budget.Failed();
  EXPECT_LE(budget.ForThisWait(), kFree + SpinBudget::kLongestNs);
}

TEST(SpinBudget, AShortSpinIsFree) {
  SpinBudget budget;
  SpinBudget same;
  for (int i = 0; i < 1000; ++i) {
    budget.Paid(kFree);
    same.Paid(0);
  }
  EXPECT_EQ(budget.ForThisWait(), same.ForThisWait());
}

TEST(SpinBudget, SavesNoMoreThanASchedulersTurn) {
  SpinBudget budget;
  for (int i = 0; i < 100'000; ++i) budget.Paid(0);
  EXPECT_EQ(budget.ForThisWait(),
            kFree + SpinBudget::kShortestNs + SpinBudget::kMostSavingsNs);
}

TEST(SpinBudget, ProbesEverMoreRarelyWhileProbesFail) {
  SpinBudget budget;
  FailUntilGone(budget);
  // FailUntilGone's last look was the first of these waits.
  EXPECT_EQ(WaitsUntilProbe(budget), 14);
  int last = 15;
  for (int i = 0; i < 6; ++i) {
    budget.Failed();
    const int now = WaitsUntilProbe(budget);
    EXPECT_EQ(now, 2 * last + 1);
    last = now;
  }
  EXPECT_EQ(last, 1023);
  for (int i = 0; i < 3; ++i) {
    budget.Failed();
    EXPECT_EQ(WaitsUntilProbe(budget), 1023);
  }
}

TEST(SpinBudget, AProbeThatPaysBringsSpinningBack) {
  SpinBudget budget;
  FailUntilGone(budget);
  WaitsUntilProbe(budget);
  budget.Failed();
  WaitsUntilProbe(budget);
  budget.Paid(kFree + 5000);
  EXPECT_EQ(budget.ForThisWait(), kFree + 10'000);
  FailUntilGone(budget);
  EXPECT_EQ(WaitsUntilProbe(budget), 14);  // as at first
}

TEST(SpinBudget, AProbeWithoutOutcomeIsRepeated) {
  SpinBudget budget;
  FailUntilGone(budget);
  WaitsUntilProbe(budget);
  // Deadlines passed, say: neither Paid nor Failed.
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(budget.ForThisWait(), kFree + SpinBudget::kLongestNs);
  }
}

// Waits that sleep, each for so long, until a probe, which fails.
void FailProbe(SpinBudget& budget, int64_t slept_ns) {
  while (budget.ForThisWait() == 0) budget.Slept(slept_ns);
  budget.Failed();
  budget.Slept(slept_ns);
}

constexpr int64_t kParting = kFree + SpinBudget::kPartingNs;

// On one core with its peer.
SpinBudget OnSharedCore() {
  SpinBudget budget;
  FailUntilGone(budget);
  FailProbe(budget, 5'000);
  return budget;
}

TEST(SpinBudget, SpinsOnWhereASleepIsQuickerThanAProbe) {
  SpinBudget budget = OnSharedCore();
  EXPECT_EQ(budget.ForThisWait(), kParting);
  // What the wait took is gone from it.
  budget.Paid(kFree + 3'000'000);
  EXPECT_EQ(budget.ForThisWait(), kParting - 3'000'000);
}

TEST(SpinBudget, SleepsOnWhereSleepsAreLong) {
  SpinBudget budget;
  FailUntilGone(budget);
  for (int i = 0; i < 10; ++i) {
    FailProbe(budget, SpinBudget::kSharedCoreNs);
    EXPECT_EQ(budget.ForThisWait(), 0);
  }
}

TEST(SpinBudget, SpinsAsEverOnceTheyAreParted) {
  SpinBudget budget = OnSharedCore();
  for (int i = 0; i < 20; ++i) budget.Paid(kFree + 3'000'000);
  for (int i = 0; i < 64; ++i) budget.Paid(kFree);
  EXPECT_GT(budget.ForThisWait(), kFree);
  EXPECT_LT(budget.ForThisWait(), kFree + SpinBudget::kMostSavingsNs);
  // As it paid, it is tried again as soon as they are on one core again.
  FailUntilGone(budget);
  FailProbe(budget, 5'000);
  EXPECT_EQ(budget.ForThisWait(), kParting);
}

TEST(SpinBudget, GivesUpToBePartedAndTriesEverMoreRarely) {
  SpinBudget budget = OnSharedCore();
  int last = 0;
  for (int i = 0; i < 4; ++i) {
    int64_t spun = 0;
    while (budget.ForThisWait() > kFree + SpinBudget::kLongestNs) {
      budget.Paid(kFree + 3'000'000);
      spun += 3'000'000;
    }
    EXPECT_GE(spun, SpinBudget::kPartingNs);
    EXPECT_LE(spun, SpinBudget::kPartingNs + 3'000'000);
    FailUntilGone(budget);
    int probes = 0;
    while (budget.ForThisWait() != kParting) {
      FailProbe(budget, 5'000);
      ASSERT_LT(++probes, 10'000);
    }
    EXPECT_EQ(probes, last == 0 ? 256 : 2 * last);
    last = probes;
  }
}

TEST(SpinBudget, AWaitThatOutlastsThePartingEndsIt) {
  SpinBudget budget = OnSharedCore();
  budget.Failed();
  EXPECT_LE(budget.ForThisWait(), kFree + SpinBudget::kLongestNs);
}

}  // namespace
}  // namespace tandem
