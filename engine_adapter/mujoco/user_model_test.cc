// Tasks of a user's model file.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "engine_adapter/core/task_options.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/mujoco/model/mujoco_log.h"
#include "engine_adapter/mujoco/mujoco_tasks.h"
#include "engine_adapter/task_description.h"
#include "engine_adapter/testing/engine_rig.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {
namespace {

std::string Write(const std::string& name, const std::string& text) {
  std::string path = absl::StrCat(testing::TempDir(), "/", name);
  std::ofstream(path) << text;
  return path;
}

std::string Pendulum() {
  return Write("pendulum.xml", R"(<mujoco>
      <worldbody><body name="arm"><joint name="j" axis="0 1 0"/>
        <geom size=".1" pos=".5 0 0"/></body></worldbody>
      <actuator><motor joint="j"/></actuator></mujoco>)");
}

absl::StatusOr<std::unique_ptr<Engine>> Make(const std::string& path,
                                             const std::string& options) {
  TaskRequest request;
  request.options = TaskOptions::Parse(options).value();
  return MakeModelEngine(path, std::move(request));
}

EngineRig Model(const std::string& path, const std::string& options = "{}") {
  return EngineRig(Make(path, options).value());
}

TEST(UserModel, ObservesFullStateAndNeverTerminates) {
  EngineRig rig = Model(Pendulum());
  EXPECT_EQ(rig.schema().task, "pendulum");
  EXPECT_EQ(rig.schema().obs_size, 2);
  EXPECT_EQ(rig.schema().act_size, 1);
  const auto& actions =
      std::get<BoxSpace>(rig.schema().description.action_space);
  EXPECT_EQ(actions.high.size(), 1);
  EXPECT_TRUE(std::isinf(actions.high.at(0)));  // without a limit
  ASSERT_TRUE(rig.ResetAll(0).ok());
  EXPECT_EQ(rig.obs, std::vector<float>(2, 0.0F));  // without noise
  for (int step = 0; step < 50; ++step) ASSERT_TRUE(rig.Step().ok());
  EXPECT_NE(rig.obs[0], 0);
  EXPECT_EQ(rig.rewards[0], 0);
  EXPECT_EQ(rig.terminateds[0] + rig.truncateds[0], 0);
}

TEST(UserModel, TakesOptions) {
  const std::string path = Pendulum();
  EngineRig noisy = Model(path, R"({"reset_noise_scale": 0.1})");
  ASSERT_TRUE(noisy.ResetAll(0).ok());
  EXPECT_NE(noisy.obs[0], 0);
  EXPECT_LE(std::abs(noisy.obs[0]), 0.1F);

  EngineRig one = Model(path);
  EngineRig three = Model(path, R"({"frame_skip": 3})");
  ASSERT_TRUE(one.ResetAll(0).ok());
  ASSERT_TRUE(three.ResetAll(0).ok());
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(one.Step().ok());
  ASSERT_TRUE(three.Step().ok());
  EXPECT_EQ(one.obs, three.obs);
}

constexpr char kWithKeyframes[] = R"(<mujoco><worldbody><body>
    <joint name="knee" axis="0 1 0" range="20 90" limited="true"/>
    <joint name="hip" axis="1 0 0"/><geom size=".1" pos="0 0 1"/></body>
    </worldbody><actuator><motor joint="knee"/></actuator>
    <keyframe><key name="home" qpos="1 0.25" qvel="0 2"/>
      <key name="low" qpos="0.5 0"/></keyframe></mujoco>)";

TEST(UserModel, StartsInAKeyframe) {
  const std::string path = Write("keyframes.xml", kWithKeyframes);
  const auto expect_start = [&](const char* options,
                                const std::vector<float>& start) {
    EngineRig rig = Model(path, options);
    for (int episode = 0; episode < 2; ++episode) {
      ASSERT_TRUE(rig.ResetAll(0).ok());
      EXPECT_EQ(rig.obs, start) << options;
      ASSERT_TRUE(rig.Step().ok());
    }
  };
  expect_start(R"({"keyframe": "home"})", {1, 0.25F, 0, 2});
  expect_start(R"({"keyframe": 0})", {1, 0.25F, 0, 2});
  expect_start(R"({"keyframe": 1})", {0.5F, 0, 0, 0});
  expect_start("{}", {0, 0, 0, 0});
  for (const char* const wrong :
       {R"({"keyframe": "hom"})", R"({"keyframe": 2})"}) {
    const absl::Status status = Make(path, wrong).status();
    EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "2 keyframes: home, low"))
        << status;
  }
}

TEST(UserModel, WarnsOnceOfUnusedKeyframesAndStartsOutOfRange) {
  std::vector<std::string> warnings;
  InstallMujocoLog(
      [&](absl::string_view line) { warnings.emplace_back(line); });
  const std::string path = Write("keyframes.xml", kWithKeyframes);
  Model(path);
  Model(path);
  Model(path, R"({"keyframe": "home"})");
  InstallMujocoLog(nullptr);
  ASSERT_EQ(warnings.size(), 2);
  EXPECT_TRUE(absl::StrContains(warnings[0], "home, low")) << warnings[0];
  EXPECT_TRUE(absl::StrContains(warnings[1], "knee at 0")) << warnings[1];
}

TEST(UserModel, MayFollowVelocityCommands) {
  std::unique_ptr<Engine> engine =
      Make(Pendulum(), R"({"velocity_command": true})").value();
  RandomizationPort* const port = engine->ports().randomization;
  EngineRig rig(std::move(engine));
  ASSERT_EQ(rig.schema().obs_size, 2 + 3);
  ASSERT_TRUE(rig.ResetAll(0).ok());
  EXPECT_EQ(rig.obs, (std::vector<float>{0, 0, 0, 0, 0}));
  rpc::SimulationContractT contract;
  contract.vel_command_x_range = {1, 1};
  contract.vel_command_y_range = {2, 2};
  contract.vel_command_yaw_range = {3, 3};
  EXPECT_TRUE(port->SetContract(std::vector<uint32_t>{0}, &contract, 1)
                  .value()
                  .empty());
  ASSERT_TRUE(rig.ResetAll(0).ok());
  EXPECT_EQ(rig.obs, (std::vector<float>{0, 0, 1, 2, 3}));
}

}  // namespace
}  // namespace tandem
