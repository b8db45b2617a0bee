#include "base/quoted.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace tandem {
namespace {

TEST(Quoted, QuotesShortText) {
  EXPECT_EQ(Quoted(""), "''");
  EXPECT_EQ(Quoted("agent_0"), "'agent_0'");
  EXPECT_EQ(Quoted(std::string(80, 'x')).size(), 82u);
}

TEST(Quoted, CutsLongText) {
  const std::string cut = Quoted("y" + std::string(1 << 20, 'x'));
  EXPECT_LT(cut.size(), 120u);
  EXPECT_TRUE(absl::StartsWith(cut, "'yxx"));
  EXPECT_TRUE(absl::StrContains(cut, "1048577 bytes")) << cut;
}

TEST(Quoted, EscapesControlCharacters) {
  EXPECT_EQ(Quoted("\x1b[31m\u202e\xff"), "'\\x1b[31m\\xe2\\x80\\xae\\xff'");
  EXPECT_EQ(Quoted(absl::string_view("a\0b", 3)), "'a\\x00b'");
}

TEST(Quoted, NoCharacterIsCut) {
  std::string text(79, 'x');
  text += "\u20ac, of three bytes";
  EXPECT_TRUE(absl::StartsWith(Quoted(text), "'" + std::string(79, 'x') + "'"));
}

}  // namespace
}  // namespace tandem
