#include "transport/wait/spin_budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <tuple>

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
  EXPECT_EQ(FailUntilGone(budget), 7);
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
  // Twice what was needed.
  EXPECT_EQ(budget.ForThisWait(), kFree + 20'000);
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

// A wait of `waited_ns` after the free part, which spins if it may, and sleeps
// for `sleep_ns` otherwise. Whether it slept.
bool WaitOnce(SpinBudget& budget, int64_t waited_ns, int64_t sleep_ns) {
  const int64_t spin_ns = budget.ForThisWait();
  if (spin_ns == 0) {
    budget.Slept(sleep_ns);
  } else if (spin_ns < kFree + waited_ns) {
    budget.Failed();
  } else {
    budget.Paid(kFree + waited_ns);
  }
  return spin_ns == 0;
}

TEST(SpinBudget, LongWaitsSleepNowAndThenThoughSpinningPays) {
  SpinBudget budget;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 256; ++i) {
      ASSERT_FALSE(WaitOnce(budget, 100'000, 150'000));
    }
    ASSERT_TRUE(WaitOnce(budget, 100'000, 150'000));
  }
}

TEST(SpinBudget, AQuickAnswerPutsThatOff) {
  SpinBudget budget;
  for (int i = 0; i < 4000; ++i) {
    ASSERT_FALSE(WaitOnce(budget, i % 256 == 0 ? 1000 : 100'000, 150'000));
  }
}

