#include "viz/inspect/clipped_to.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(ClippedTo, TextThatFitsIsShownWhole) {
  EXPECT_EQ(ClippedTo("ab\ncd\n", 2, 2), "ab\x1b[K\r\ncd\x1b[K");
  EXPECT_EQ(ClippedTo("ab\n\ncd\n", 9, 9), "ab\x1b[K\r\n\x1b[K\r\ncd\x1b[K");
}

TEST(ClippedTo, LongLinesAreCut) {
  EXPECT_EQ(ClippedTo("abcdef\n", 1, 3), "abc\x1b[K");
}

TEST(ClippedTo, TheLastLineSaysHowManyAreMissing) {
  const std::string clipped = ClippedTo("a\nb\nc\nd\n", 3, 80);
  EXPECT_EQ(clipped.find("a\x1b[K\r\nb\x1b[K\r\n... 2 more lines"), 0u);
  EXPECT_EQ(ClippedTo("a\nb\n", 1, 5), "... 2\x1b[K");
  EXPECT_EQ(ClippedTo("a\nb\n", 0, 5), "");
}

}  // namespace
}  // namespace tandem
