#include "gateway/info_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tandem::gateway {
namespace {

using testing::ElementsAre;

std::vector<std::string> InfoNames(absl::string_view description,
                                   size_t columns) {
  return StepNamesOf(description, columns).infos;
}

bool HasReward(absl::string_view description) {
  return StepNamesOf(description, 0).has_reward;
}

TEST(InfoNames, NumbersHaveTheirNamesAndArraysOneForEachItem) {
  EXPECT_THAT(InfoNames(R"({"infos": [{"name": "x", "length": null},
                              {"name": "force", "length": 2},
                              {"name": "y", "length": null}]})",
                        4),
              ElementsAre("x", "force_0", "force_1", "y"));
}

TEST(InfoNames, ColumnsWithoutANameHaveTheirNumber) {
  EXPECT_THAT(InfoNames("", 1), ElementsAre("info_0"));
  EXPECT_THAT(InfoNames("[1]", 1), ElementsAre("info_0"));
  EXPECT_THAT(InfoNames(R"({"infos": 3})", 1), ElementsAre("info_0"));
  EXPECT_THAT(InfoNames(R"({"infos": [{"name": "x"}, {"name": 5}]})", 2),
              ElementsAre("x", "info_1"));
}

TEST(InfoNames, LongArraysEndAtTheLastColumn) {
  EXPECT_THAT(
      InfoNames(R"({"infos": [{"name": "x", "length": 18446744073709551615}]})",
                2),
      ElementsAre("x_0", "x_1"));
  EXPECT_TRUE(InfoNames(R"({"infos": [{"name": "x"}]})", 0).empty());
}

TEST(HasReward, OnlyFalseSaysThatThereIsNone) {
  EXPECT_FALSE(HasReward(R"({"has_rewards": false})"));
  for (const char* const text :
       {"", "[false]", "{}", R"({"has_rewards": true})",
        R"({"has_rewards": 0})", R"({"has_rewards": null})"}) {
    EXPECT_TRUE(HasReward(text)) << text;
  }
}

}  // namespace
}  // namespace tandem::gateway