TEST(SpinBudget, WhoDoesNotLearnNeverSleepsForIt) {
  SpinBudget budget(50'000, /*learns=*/false);
  for (int i = 0; i < 4000; ++i) {
    ASSERT_FALSE(WaitOnce(budget, 40'000, 150'000));
  }
  EXPECT_EQ(budget.ForThisWait(), kFree + 50'000);
  FailUntilGone(budget);
  WaitsUntilProbe(budget);
  EXPECT_EQ(budget.ForThisWait(), kFree + 50'000);
}

TEST(SpinBudget, NorSpinsToBeParted) {
  SpinBudget budget(SpinBudget::kSharedCoreNs / 2, /*learns=*/false);
  FailUntilGone(budget);
  WaitsUntilProbe(budget);
  budget.Failed();
  EXPECT_EQ(budget.ForThisWait(), 0);
}

// What spins for longer than sleeps take gains nothing.
TEST(SpinBudget, SpinsNoLongerThanWaitsThatSleptHaveLasted) {
  SpinBudget budget;
  int sleeps = 0;
  for (int64_t spin_ns = budget.ForThisWait();
       sleeps <= 10 && (spin_ns == 0 || spin_ns >= kFree + 100'000);
       spin_ns = budget.ForThisWait()) {
    if (spin_ns == 0) {
      budget.Slept(60'000);
      ++sleeps;
    } else {
      budget.Paid(kFree + 100'000);
    }
  }
  EXPECT_GE(sleeps, 3);  // one or two say little
  EXPECT_LE(sleeps, 10);
  FailUntilGone(budget);
  // A probe spins for as long as two of them.
  for (int i = 0; i < 30; ++i) budget.Slept(60'000);
  WaitsUntilProbe(budget);
  EXPECT_GE(budget.ForThisWait(), kFree + 2 * 60'000);
  EXPECT_LE(budget.ForThisWait(), kFree + 2 * 61'000);
  // Sleeps that take longer, because the machine is another now, are learnt.
  budget.Failed();
  for (int i = 0; i < 30; ++i) WaitOnce(budget, 150'000, 1'000'000);
  WaitsUntilProbe(budget);
  budget.Paid(kFree + 150'000);
  EXPECT_GT(budget.ForThisWait(), kFree + 150'000);
}

TEST(SpinBudget, AProbeThatASleepWouldHaveBeatenIsAsOneInVain) {
  SpinBudget budget;
  FailUntilGone(budget);
  for (int i = 0; i < 30; ++i) budget.Slept(98'000);
  WaitsUntilProbe(budget);
  for (const int interval : {32, 64, 128, 256, 512, 1024, 1024}) {
    budget.Paid(kFree + 133'000);
    EXPECT_EQ(WaitsUntilProbe(budget), interval - 1);
  }
  budget.Paid(kFree + 80'000);
  EXPECT_GE(budget.ForThisWait(), kFree + 98'000);
  EXPECT_LE(budget.ForThisWait(), kFree + 98'100);
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

TEST(SpinBudget, IsLongWhereAnswersTakeLong) {
  SpinBudget budget;
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(budget.IsLong());
    budget.Paid(kFree + 30'000);
  }
  EXPECT_TRUE(budget.IsLong());
  budget.Failed();
  EXPECT_TRUE(budget.IsLong());
  budget.Paid(0);
  EXPECT_FALSE(budget.IsLong());
  // Nor is a single one that is late.
  budget.Paid(kFree + 3'000'000);
  EXPECT_FALSE(budget.IsLong());
}

constexpr int64_t kWanted = kFree + SpinBudget::kLongestOnWantedCoreNs;

TEST(SpinBudget, LosingTheCoreAgainShortensLongSpinsForAWhile) {
  for (const auto& [losses, least, most] :
       {std::tuple(2, 50, 100), std::tuple(12, 500, 1000),
        std::tuple(1000, 1500, 2048)}) {
    SpinBudget budget;
    for (int i = 0; i < losses; ++i) budget.Displaced();
    int waits = 0;
    for (; budget.ForThisWait() <= kWanted && waits < 10'000; ++waits) {
      budget.Paid(kFree + (waits % 2 == 0 ? 45'000 : 5'000));
    }
    EXPECT_GE(waits, least);
    EXPECT_LE(waits, most);
    // Then it goes on as it was.
    budget.Paid(kFree + SpinBudget::kLongestNs);
    EXPECT_EQ(budget.ForThisWait(), kFree + SpinBudget::kLongestNs);
  }
}

TEST(SpinBudget, AProbeOnAWantedCoreIsNoLongerThanOtherSpins) {
  SpinBudget budget;
  FailUntilGone(budget);
  for (int i = 0; i < 12; ++i) budget.Displaced();
  WaitsUntilProbe(budget);
  EXPECT_EQ(budget.ForThisWait(), kWanted);
}

TEST(SpinBudget, WhatIsSavedIsSpentOnAWantedCoreToo) {
  SpinBudget budget;
  for (int i = 0; i < 10'000; ++i) budget.Paid(0);
  for (int i = 0; i < 12; ++i) budget.Displaced();
  EXPECT_EQ(budget.ForThisWait(),
            kFree + SpinBudget::kShortestNs + SpinBudget::kMostSavingsNs);
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
  // Neither Paid nor Failed: a deadline came within the free part, say.
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

// A single wait: who is to answer has a turn of his own by then, or is gone.
constexpr int64_t kParting = kFree + SpinBudget::kMostSavingsNs;

// On one core with its peer, where sleeps last so long.
SpinBudget OnSharedCore(int64_t slept_ns = 5'000) {
  SpinBudget budget;
  FailUntilGone(budget);
  FailProbe(budget, slept_ns);
  return budget;
}

TEST(SpinBudget, SpinsOnWhereASleepIsQuickerThanAProbe) {
  SpinBudget budget = OnSharedCore();
  EXPECT_EQ(budget.ForThisWait(), kParting);
  // What the waits took is gone from it.
  constexpr int64_t kTurnNs = 3'000'000;
  for (int64_t left = SpinBudget::kPartingNs - kTurnNs; left > 0;
       left -= kTurnNs) {
    budget.Paid(kFree + kTurnNs);
    EXPECT_EQ(budget.ForThisWait(),
              kFree + std::min(left, SpinBudget::kMostSavingsNs));
  }
}

TEST(SpinBudget, KeepsTheCoreToBeParted) {
  SpinBudget budget = OnSharedCore();
  for (int i = 0; i < 3; ++i) budget.Paid(kFree + 30'000);
  EXPECT_EQ(budget.ForThisWait(), kParting);
  EXPECT_FALSE(budget.IsLong());
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
  // Sleeps may take as long as ever there.
  budget.Paid(kFree + 150'000);
  EXPECT_GT(budget.ForThisWait(), kFree + 150'000);
  // As it paid, it is tried again as soon as they are on one core again.
  FailUntilGone(budget);
  FailProbe(budget, 5'000);
  EXPECT_EQ(budget.ForThisWait(), kParting);
}

TEST(SpinBudget, SeesThatTheyArePartedByAnswersThatTakeTheirTime) {
  SpinBudget budget = OnSharedCore(28'000);
  for (int i = 0; i < 64; ++i) {
    EXPECT_GT(budget.ForThisWait(), kFree + SpinBudget::kLongestNs);
    budget.Paid(kFree + 17'000);
  }
  EXPECT_EQ(budget.ForThisWait(), kFree + 34'000);
}

TEST(SpinBudget, AnswersThatTakeAsLongAsSleepsDoNotSaySo) {
  SpinBudget budget = OnSharedCore(8'000);
  for (int i = 0; i < 74'990; ++i) budget.Paid(kFree + 8'000);
  EXPECT_EQ(budget.ForThisWait(), kFree + 80'000);
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
