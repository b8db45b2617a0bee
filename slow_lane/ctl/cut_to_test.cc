#include "slow_lane/ctl/cut_to.h"

#include <gtest/gtest.h>

namespace tandem::slow_lane {
namespace {

TEST(CutTo, TextThatFitsIsShownWhole) {
  EXPECT_EQ(CutTo("ab\ncd\n", 2, 2), "ab\x1b[K\r\ncd\x1b[K");
  EXPECT_EQ(CutTo("ab\n\ncd\n", 9, 9), "ab\x1b[K\r\n\x1b[K\r\ncd\x1b[K");
}

TEST(CutTo, LongLinesAreCutBetweenCharacters) {
  EXPECT_EQ(CutTo("\u00e4\u00e4\u00e4\u00e4\u00e4\n", 1, 4), "\u00e4...\x1b[K");
}

TEST(CutTo, TheLastLineSaysHowManyAreMissing) {
  EXPECT_EQ(CutTo("a\nb\nc\nd\n", 3, 80),
            "a\x1b[K\r\nb\x1b[K\r\n... 2 more lines than the window has\x1b[K");
  EXPECT_EQ(CutTo("a\nb\n", 0, 5), "");
}

}  // namespace
}  // namespace tandem::slow_lane
