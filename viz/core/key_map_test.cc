#include "viz/core/key_map.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace tandem {
namespace {

TEST(KeyMap, FindsAnActionByAnyOfItsKeys) {
  EXPECT_EQ(ActionOf("Space"), Action::kPause);
  EXPECT_EQ(ActionOf("ctrl+w"), Action::kCloseTab);
  EXPECT_EQ(ActionOf("F1"), Action::kHelp);
  EXPECT_EQ(ActionOf("?"), Action::kHelp);
}

TEST(KeyMap, HasNoActionForOtherKeys) {
  EXPECT_FALSE(ActionOf("").has_value());
  EXPECT_FALSE(ActionOf("Ctrl+Alt+X").has_value());
  EXPECT_FALSE(ActionOf("F 0").has_value());
}

TEST(KeyMap, GivesNoKeyAndNoActionTwice) {
  std::set<std::string> keys;
  std::set<Action> actions;
  for (const KeyRow& row : KeyTable()) {
    EXPECT_TRUE(actions.insert(row.action).second) << row.does;
    for (const absl::string_view key : absl::StrSplit(row.keys, ' ')) {
      EXPECT_TRUE(keys.insert(absl::AsciiStrToLower(key)).second) << key;
    }
  }
}

TEST(KeyMap, ExplainsEveryRow) {
  const std::string text = KeyHelpText(2);
  for (const KeyRow& row : KeyTable()) {
    EXPECT_TRUE(absl::StrContains(text, row.does));
  }
}

}  // namespace
}  // namespace tandem
