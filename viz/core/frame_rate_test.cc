#include <gtest/gtest.h>

#include "viz/core/freshness.h"

namespace tandem {
namespace {

constexpr int64_t kMs = 1'000'000;

TEST(FrameRate, IsZeroBeforeTwoFrames) {
  FrameRate rate;
  EXPECT_EQ(rate.PerSecondAt(0), 0);
  rate.Add(0);
  EXPECT_EQ(rate.PerSecondAt(0), 0);
}

TEST(FrameRate, MeasuresASteadyRate) {
  for (const int64_t period : {5 * kMs, 16 * kMs, 300 * kMs, 3'000 * kMs}) {
    FrameRate rate;
    int64_t now = 0;
    for (int i = 0; i < 1000; ++i) rate.Add(now += period);
    EXPECT_DOUBLE_EQ(rate.PerSecondAt(now), 1e9 / static_cast<double>(period));
  }
}

TEST(FrameRate, FollowsAChangeWithinASecond) {
  FrameRate rate;
  int64_t now = 0;
  for (int i = 0; i < 100; ++i) rate.Add(now += 100 * kMs);
  for (int i = 0; i < 60; ++i) rate.Add(now += 20 * kMs);
  EXPECT_DOUBLE_EQ(rate.PerSecondAt(now), 50);
}

TEST(FrameRate, FallsToZeroWhenFramesStop) {
  FrameRate rate;
  rate.Add(0);
  rate.Add(16 * kMs);
  EXPECT_DOUBLE_EQ(rate.PerSecondAt(32 * kMs), 62.5);  // Not overdue yet.
  EXPECT_DOUBLE_EQ(rate.PerSecondAt(116 * kMs), 10);
  EXPECT_DOUBLE_EQ(rate.PerSecondAt(1'016 * kMs), 1);
  EXPECT_EQ(rate.PerSecondAt(2'100 * kMs), 0);
}

}  // namespace
}  // namespace tandem
