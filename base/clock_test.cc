#include "base/clock.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace tandem {
namespace {

TEST(MonotonicNanos, NeverGoesBack) {
  int64_t last = MonotonicNanos();
  EXPECT_GT(last, 0);
  for (int i = 0; i < 1000; ++i) {
    const int64_t now = MonotonicNanos();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(Deadline, NowHasPassedFromTheStart) {
  EXPECT_TRUE(Deadline::Now().PassedAt(0));
  EXPECT_TRUE(Deadline::Now().PassedAt(MonotonicNanos()));
  EXPECT_NE(Deadline::Now(), Deadline::Infinite());
}

TEST(Deadline, InfiniteNeverPasses) {
  EXPECT_FALSE(Deadline::Infinite().PassedAt(MonotonicNanos()));
  EXPECT_FALSE(
      Deadline::Infinite().PassedAt(std::numeric_limits<int64_t>::max() - 1));
}

TEST(Deadline, PassesAtItsExactNanosecond) {
  const Deadline deadline = Deadline::After(1);
  EXPECT_FALSE(deadline.PassedAt(deadline.at_ns() - 1));
  EXPECT_TRUE(deadline.PassedAt(deadline.at_ns()));
}

TEST(Deadline, AfterCountsFromTheCall) {
  const int64_t before = MonotonicNanos();
  const Deadline deadline = Deadline::After(2.5);
  const int64_t after = MonotonicNanos();
  EXPECT_GE(deadline.at_ns(), before + 2'500'000'000);
  EXPECT_LE(deadline.at_ns(), after + 2'500'000'000);
}

TEST(Deadline, ZeroAndNegativeTimeOutsHavePassed) {
  for (const double secs :
       {0.0, -0.0, -1e-9, -1e300, -std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(Deadline::After(secs), Deadline::Now()) << secs;
  }
}

TEST(Deadline, IsInfiniteBeyondACenturyOrForNan) {
  for (const double secs : {3.2e9, 1e18, std::numeric_limits<double>::max(),
                            std::numeric_limits<double>::infinity(),
                            std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(Deadline::After(secs), Deadline::Infinite()) << secs;
  }
  EXPECT_NE(Deadline::After(3.1e9), Deadline::Infinite());
  EXPECT_GT(Deadline::After(3.1e9).at_ns(), MonotonicNanos());
}

}  // namespace
}  // namespace tandem
