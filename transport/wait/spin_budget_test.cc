#include "transport/wait/spin_budget.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tandem {
namespace {

constexpr int64_t kMost = SpinBudget::kMostSavingNs;

// Simulates a wait whose answer comes after `spin_ns` if the side spins, and
// after `sleep_ns` if it sleeps at once. Returns whether it slept at once.
bool WaitOnce(SpinBudget& budget, int64_t spin_ns, int64_t sleep_ns) {
  const int64_t may_spin_ns = budget.ForThisWait();
  if (may_spin_ns == 0) {
    budget.Slept(sleep_ns);
  } else if (may_spin_ns < spin_ns) {
    budget.Miss();
  } else {
    budget.Hit(spin_ns);
  }
  return may_spin_ns == 0;
}

// Causes enough misses that waits sleep at once.
void MissUntilAsleep(SpinBudget& budget) {
  for (int i = 0; i < 2; ++i) budget.Miss();
}

// Returns a budget whose waits sleep at once, for `sleep_ns` each.
SpinBudget AsleepFor(int64_t sleep_ns) {
  SpinBudget budget;
  MissUntilAsleep(budget);
  for (int i = 0; i < 100; ++i) budget.Slept(sleep_ns);
  return budget;
}

// Returns the number of waits that sleep at once before one probes.
int WaitsUntilProbe(SpinBudget& budget) {
  int waits = 0;
  while (budget.ForThisWait() == 0 && waits < 10'000) ++waits;
  return waits;
}

// Lets the next probe miss. Returns whether a loan is then due.
bool LoanIsDue(SpinBudget& budget) {
  WaitsUntilProbe(budget);
  return budget.Miss();
}

TEST(SpinBudget, StartsWithTheLongestSpin) {
  EXPECT_EQ(SpinBudget().ForThisWait(), SpinBudget::kLongestNs);
  EXPECT_EQ(SpinBudget(50'000, 0).ForThisWait(), 50'000);
}

TEST(SpinBudget, SleepsAfterMissesInARow) {
  SpinBudget budget;
  budget.Miss();
  EXPECT_GT(budget.ForThisWait(), 0);
  budget.Miss();
  EXPECT_EQ(budget.ForThisWait(), 0);
}

TEST(SpinBudget, KeepsSpinningAfterASingleMiss) {
  SpinBudget budget;
  for (int i = 0; i < 100; ++i) {
    budget.Miss();
    ASSERT_GT(budget.ForThisWait(), 0);
    budget.Hit(0);
  }
}

TEST(SpinBudget, SpinsForAsLongAsSleepsHaveLasted) {
  SpinBudget budget = AsleepFor(60'000);
  WaitsUntilProbe(budget);
  EXPECT_NEAR(static_cast<double>(budget.ForThisWait()), 60'000, 10);
}

TEST(SpinBudget, SpinsForTheLongestTimeAtMostWithoutASaving) {
  SpinBudget budget = AsleepFor(1'000'000'000);
  WaitsUntilProbe(budget);
  EXPECT_EQ(budget.ForThisWait(), SpinBudget::kLongestNs);
}

TEST(SpinBudget, SpinsForTheShortestTimeAtLeast) {
  SpinBudget budget = AsleepFor(100);
  WaitsUntilProbe(budget);
  EXPECT_EQ(budget.ForThisWait(), SpinBudget::kShortestNs);
}

TEST(SpinBudget, AnswerSoonerThanASleepAddsTheDifferenceToTheSaving) {
  SpinBudget budget;
  budget.Hit(100'000);
  EXPECT_EQ(budget.ForThisWait(), 2 * SpinBudget::kLongestNs - 100'000);
}

TEST(SpinBudget, ALaterAnswerSpendsTheDifference) {
  SpinBudget budget;
  budget.Hit(0);
  budget.Hit(SpinBudget::kLongestNs + 1'000);
  EXPECT_EQ(budget.ForThisWait(), 2 * SpinBudget::kLongestNs - 1'000);
}

TEST(SpinBudget, SavingEndsAtItsLimit) {
  SpinBudget budget;
  for (int i = 0; i < 1000; ++i) budget.Hit(0);
  EXPECT_EQ(budget.ForThisWait(), SpinBudget::kLongestNs + kMost);
}

TEST(SpinBudget, AMissEndsTheSaving) {
  SpinBudget budget;
  budget.Hit(0);
  budget.Miss();
  EXPECT_EQ(budget.ForThisWait(), SpinBudget::kLongestNs);
}

TEST(SpinBudget, WithoutASavingNoSpinIsLongerThanTheLongest) {
  SpinBudget budget(50'000, /*most_saving_ns=*/0);
  for (int i = 0; i < 1000; ++i) budget.Hit(0);
  EXPECT_EQ(budget.ForThisWait(), 50'000);
}

// For any peer, waiting takes at most about twice the time of sleeping.
TEST(SpinBudget, SpinningCostsAtMostWhatSleepingDoes) {
  constexpr int64_t kSleep = 10'000;
  for (const int late_every : {2, 3, 10, 100, 1000}) {
    SpinBudget budget = AsleepFor(kSleep);
    int64_t total = 0;
    constexpr int kWaits = 100'000;
    for (int i = 0; i < kWaits; ++i) {
      const int64_t needed = i % late_every == 0 ? 3'000'000 : 1'000;
      const int64_t may_spin = budget.ForThisWait();
      if (may_spin == 0) {
        budget.Slept(kSleep);
        total += kSleep;
      } else if (may_spin >= needed) {
        budget.Hit(needed);
        total += needed;
      } else {
        budget.Miss();
        total += may_spin + kSleep;
      }
    }
    EXPECT_LE(total, int64_t{2} * kWaits * kSleep) << late_every;
  }
}

TEST(SpinBudget, LongWaitsSleepOnceIn257) {
  SpinBudget budget;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 256; ++i) {
      ASSERT_FALSE(WaitOnce(budget, 100'000, 150'000));
    }
    ASSERT_TRUE(WaitOnce(budget, 100'000, 150'000));
  }
}

TEST(SpinBudget, AQuickAnswerRestartsThatCount) {
  SpinBudget budget;
  for (int i = 0; i < 4000; ++i) {
    ASSERT_FALSE(WaitOnce(budget, i % 256 == 0 ? 1000 : 100'000, 150'000));
  }
}

TEST(SpinBudget, SleepsWhereSleepsAreShorterThanSpins) {
  SpinBudget budget;
  int sleeps = 0;
  for (int i = 0; i < 10'000; ++i) sleeps += WaitOnce(budget, 130'000, 98'000);
  EXPECT_GT(sleeps, 6'000);
}

TEST(SpinBudget, IsLongAfterTwoLongAnswers) {
  SpinBudget budget;
  budget.Hit(100'000);
  EXPECT_FALSE(budget.IsLong());
  budget.Hit(100'000);
  EXPECT_TRUE(budget.IsLong());
  budget.Hit(1'000);
  EXPECT_FALSE(budget.IsLong());
}

TEST(SpinBudget, ProbesMoreRarelyAfterEachMiss) {
  SpinBudget budget;
  MissUntilAsleep(budget);
  for (const int waits : {15, 31, 63, 127, 255, 511, 1023, 1023, 1023}) {
    EXPECT_EQ(WaitsUntilProbe(budget), waits);
    budget.Miss();
  }
}

TEST(SpinBudget, AProbeThatIsAHitRestartsSpinning) {
  SpinBudget budget;
  for (int round = 0; round < 3; ++round) {
    MissUntilAsleep(budget);
    EXPECT_EQ(WaitsUntilProbe(budget), 15);
    budget.Hit(0);
    EXPECT_GT(budget.ForThisWait(), 0);
  }
}

TEST(SpinBudget, AProbeWithoutOutcomeIsRepeated) {
  SpinBudget budget;
  MissUntilAsleep(budget);
  WaitsUntilProbe(budget);
  EXPECT_GT(budget.ForThisWait(), 0);
  EXPECT_GT(budget.ForThisWait(), 0);
}

TEST(SpinBudget, ALoanIsDueAfterAMissedProbeWhereSleepsAreQuick) {
  SpinBudget budget = AsleepFor(2'000);
  EXPECT_TRUE(LoanIsDue(budget));
}

TEST(SpinBudget, NoLoanIsDueWhereSleepsAreLonger) {
  SpinBudget budget = AsleepFor(3'000);
  EXPECT_FALSE(LoanIsDue(budget));
}

TEST(SpinBudget, LoanLastsForItsTimeInTurnsOfTheMostSaving) {
  SpinBudget budget = AsleepFor(2'000);
  ASSERT_TRUE(LoanIsDue(budget));
  budget.TakeLoan();
  int64_t spun = 0;
  while (budget.ForThisWait() == SpinBudget::kShortestNs + kMost) {
    budget.Hit(8'000'000);
    spun += 8'000'000;
    ASSERT_LE(spun, SpinBudget::kLoanNs);
  }
  EXPECT_GE(spun, SpinBudget::kLoanNs - kMost - 8'000'000);
}

TEST(SpinBudget, QuickAnswersDoNotAddToALoan) {
  SpinBudget budget = AsleepFor(2'000);
  budget.TakeLoan();
  for (int i = 0; i < 100'000; ++i) budget.Hit(0);
  budget.Hit(SpinBudget::kLoanNs + 2'000);
  EXPECT_LE(budget.ForThisWait(), SpinBudget::kShortestNs + 10);
}

TEST(SpinBudget, TheNextLoanIsDueAfterFourTimesAsLongAsleep) {
  SpinBudget budget = AsleepFor(2'000);
  budget.TakeLoan();
  MissUntilAsleep(budget);
  EXPECT_FALSE(LoanIsDue(budget));
  const int sleeps = static_cast<int>(4 * SpinBudget::kLoanNs / 2'000);
  for (int i = 0; i < sleeps - 1; ++i) budget.Slept(2'000);
  EXPECT_FALSE(LoanIsDue(budget));
  budget.Slept(2'000);
  EXPECT_TRUE(LoanIsDue(budget));
}

}  // namespace
}  // namespace tandem
