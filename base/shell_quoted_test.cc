#include "base/shell_quoted.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(ShellQuoted, KeepsAPlainPathUnquoted) {
  EXPECT_EQ(ShellQuoted("/tmp/runs-1/a_b.c"), "/tmp/runs-1/a_b.c");
}

TEST(ShellQuoted, QuotesSpecialCharacters) {
  EXPECT_EQ(ShellQuoted("/tmp/my runs"), "'/tmp/my runs'");
  EXPECT_EQ(ShellQuoted("$HOME"), "'$HOME'");
  EXPECT_EQ(ShellQuoted("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellQuoted(""), "''");
}

}  // namespace
}  // namespace tandem
