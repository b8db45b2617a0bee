#include "viz/core/quantities.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tandem {
namespace {

TEST(Quantities, DurationsHaveThreeDigits) {
  EXPECT_EQ(DurationText(0), "0 ns");
  EXPECT_EQ(DurationText(128), "128 ns");
  EXPECT_EQ(DurationText(999.6), "1.00 us");
  EXPECT_EQ(DurationText(12'340), "12.3 us");
  EXPECT_EQ(DurationText(552'300), "552 us");
  EXPECT_EQ(DurationText(999'600), "1.00 ms");
  EXPECT_EQ(DurationText(8.589e9), "8.59 s");
  EXPECT_EQ(DurationText(123e9), "123 s");
}

TEST(Quantities, AgesHaveTheirTwoLargestUnits) {
  EXPECT_EQ(AgeText(0.4), "0 s");
  EXPECT_EQ(AgeText(59), "59 s");
  EXPECT_EQ(AgeText(61), "1 min 1 s");
  EXPECT_EQ(AgeText(7'385), "2 h 3 min");
  EXPECT_EQ(AgeText(90'000), "1 d 1 h");
}

TEST(Quantities, BytesHaveTheUnitThatFits) {
  EXPECT_EQ(BytesText(0), "0 bytes");
  EXPECT_EQ(BytesText(1023), "1023 bytes");
  EXPECT_EQ(BytesText(8192), "8.00 KiB");
  EXPECT_EQ(BytesText(328'832), "321 KiB");
  EXPECT_EQ(BytesText(1'048'575), "1.00 MiB");
  EXPECT_EQ(BytesText(~uint64_t{0}), "16.0 EiB");
}

TEST(Quantities, RoundsAnyNumber) {
  EXPECT_EQ(RoundedText(1234.6), "1,235");
  EXPECT_EQ(RoundedText(3.7e19), "3.7e+19");
  EXPECT_EQ(RoundedText(-1), "-1");
}

TEST(Quantities, CountsHaveCommas) {
  EXPECT_EQ(CountText(0), "0");
  EXPECT_EQ(CountText(999), "999");
  EXPECT_EQ(CountText(1000), "1,000");
  EXPECT_EQ(CountText(1234567), "1,234,567");
}

TEST(Hud, HasThreeLines) {
  EXPECT_EQ(HudText(1.005, -1234.5678, 60.04),
            "reward: 1.00\nreturn: -1234.57\nstep/sec: 60.0");
}

TEST(Hud, PrintsUnknownNumbersAsDashesAndInfinitiesAsPythonDoes) {
  EXPECT_EQ(HudText(-NAN, INFINITY, -INFINITY),
            "reward: -\nreturn: inf\nstep/sec: -inf");
  EXPECT_EQ(HudText(-0.0, -0.001, 0),
            "reward: -0.00\nreturn: -0.00\nstep/sec: 0.0");
}

TEST(Hud, FormatsAnyNumber) {
  EXPECT_EQ(HudText(1e308, -1e308, 9.5e14),
            "reward: 1e+308\nreturn: -1e+308\nstep/sec: 950000000000000.0");
}

TEST(Hud, ShortAgesHaveOneUnit) {
  constexpr int64_t kSecond = 1'000'000'000;
  EXPECT_EQ(ShortAgeText(0), "0 ms");
  EXPECT_EQ(ShortAgeText(16'400'000), "16 ms");
  EXPECT_EQ(ShortAgeText(999'400'000), "999 ms");
  EXPECT_EQ(ShortAgeText(999'600'000), "1.0 s");
  EXPECT_EQ(ShortAgeText(2'340'000'000), "2.3 s");
  EXPECT_EQ(ShortAgeText(99 * kSecond), "99.0 s");
  EXPECT_EQ(ShortAgeText(120 * kSecond), "2 min");
  EXPECT_EQ(ShortAgeText(5'999 * kSecond), "99 min");
  EXPECT_EQ(ShortAgeText(7'200 * kSecond), "2 h");
}

}  // namespace
}  // namespace tandem
