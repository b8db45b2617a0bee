#include "engine_adapter/services/env_selection.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/error.h"

namespace tandem {
namespace {

using Envs = std::vector<uint32_t>;

TEST(EnvSelection, NumbersComeBeforeNames) {
  EXPECT_EQ(*SelectEnvs(Envs{3, 1}, "agent_2", 4), (Envs{3, 1}));
  EXPECT_EQ(*SelectEnvs({}, "agent_2", 4), (Envs{2}));
  EXPECT_EQ(*SelectEnvs({}, "", 4), (Envs{0}));
}

TEST(EnvSelection, RefusesUnknownEnvironments) {
  for (const absl::string_view name :
       {"agent_4", "agent_", "agent_03", "agent_-1", "agent_+1", "ant",
        "agent_99999999999"}) {
    const auto envs = SelectEnvs({}, name, 4);
    EXPECT_EQ(CodeOf(envs.status()), ErrorCode::kInvalidArgument) << name;
    EXPECT_TRUE(absl::StrContains(envs.status().message(), name));
    EXPECT_TRUE(absl::StrContains(envs.status().message(), "agent_3"));
  }
  const auto status = SelectEnvs({}, std::string(1 << 20, 'x'), 4).status();
  EXPECT_LT(status.message().size(), 300u);
  EXPECT_TRUE(absl::StrContains(status.message(), "1048576 bytes")) << status;
  EXPECT_EQ(CodeOf(SelectEnvs(Envs{0, 4}, "", 4).status()),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(SelectEnvs(Envs{1, 0, 1}, "", 4).status()),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(CheckEnv(4, 4)), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(CheckEnv(3, 4).ok());
}

}  // namespace
}  // namespace tandem
