#include "engine_adapter/gateway/connections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "schema/layout/error_codes.h"
#include "transport/base/error.h"

namespace tandem::gateway {
namespace {

using testing::ElementsAre;

TEST(Connections, TermsBelongToTheConnectionUntilItsEnd) {
  Connections connections;
  EXPECT_EQ(connections.BeginStep("a"), nullptr);
  const auto first = connections.BeginTask("a", {"x"});
  const auto other = connections.BeginTask("b", {"y"});
  ASSERT_TRUE(first.ok() && other.ok());
  EXPECT_NE(*first, *other);
  EXPECT_THAT(*connections.BeginStep("a"), ElementsAre("x"));
  ASSERT_TRUE(connections.BeginTask("a", {"x", "z"}).ok());
  EXPECT_THAT(*connections.BeginStep("a"), ElementsAre("x", "z"));
  connections.End("a");
  EXPECT_EQ(connections.BeginStep("a"), nullptr);
  EXPECT_THAT(*connections.BeginStep("b"), ElementsAre("y"));
}

TEST(Connections, EndReportsTheLastThatHasStepped) {
  Connections connections;
  EXPECT_FALSE(connections.End("never stepped"));
  connections.BeginStep("a");
  connections.BeginStep("b");
  EXPECT_FALSE(connections.End("never stepped"));
  EXPECT_FALSE(connections.End("a"));
  EXPECT_TRUE(connections.AnySteps());
  EXPECT_TRUE(connections.End("b"));
  EXPECT_FALSE(connections.AnySteps());
}

TEST(Connections, TooManyTasksAreRefused) {
  Connections connections;
  for (size_t i = 0; i < Connections::kMostTasks; ++i) {
    ASSERT_TRUE(connections.BeginTask(absl::StrCat(i), {}).ok());
  }
  EXPECT_EQ(CodeOf(connections.BeginTask("one more", {}).status()),
            ErrorCode::kRingFull);
  EXPECT_TRUE(connections.BeginTask("0", {}).ok());
}

}  // namespace
}  // namespace tandem::gateway
