#include "slow_lane/ctl/csv.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>

namespace tandem::slow_lane {
namespace {

std::string OneText(absl::string_view text) {
  std::string csv;
  CsvRow(&csv).Text(text).Finish();
  return csv;
}

TEST(Csv, QuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(OneText("plain text; 'x'"), "plain text; 'x'\n");
  EXPECT_EQ(OneText("a,b"), "\"a,b\"\n");
  EXPECT_EQ(OneText("say \"hi\""), "\"say \"\"hi\"\"\"\n");
  EXPECT_EQ(OneText("\""), "\"\"\"\"\n");
  EXPECT_EQ(OneText("two\nlines"), "\"two\nlines\"\n");
  EXPECT_EQ(OneText("a\rb"), "\"a\rb\"\n");
  EXPECT_EQ(OneText(""), "\n");
}

TEST(Csv, PutsCommasBetween) {
  std::string csv = "head\n";
  CsvRow(&csv)
      .Text("")
      .Count(18446744073709551615u)
      .Flag(false)
      .Text("")
      .Finish();
  EXPECT_EQ(csv, "head\n,18446744073709551615,false,\n");
}

TEST(Csv, NumbersReadBackTheSame) {
  for (const double number :
       {0.1, 1.0 / 3, -0.0, 5e-324, 1.7976931348623157e308, 123456789.125}) {
    std::string csv;
    CsvRow(&csv).Number(number).Finish();
    EXPECT_EQ(std::strtod(csv.c_str(), nullptr), number) << csv;
  }
}

TEST(Csv, InfinityAndNanAreWords) {
  std::string csv;
  CsvRow(&csv)
      .Number(std::numeric_limits<double>::infinity())
      .Number(-std::numeric_limits<double>::infinity())
      .Number(std::numeric_limits<double>::quiet_NaN())
      .Finish();
  EXPECT_EQ(csv, "inf,-inf,nan\n");
}

}  // namespace
}  // namespace tandem::slow_lane
