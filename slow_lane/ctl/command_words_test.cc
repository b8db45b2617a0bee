#include "slow_lane/ctl/command_words.h"

#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "absl/strings/match.h"

namespace tandem::slow_lane {
namespace {

constexpr FlagSpec kFlags[] = {
    {"name", "NAME"}, {"env", "NAME=VALUE", true}, {"all", ""}};

absl::StatusOr<CommandWords> Parse(std::vector<absl::string_view> words) {
  return ParseWords(words, kFlags);
}

TEST(CommandWords, TakesFlagsInBothForms) {
  const auto words =
      Parse({"a", "--name", "x", "--env=A=1", "b", "--env", "B=2", "--all"});
  ASSERT_TRUE(words.ok()) << words.status();
  EXPECT_EQ(words->words, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(words->Last("name"), "x");
  EXPECT_EQ(words->flags.at("env"), (std::vector<std::string>{"A=1", "B=2"}));
  EXPECT_TRUE(words->Has("all"));
  EXPECT_FALSE(words->behind.has_value());
}

TEST(CommandWords, AValueMayBeginWithADash) {
  const auto words = Parse({"--name", "-x", "--env=-y"});
  ASSERT_TRUE(words.ok()) << words.status();
  EXPECT_EQ(words->Last("name"), "-x");
  EXPECT_EQ(words->Last("env"), "-y");
}

TEST(CommandWords, KeepsAllBehindTwoDashes) {
  const auto words = Parse({"--", "python", "--name", "--help", "--"});
  ASSERT_TRUE(words.ok()) << words.status();
  EXPECT_EQ(words->behind,
            (std::vector<std::string>{"python", "--name", "--help", "--"}));
  EXPECT_FALSE(words->help);
}

TEST(CommandWords, ADashAloneIsAWord) {
  EXPECT_EQ(Parse({"-"})->words, std::vector<std::string>{"-"});
}

TEST(CommandWords, HelpWinsOverMistakes) {
  EXPECT_TRUE(Parse({"--nonsense", "-h"})->help);
  EXPECT_TRUE(Parse({"--name", "--help"})->help);
}

TEST(CommandWords, RefusesWhatItDoesNotKnow) {
  const auto words = Parse({"--nam", "x"});
  EXPECT_TRUE(absl::IsInvalidArgument(words.status()));
  EXPECT_TRUE(absl::StrContains(words.status().message(), "'--nam'"));
  EXPECT_TRUE(absl::StrContains(words.status().message(), "--name NAME"));
}

TEST(CommandWords, RefusesAFlagWithoutItsValue) {
  EXPECT_FALSE(Parse({"--name"}).ok());
  EXPECT_FALSE(Parse({"--name", "--", "x"}).ok());
  EXPECT_FALSE(Parse({"--all=yes"}).ok());
  EXPECT_EQ(Parse({"--name="})->Last("name"), "");
}

TEST(CommandWords, RefusesASecondValue) {
  EXPECT_FALSE(Parse({"--name", "a", "--name", "b"}).ok());
}

}  // namespace
}  // namespace tandem::slow_lane
