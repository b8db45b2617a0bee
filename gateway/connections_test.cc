#include "gateway/connections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/status/status.h"

namespace tandem::gateway {
namespace {

using testing::ElementsAre;

TEST(Connections, TermsBelongToTheConnectionUntilItsEnd) {
  Connections connections;
  connections.Begin("a");
  connections.Begin("b");
  EXPECT_EQ(*connections.BeginStep("a"), nullptr);
  const auto first = connections.BeginTask("a", {"x"});
  const auto other = connections.BeginTask("b", {"y"});
  ASSERT_TRUE(first.ok() && other.ok());
  EXPECT_NE(*first, *other);
  EXPECT_THAT(**connections.BeginStep("a"), ElementsAre("x"));
  ASSERT_TRUE(connections.BeginTask("a", {"x", "z"}).ok());
  EXPECT_THAT(**connections.BeginStep("a"), ElementsAre("x", "z"));
  connections.End("a");
  connections.Begin("a");
  EXPECT_EQ(*connections.BeginStep("a"), nullptr);
  EXPECT_THAT(**connections.BeginStep("b"), ElementsAre("y"));
}

TEST(Connections, EndReportsTheLastThatHasStepped) {
  Connections connections;
  for (const char* const peer : {"a", "b", "never stepped"}) {
    connections.Begin(peer);
  }
  ASSERT_TRUE(connections.BeginStep("a").ok());
  ASSERT_TRUE(connections.BeginStep("b").ok());
  EXPECT_FALSE(connections.End("never stepped"));
  EXPECT_FALSE(connections.End("a"));
  EXPECT_TRUE(connections.AnySteps());
  EXPECT_TRUE(connections.End("b"));
  EXPECT_FALSE(connections.AnySteps());
}

TEST(Connections, CallsOfAnEndedConnectionAreCancelled) {
  Connections connections;
  connections.Begin("a");
  EXPECT_FALSE(connections.End("a"));
  EXPECT_TRUE(absl::IsCancelled(connections.BeginStep("a").status()));
  EXPECT_TRUE(absl::IsCancelled(connections.BeginTask("a", {}).status()));
  EXPECT_FALSE(connections.AnySteps());
  EXPECT_FALSE(connections.End("a"));
}

}  // namespace
}  // namespace tandem::gateway
