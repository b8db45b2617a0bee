#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine_adapter/classic_control/classic_control_tasks.h"
#include "engine_adapter/task_description.h"
#include "engine_adapter/testing/engine_rig.h"

namespace tandem {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

EngineRig Rig(absl::string_view options = "{}") {
  TaskRequest request;
  request.options = TaskOptions::Parse(options).value();
  return EngineRig(MakePendulum(std::move(request)).value());
}

// Makes one step after a reset with seed 0.
EngineRig SteppedBy(float torque, absl::string_view options = "{}") {
  EngineRig rig = Rig(options);
  EXPECT_TRUE(rig.ResetAll(0).ok());
  rig.actions = {torque};
  EXPECT_TRUE(rig.Step().ok());
  return rig;
}

TEST(Pendulum, DescribesItselfAsGymnasiumDoes) {
  const EngineRig rig = Rig();
  EXPECT_EQ(rig.schema().task, "Pendulum-v1");
  const std::string json = ToJson(rig.schema().description,
                                  rig.schema().obs_size, rig.schema().act_size)
                               .value();
  EXPECT_EQ(json,
            R"({"action_space":{"dtype":"float32","high":[2.0],"low":[-2.0],)"
            R"("shape":[1],"type":"Box"},"infos":[],"max_episode_steps":200,)"
            R"("observation_space":{"dtype":"float32","high":[1.0,1.0,8.0],)"
            R"("low":[-1.0,-1.0,-8.0],"shape":[3],"type":"Box"}})");
}

TEST(Pendulum, StartsWhereGymnasiumStarts) {
  EngineRig rig = Rig();
  ASSERT_TRUE(rig.ResetAll(0).ok());
  EXPECT_EQ(rig.obs, (std::vector<float>{0.6520163F, 0.758205F, -0.46042657F}));
}

TEST(Pendulum, RewardsAngleSpeedAndTorque) {
  const EngineRig rig = SteppedBy(1);
  const double angle = std::atan2(0.758205, 0.6520163);
  const double speed = -0.46042657;
  EXPECT_NEAR(rig.rewards[0], -(angle * angle + 0.1 * speed * speed + 0.001),
              1e-6);
  EXPECT_EQ(rig.terminateds[0], 0);
}

TEST(Pendulum, CutsOffTorqueBeyondItsBounds) {
  for (const float torque : {2.5F, 1e30F, kInfinity}) {
    EXPECT_EQ(SteppedBy(torque).obs, SteppedBy(2).obs) << torque;
    EXPECT_EQ(SteppedBy(torque).rewards, SteppedBy(2).rewards) << torque;
    EXPECT_EQ(SteppedBy(-torque).obs, SteppedBy(-2).obs) << torque;
  }
  EXPECT_NE(SteppedBy(2).obs, SteppedBy(1.9F).obs);
}

TEST(Pendulum, StaysWithinItsLargestSpeed) {
  EngineRig rig = SteppedBy(2, R"({"g": 0})");
  float fastest = 0;
  for (int step = 0; step < 100; ++step) {
    ASSERT_TRUE(rig.Step().ok());
    fastest = std::max(fastest, rig.obs[2]);
  }
  EXPECT_EQ(fastest, 8);
  // After any number of turns, the angle in the reward is within -pi .. pi.
  EXPECT_GE(rig.rewards[0], -(9.87F + 6.4F + 0.005F));
}

TEST(Pendulum, FallsAsItsGravityAsks) {
  const float start = -0.46042657F;
  EXPECT_NEAR(SteppedBy(0).obs[2], start + 0.05 * 1.5 * 10 * 0.758205, 1e-6);
  EXPECT_NEAR(SteppedBy(0, R"({"g": 9.81})").obs[2],
              start + 0.05 * 1.5 * 9.81 * 0.758205, 1e-6);
}

TEST(Pendulum, IsNanAfterNanActionUntilReset) {
  EngineRig rig = SteppedBy(std::nanf(""));
  rig.actions = {0};
  ASSERT_TRUE(rig.Step().ok());
  EXPECT_TRUE(std::isnan(rig.obs[0]));
  ASSERT_TRUE(rig.ResetAll(0).ok());
  ASSERT_TRUE(rig.Step().ok());
  EXPECT_EQ(rig.obs, SteppedBy(0).obs);
}

}  // namespace
}  // namespace tandem
