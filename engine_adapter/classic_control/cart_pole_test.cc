#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "base/error.h"
#include "engine_adapter/classic_control/classic_control_tasks.h"
#include "engine_adapter/task_description.h"
#include "engine_adapter/testing/engine_rig.h"

namespace tandem {
namespace {

EngineRig Rig(TaskRequest request = {}) {
  return EngineRig(MakeCartPole(std::move(request)).value());
}

EngineRig RigWith(absl::string_view options) {
  TaskRequest request;
  request.options = TaskOptions::Parse(options).value();
  return Rig(std::move(request));
}

// Pushes to the right until the pole has fallen; returns the rewards.
std::vector<float> Fall(EngineRig& rig) {
  EXPECT_TRUE(rig.ResetAll(0).ok());
  rig.actions = {1};
  std::vector<float> rewards;
  do {
    EXPECT_TRUE(rig.Step().ok());
    rewards.push_back(rig.rewards[0]);
  } while (rig.terminateds[0] == 0 && rewards.size() < 100);
  return rewards;
}

TEST(CartPole, DescribesItselfAsGymnasiumDoes) {
  const EngineRig rig = Rig();
  EXPECT_EQ(rig.schema().task, "CartPole-v1");
  const std::string json = ToJson(rig.schema().description,
                                  rig.schema().obs_size, rig.schema().act_size)
                               .value();
  EXPECT_EQ(json,
            R"({"action_space":{"n":2,"type":"Discrete"},"infos":[],)"
            R"("max_episode_steps":500,"observation_space":{"dtype":"float32",)"
            R"("high":[4.800000190734863,"inf",0.41887903213500977,"inf"],)"
            R"("low":[-4.800000190734863,"-inf",-0.41887903213500977,"-inf"],)"
            R"("shape":[4],"type":"Box"}})");
}

TEST(CartPole, StartsWhereGymnasiumStarts) {
  EngineRig rig = Rig({.num_envs = 2});
  ASSERT_TRUE(rig.ResetAll(0).ok());
  EXPECT_EQ(rig.obs, (std::vector<float>{0.013696168549F, -0.023021329194F,
                                         -0.045902647078F, -0.048347234726F,
                                         0.001182162436F, 0.045046370476F,
                                         -0.035584039986F, 0.044864945114F}));
}

TEST(CartPole, RewardsOnePerStepUntilTermination) {
  EngineRig rig = Rig();
  const std::vector<float> rewards = Fall(rig);
  EXPECT_EQ(rewards, std::vector<float>(rewards.size(), 1));
  EXPECT_EQ(rig.terminateds[0], 1);
  ASSERT_TRUE(rig.Step().ok());
  EXPECT_EQ(rig.terminateds[0], 1);
  EXPECT_EQ(rig.rewards[0], 0);
  EXPECT_EQ(Fall(rig), rewards);
}

TEST(CartPole, RewardsMinusOneForAFallWithSuttonBartoReward) {
  EngineRig rig = RigWith(R"({"sutton_barto_reward": true})");
  std::vector<float> rewards = Fall(rig);
  EXPECT_EQ(rewards.back(), -1);
  rewards.pop_back();
  EXPECT_EQ(rewards, std::vector<float>(rewards.size(), 0));
  ASSERT_TRUE(rig.Step().ok());
  EXPECT_EQ(rig.rewards[0], -1);
}

TEST(CartPole, RefusesInvalidActionAndKeepsState) {
  EngineRig rig = Rig();
  EngineRig twin = Rig();
  ASSERT_TRUE(rig.ResetAll(0).ok());
  ASSERT_TRUE(twin.ResetAll(0).ok());
  for (const auto& [action, found] :
       {std::pair{0.5F, "0.5"}, std::pair{-1.0F, "-1"}, std::pair{2.0F, "2"},
        std::pair{std::numeric_limits<float>::quiet_NaN(), "nan"}}) {
    rig.actions = {action};
    const absl::Status status = rig.Step();
    EXPECT_EQ(CodeOf(status), ErrorCode::kEngineFailed);
    for (const char* fact : {"environment 0", "expected 0", found}) {
      EXPECT_TRUE(absl::StrContains(status.message(), fact)) << status;
    }
    EXPECT_EQ(rig.obs, twin.obs);
  }
  for (const float action : {0.0F, 1.0F}) {
    rig.actions = twin.actions = {action};
    ASSERT_TRUE(rig.Step().ok());
    ASSERT_TRUE(twin.Step().ok());
    EXPECT_EQ(rig.obs, twin.obs);
  }
}

TEST(CartPole, IsTruncatedAtMaxEpisodeSteps) {
  EngineRig rig = Rig({.max_episode_steps = 2});
  ASSERT_TRUE(rig.ResetAll(0).ok());
  ASSERT_TRUE(rig.Step().ok());
  EXPECT_EQ(rig.truncateds[0], 0);
  ASSERT_TRUE(rig.Step().ok());
  EXPECT_EQ(rig.truncateds[0], 1);
  EXPECT_EQ(
      Rig({.max_episode_steps = 0}).schema().description.max_episode_steps, 0);
}

}  // namespace
}  // namespace tandem
