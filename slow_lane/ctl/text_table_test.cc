#include "slow_lane/ctl/text_table.h"

#include <gtest/gtest.h>

#include <limits>

namespace tandem::slow_lane {
namespace {

TEST(TextTable, ColumnsAreAsWideAsTheirWidestCell) {
  TextTable table({"RUN", ">STEPS", "X"});
  table.Add({"a", "1,000,000", "y"});
  table.Add({"long", "2", ""});
  EXPECT_EQ(table.ToText(),
            "RUN       STEPS  X\n"
            "a     1,000,000  y\n"
            "long          2\n");
}

TEST(TextTable, EmptyColumnsAreLeftOut) {
  TextTable table({"RUN", "BAD", "END"});
  table.Add({"a", "", "b"});
  EXPECT_EQ(table.ToText(), "RUN  END\na    b\n");
}

TEST(TextTable, CountsCharactersNotBytes) {
  TextTable table({"N", "X"});
  table.Add({"\u00e4\u00f6", "1"});
  table.Add({"abc", "2"});
  EXPECT_EQ(table.ToText(), "N    X\n\u00e4\u00f6   1\nabc  2\n");
}

TEST(Texts, NumbersAsPeopleReadThem) {
  EXPECT_EQ(CountText(0), "0");
  EXPECT_EQ(CountText(999), "999");
  EXPECT_EQ(CountText(1'234'567), "1,234,567");
  EXPECT_EQ(RateText(0), "0");
  EXPECT_EQ(RateText(0.25), "0.25");
  EXPECT_EQ(RateText(12.34), "12.3");
  EXPECT_EQ(RateText(1234.5), "1,235");
  EXPECT_EQ(RateText(std::numeric_limits<double>::quiet_NaN()), "0");
}

TEST(Texts, AgesHaveTheirTwoLargestUnits) {
  EXPECT_EQ(AgeText(-5), "0 s");
  EXPECT_EQ(AgeText(59.9), "59 s");
  EXPECT_EQ(AgeText(60), "1 min");
  EXPECT_EQ(AgeText(3 * 3600 + 5 * 60), "3 h 5 min");
  EXPECT_EQ(AgeText(2 * 86400 + 4 * 3600), "2 d 4 h");
}

TEST(Texts, ABarIsFullOnlyAtItsEnd) {
  EXPECT_EQ(BarText(0, 4), "[----]");
  EXPECT_EQ(BarText(0.5, 4), "[##--]");
  EXPECT_EQ(BarText(0.999, 4), "[###-]");
  EXPECT_EQ(BarText(1, 4), "[####]");
  EXPECT_EQ(BarText(7, 4), "[####]");
  EXPECT_EQ(BarText(std::numeric_limits<double>::quiet_NaN(), 4), "[----]");
}

TEST(Texts, OneLineSteersNoTerminal) {
  EXPECT_EQ(OneLine("a\nb\x1b[31m", 80), "a\\x0ab\\x1b[31m");
  EXPECT_EQ(OneLine("abcdef", 6), "abcdef");
  EXPECT_EQ(OneLine("abcdefg", 6), "abc...");
  EXPECT_EQ(OneLine("\u00e4\u00f6\u00fc\u00e4\u00f6", 4), "\u00e4...");
}

}  // namespace
}  // namespace tandem::slow_lane
