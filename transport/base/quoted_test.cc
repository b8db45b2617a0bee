#include "transport/base/quoted.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"

namespace tandem {
namespace {

TEST(Quoted, WhatIsShortIsThereAsAWhole) {
  EXPECT_EQ(Quoted(""), "''");
  EXPECT_EQ(Quoted("agent_0"), "'agent_0'");
  EXPECT_EQ(Quoted(std::string(80, 'x')).size(), 82u);
}

TEST(Quoted, OfWhatIsLongTheBeginningIs) {
  const std::string cut = Quoted("y" + std::string(1 << 20, 'x'));
  EXPECT_LT(cut.size(), 120u);
  EXPECT_TRUE(absl::StartsWith(cut, "'yxx"));
  EXPECT_TRUE(absl::StrContains(cut, "1048577 bytes")) << cut;
}

TEST(Quoted, NoCharacterIsCut) {
  std::string text(79, 'x');
  text += "\u20ac, of three bytes";
  EXPECT_TRUE(absl::StartsWith(Quoted(text), "'" + std::string(79, 'x') + "'"));
}

}  // namespace
}  // namespace tandem
