#include "viz/core/hud.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tandem {
namespace {

TEST(Hud, HasTheSeedsThreeLines) {
  EXPECT_EQ(HudText(1.005, -1234.5678, 60.04),
            "reward: 1.00\nreturn: -1234.57\nstep/sec: 60.0");
}

TEST(Hud, PrintsOddNumbersAsPythonDoes) {
  EXPECT_EQ(HudText(-NAN, INFINITY, -INFINITY),
            "reward: nan\nreturn: inf\nstep/sec: -inf");
  EXPECT_EQ(HudText(-0.0, -0.001, 0),
            "reward: -0.00\nreturn: -0.00\nstep/sec: 0.0");
}

TEST(Hud, HasRoomForAnyNumber) {
  EXPECT_EQ(HudText(1e308, -1e308, 9.5e14),
            "reward: 1e+308\nreturn: -1e+308\nstep/sec: 950000000000000.0");
}

TEST(Hud, SaysAgesInTheUnitThatFits) {
  constexpr int64_t kSecond = 1'000'000'000;
  EXPECT_EQ(AgeText(0), "0 ms");
  EXPECT_EQ(AgeText(16'400'000), "16 ms");
  EXPECT_EQ(AgeText(999'400'000), "999 ms");
  EXPECT_EQ(AgeText(999'600'000), "1.0 s");
  EXPECT_EQ(AgeText(2'340'000'000), "2.3 s");
  EXPECT_EQ(AgeText(99 * kSecond), "99.0 s");
  EXPECT_EQ(AgeText(120 * kSecond), "2 min");
  EXPECT_EQ(AgeText(5'999 * kSecond), "99 min");
  EXPECT_EQ(AgeText(7'200 * kSecond), "2 h");
}

TEST(Hud, GroupsDigitsByThree) {
  EXPECT_EQ(CountText(0), "0");
  EXPECT_EQ(CountText(999), "999");
  EXPECT_EQ(CountText(1000), "1,000");
  EXPECT_EQ(CountText(1234567), "1,234,567");
}

}  // namespace
}  // namespace tandem
