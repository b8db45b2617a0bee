#include "engine_adapter/gateway/task_sessions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "schema/layout/error_codes.h"
#include "transport/base/error.h"

namespace tandem::gateway {
namespace {

using testing::ElementsAre;

TEST(TaskSessions, TermsBelongToTheConnectionUntilItsEnd) {
  TaskSessions sessions;
  EXPECT_EQ(sessions.RewardsOf("a"), nullptr);
  const auto first = sessions.Begin("a", {"x"});
  const auto other = sessions.Begin("b", {"y"});
  ASSERT_TRUE(first.ok() && other.ok());
  EXPECT_NE(*first, *other);
  EXPECT_THAT(*sessions.RewardsOf("a"), ElementsAre("x"));
  ASSERT_TRUE(sessions.Begin("a", {"x", "z"}).ok());
  EXPECT_THAT(*sessions.RewardsOf("a"), ElementsAre("x", "z"));
  sessions.End("a");
  EXPECT_EQ(sessions.RewardsOf("a"), nullptr);
  EXPECT_THAT(*sessions.RewardsOf("b"), ElementsAre("y"));
}

TEST(TaskSessions, TooManyConnectionsAreRefused) {
  TaskSessions sessions;
  for (size_t i = 0; i < TaskSessions::kMost; ++i) {
    ASSERT_TRUE(sessions.Begin(absl::StrCat(i), {}).ok());
  }
  EXPECT_EQ(CodeOf(sessions.Begin("one more", {}).status()),
            ErrorCode::kRingFull);
  EXPECT_TRUE(sessions.Begin("0", {}).ok());
}

}  // namespace
}  // namespace tandem::gateway
