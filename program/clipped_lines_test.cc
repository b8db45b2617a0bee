#include "program/clipped_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

TEST(ClippedLines, TextThatFitsIsShownWhole) {
  EXPECT_THAT(ClippedLines("ab\ncd\n", 2, 2), ElementsAre("ab", "cd"));
  EXPECT_THAT(ClippedLines("ab\n\ncd\n", 9, 9), ElementsAre("ab", "", "cd"));
}

TEST(ClippedLines, LongLinesAreCutBetweenCharacters) {
  EXPECT_THAT(
      ClippedLines("\u00e4\u00e4\u00e4\u00e4\u00e4\nabcd\nabcde\n", 3, 4),
      ElementsAre("\u00e4...", "abcd", "a..."));
  EXPECT_THAT(ClippedLines("abcdef\n", 1, 3), ElementsAre("..."));
  EXPECT_THAT(ClippedLines("abcdef\n", 1, 2), ElementsAre(".."));
  EXPECT_THAT(ClippedLines("abcdef\n", 1, 0), ElementsAre(""));
}

TEST(ClippedLines, TheLastLineSaysHowManyAreMissing) {
  EXPECT_THAT(ClippedLines("a\nb\nc\nd\n", 3, 80),
              ElementsAre("a", "b", StartsWith("... 2 more lines")));
  EXPECT_THAT(ClippedLines("a\nb\n", 1, 5), ElementsAre("... 2"));
  EXPECT_THAT(ClippedLines("a\nb\n", 0, 5), IsEmpty());
}

}  // namespace
}  // namespace tandem
