#include "engine_adapter/mujoco/mujoco_tasks.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdint>
#include <fstream>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/os/available_memory.h"
#include "engine_adapter/core/task_options.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/mujoco/model/mujoco_log.h"
#include "engine_adapter/task_description.h"
#include "engine_adapter/testing/engine_rig.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TaskRequest Request(const std::string& options) {
  TaskRequest request;
  request.options = TaskOptions::Parse(options).value();
  return request;
}

EngineRig Rig(const std::string& task, const std::string& options = "{}") {
  return EngineRig(MakeMujocoEngine(task, Request(options)).value());
}

// Writes a file into the test's folder, and returns its path.
std::string Write(const std::string& name, const std::string& text) {
  std::string path = absl::StrCat(testing::TempDir(), "/", name);
  std::ofstream(path) << text;
  return path;
}

// One joint and one motor: less than any task needs.
std::string Pendulum() {
  return Write("pendulum.xml", R"(<mujoco>
      <worldbody><body name="arm"><joint name="j" axis="0 1 0"/>
        <geom size=".1" pos=".5 0 0"/></body></worldbody>
      <actuator><motor joint="j"/></actuator></mujoco>)");
}

std::string WithModel(const std::string& path) {
  return absl::StrCat(R"({"xml_file": ")", path, R"("})");
}

void ExpectRefused(const absl::Status& status,
                   const std::vector<std::string>& parts) {
  EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument) << status;
  for (const std::string& part : parts) {
    EXPECT_TRUE(absl::StrContains(status.message(), part)) << status;
  }
}

class MujocoTasksTest : public testing::Test {
 protected:
  void SetUp() override {
    InstallMujocoLog(
        [this](absl::string_view line) { warnings_.emplace_back(line); });
  }
  void TearDown() override { InstallMujocoLog(nullptr); }
  std::vector<std::string> warnings_;
};

TEST_F(MujocoTasksTest, EveryTaskRunsWithoutAWarning) {
  for (const std::string& task : MujocoTasks()) {
    EngineRig rig = Rig(task);
    EXPECT_EQ(rig.schema().task, task);
    ASSERT_TRUE(rig.ResetAll(0).ok()) << task;
    ASSERT_TRUE(rig.Step().ok()) << task;
  }
  EXPECT_EQ(warnings_, std::vector<std::string>());
}

void ExpectNamed(const EngineSchema& schema) {
  const auto count = [](const std::vector<std::string>& names) {
    return std::set<std::string>(names.begin(), names.end()).size();
  };
  EXPECT_EQ(schema.observation_names.size(), schema.obs_size) << schema.task;
  EXPECT_EQ(count(schema.observation_names), schema.obs_size) << schema.task;
  EXPECT_EQ(schema.action_names.size(), schema.act_size) << schema.task;
  EXPECT_EQ(count(schema.action_names), schema.act_size) << schema.task;
}

TEST_F(MujocoTasksTest, NamesEveryObservationAndActionOfEveryTask) {
  for (const std::string& task : MujocoTasks()) ExpectNamed(Rig(task).schema());
  ExpectNamed(
      Rig("Humanoid-v5", R"({"include_cvel_in_observation": false})").schema());
}

TEST_F(MujocoTasksTest, NamesDescribeObservations) {
  const EngineRig cheetah = Rig("HalfCheetah-v5");
  const auto& names = cheetah.schema().observation_names;
  EXPECT_EQ(names[0], "qpos/rootz");
  EXPECT_EQ(names[8], "qvel/rootx");
  EXPECT_EQ(names[16], "qvel/ffoot");
  EXPECT_EQ(cheetah.schema().action_names[0], "bthigh");
  // With the hidden position there is one more name, before the others.
  EXPECT_EQ(Rig("HalfCheetah-v5",
                R"({"exclude_current_positions_from_observation": false})")
                .schema()
                .observation_names[0],
            "qpos/rootx");
  const EngineRig ant = Rig("Ant-v5");
  EXPECT_EQ(ant.schema().observation_names[0], "qpos/root_z");
  EXPECT_EQ(ant.schema().observation_names[27], "cfrc_ext/torso/0");
  EXPECT_EQ(ant.schema().action_names[0], "hip_4");  // the joint's name
  const EngineRig humanoid = Rig("Humanoid-v5");
  EXPECT_EQ(humanoid.schema().observation_names[45], "cinert/torso/0");
  EXPECT_EQ(humanoid.schema().observation_names[175], "cvel/torso/0");
  EXPECT_EQ(humanoid.schema().observation_names[253],
            "qfrc_actuator/abdomen_z");
  EXPECT_EQ(humanoid.schema().observation_names[270], "cfrc_ext/torso/0");
  EXPECT_EQ(Rig("Reacher-v5").schema().observation_names,
            (std::vector<std::string>{
                "cos/joint0", "cos/joint1", "sin/joint0", "sin/joint1",
                "qpos/target_x", "qpos/target_y", "qvel/joint0", "qvel/joint1",
                "fingertip_from_target/x", "fingertip_from_target/y"}));
  const EngineRig model(
      MakeModelEngine(Pendulum(), Request(R"({"velocity_command": true})"))
          .value());
  EXPECT_EQ(
      model.schema().observation_names,
      (std::vector<std::string>{"qpos/j", "qvel/j", "velocity_command/x",
                                "velocity_command/y", "velocity_command/yaw"}));
}

TEST_F(MujocoTasksTest, DescribesSpacesAndInfosAsGymnasium) {
  const EngineRig rig = Rig("HalfCheetah-v5");
  const EngineSchema& schema = rig.schema();
  EXPECT_EQ(schema.obs_size, 17);
  EXPECT_EQ(schema.act_size, 6);
  EXPECT_EQ(schema.description.max_episode_steps, 1000);
  const auto& actions = std::get<BoxSpace>(schema.description.action_space);
  EXPECT_EQ(actions.low, std::vector<double>(6, -1));
  EXPECT_EQ(actions.high, std::vector<double>(6, 1));
  EXPECT_EQ(actions.type, NumberType::kFloat32);
  const auto& obs = schema.description.observation_space;
  EXPECT_EQ(obs.high, std::vector<double>{kInfinity});
  EXPECT_EQ(obs.type, NumberType::kFloat64);
  const std::vector<InfoField>& infos = schema.description.infos;
  ASSERT_EQ(infos.size(), 4);
  EXPECT_EQ(infos[0].name, "x_position");
  EXPECT_TRUE(infos[0].at_reset);
  EXPECT_EQ(infos[3].name, "reward_ctrl");
  EXPECT_EQ(infos[3].type, NumberType::kFloat32);
  EXPECT_FALSE(infos[3].at_reset);
}

TEST_F(MujocoTasksTest, InfosMayBeArrays) {
  const EngineRig rig = Rig("Humanoid-v5");
  EXPECT_EQ(rig.Column("tendon_length"), 2);
  EXPECT_EQ(rig.Column("tendon_velocity"), 4);
  EXPECT_EQ(rig.Column("distance_from_origin"), 6);
  const EngineRig without =
      Rig("Humanoid-v5", WithModel(Write("ball.xml", R"(<mujoco>
          <worldbody><body><freejoint name="f"/><geom size="1"/></body>
          </worldbody>
          <actuator><motor joint="f" gear="1 0 0 0 0 0"/></actuator>
          </mujoco>)")));
  EXPECT_EQ(without.schema().description.infos[2].length, std::optional(0U));
  EXPECT_EQ(without.Column("distance_from_origin"), 2);
}

TEST_F(MujocoTasksTest, StateIsPartOfTheInfosOfResetsAndSteps) {
  EngineRig rig = Rig("Walker2d-v5", R"({"state": ["qvel", "xpos"],
      "exclude_current_positions_from_observation": false})");
  const std::vector<InfoField>& fields = rig.schema().description.infos;
  EXPECT_EQ(fields[2].name, "qvel");
  EXPECT_EQ(fields[2].length, std::optional(9U));
  EXPECT_EQ(fields[3].name, "xpos");
  EXPECT_EQ(fields[3].length, std::optional(8U * 3));
  const auto velocity = [&rig](size_t index) {
    return rig.infos[rig.Column("qvel") + index];
  };
  ASSERT_TRUE(rig.ResetAll(0).ok());
  EXPECT_NE(velocity(0), 0);
  ASSERT_TRUE(rig.Step().ok());
  for (size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(static_cast<float>(velocity(i)), rig.obs[9 + i]);
  }
}

TEST_F(MujocoTasksTest, RefusesStateThatAModelLacks) {
  ExpectRefused(
      MakeModelEngine(Pendulum(), Request(R"({"state": ["sensordata"]})"))
          .status(),
      {"at least 1 values of sensordata", "found 0"});
  ExpectRefused(
      MakeModelEngine(Pendulum(), Request(R"({"state": ["position"]})"))
          .status(),
      {"qpos, qvel", "position"});
}

TEST_F(MujocoTasksTest, ResetKeepsInfosThatOnlyAStepSets) {
  EngineRig rig = Rig("Walker2d-v5");
  rig.infos.assign(rig.infos.size(), 77);
  ASSERT_TRUE(rig.ResetAll(0).ok());
  EXPECT_NE(rig.infos[rig.Column("x_position")], 77);
  EXPECT_NE(rig.infos[rig.Column("z_distance_from_origin")], 77);
  EXPECT_EQ(rig.infos[rig.Column("x_velocity")], 77);
  ASSERT_TRUE(rig.Step().ok());
  for (const double info : rig.infos) EXPECT_NE(info, 77);
}

TEST_F(MujocoTasksTest, FlagsSelectObservations) {
  EXPECT_EQ(Rig("Ant-v5").schema().obs_size, 105);
  EXPECT_EQ(Rig("Ant-v5", R"({"include_cfrc_ext_in_observation": false})")
                .schema()
                .obs_size,
            27);
  EXPECT_EQ(
      Rig("Ant-v5", R"({"exclude_current_positions_from_observation": false})")
          .schema()
          .obs_size,
      107);
}

TEST_F(MujocoTasksTest, RewardsAreWeighted) {
  EngineRig rig = Rig("Walker2d-v5", R"({"healthy_reward": 7,
      "ctrl_cost_weight": 0.5, "forward_reward_weight": 0})");
  ASSERT_TRUE(rig.ResetAll(0).ok());
  rig.actions = {1, -1, 0.5F, 0, 0, 0};
  ASSERT_TRUE(rig.Step().ok());
  EXPECT_EQ(rig.infos[rig.Column("reward_survive")], 7);
  EXPECT_EQ(rig.infos[rig.Column("reward_ctrl")], -1.125);
  EXPECT_EQ(rig.infos[rig.Column("reward_forward")], 0);
  EXPECT_EQ(rig.rewards[0], 5.875F);
}

TEST_F(MujocoTasksTest, UnhealthyStateTerminatesUnlessDisabled) {
  for (const bool terminates : {true, false}) {
    EngineRig rig =
        Rig("Hopper-v5", absl::StrCat(R"({"healthy_z_range": [5, "inf"],
            "terminate_when_unhealthy": )",
                                      terminates ? "true" : "false", "}"));
    ASSERT_TRUE(rig.ResetAll(0).ok());
    ASSERT_TRUE(rig.Step().ok());
    EXPECT_EQ(rig.terminateds[0], terminates ? 1 : 0);
    EXPECT_EQ(rig.infos[rig.Column("reward_survive")], 0);
  }
}

TEST_F(MujocoTasksTest, ARequestMaySetTheTimeLimit) {
  for (const uint32_t limit : {0U, 2U}) {
    EngineRig rig(
        MakeMujocoEngine("Reacher-v5", {.max_episode_steps = limit}).value());
    EXPECT_EQ(rig.schema().description.max_episode_steps, limit);
    ASSERT_TRUE(rig.ResetAll(0).ok());
    for (uint32_t step = 1; step <= 60; ++step) {
      ASSERT_TRUE(rig.Step().ok());
      EXPECT_EQ(rig.truncateds[0], limit != 0 && step >= limit ? 1 : 0);
    }
  }
}

TEST_F(MujocoTasksTest, UnknownNamesAreAnsweredWithTheKnownOnes) {
  ExpectRefused(MakeMujocoEngine("Nope-v1", {}).status(),
                {"Nope-v1", "Ant-v5", "Walker2d-v5"});
  ExpectRefused(
      MakeMujocoEngine("InvertedPendulum-v5", Request(R"({"weight": 1})"))
          .status(),
      {"weight", "frame_skip", "reset_noise_scale", "xml_file"});
  ExpectRefused(
      MakeModelEngine(Pendulum(), Request(R"({"xml_file": "./x.xml"})"))
          .status(),
      {"xml_file", "frame_skip", "reset_noise_scale"});
}

TEST_F(MujocoTasksTest, RefusesInvalidOption) {
  for (const auto& [option, found] :
       std::vector<std::pair<std::string, std::string>>{
           {R"({"reset_noise_scale": -1})", "-1"},
           {R"({"frame_skip": 0})", "0"},
           {R"({"healthy_z_range": [2, 1]})", "[2,1]"},
           {R"({"terminate_when_unhealthy": 1})", "1"},
           {R"({"main_body": "tail"})", "'tail'"},
           {R"({"main_body": 14})", "bodies 0 to 13"}}) {
    ExpectRefused(MakeMujocoEngine("Ant-v5", Request(option)).status(),
                  {"expected", found});
  }
}

TEST_F(MujocoTasksTest, RefusesModelWithoutRequiredParts) {
  const std::string path = Pendulum();
  for (const std::string& task : MujocoTasks()) {
    if (task == "HalfCheetah-v5") continue;  // one joint is enough for it
    ExpectRefused(MakeMujocoEngine(task, Request(WithModel(path))).status(),
                  {"expected a model with", path});
  }
  ExpectRefused(
      MakeMujocoEngine("Reacher-v5", Request(WithModel(path))).status(),
      {"a body named 'fingertip'", "arm"});
}

// A task must check for each part of the model that it reads.
TEST_F(MujocoTasksTest, RunsOrRefusesAnyModel) {
  int ran = 0;
  for (const std::string joints :
       {"<joint type='slide'/><joint/>", "<joint type='ball'/>", "<freejoint/>",
        "<joint type='slide'/><joint type='ball'/>",
        "<joint type='slide'/><joint type='slide' axis='1 0 0'/><joint/>"}) {
    const std::string path =
        Write("odd.xml", absl::StrCat(R"(<mujoco><worldbody>
            <body name="b">)",
                                      joints, R"(<geom name="g" size="1"/>
            <site name="s"/></body></worldbody>
            <actuator><general site="s" dyntype="integrator" actrange="-1 1"
              gear="1 0 0 0 0 0" actlimited="true"/></actuator></mujoco>)"));
    for (const std::string& task : MujocoTasks()) {
      absl::StatusOr<std::unique_ptr<Engine>> engine =
          MakeMujocoEngine(task, Request(WithModel(path)));
      if (!engine.ok()) {
        ExpectRefused(engine.status(), {"expected a model with", path});
        continue;
      }
      ++ran;
      EngineRig rig(*std::move(engine));
      rig.actions[0] = 1;
      ASSERT_TRUE(rig.ResetAll(0).ok());
      for (int step = 0; step < 5; ++step) ASSERT_TRUE(rig.Step().ok());
    }
  }
  EXPECT_GE(ran, 10);
}

TEST_F(MujocoTasksTest, RefusesAModelWithoutActuators) {
  const std::string path = Write(
      "idle.xml",
      "<mujoco><worldbody><body><joint/><geom size='1'/></body></worldbody>"
      "</mujoco>");
  ExpectRefused(MakeModelEngine(path, {}).status(), {"actuators", path});
  ExpectRefused(
      MakeMujocoEngine("HalfCheetah-v5", Request(WithModel(path))).status(),
      {"actuators", path});
}

TEST_F(MujocoTasksTest, NamesTheProblemOfAFile) {
  const absl::Status missing =
      MakeMujocoEngine("Ant-v5", Request(WithModel("./no/such.xml"))).status();
  ExpectRefused(missing, {"./no/such.xml"});
  const std::string path =
      Write("broken.xml",
            "<mujoco><worldbody><geom type='foo'/></worldbody></mujoco>");
  for (const absl::Status& status :
       {MakeModelEngine(path, {}).status(),
        MakeMujocoEngine("Ant-v5", Request(WithModel(path))).status()}) {
    EXPECT_EQ(CodeOf(status), ErrorCode::kEngineFailed);
    EXPECT_TRUE(absl::StrContains(status.message(), "invalid keyword"))
        << status;
  }
}

TEST_F(MujocoTasksTest, RefusesMoreEnvironmentsThanFitIntoMemory) {
  const absl::Status status =
      MakeMujocoEngine("Humanoid-v5", {.num_envs = 4'000'000'000U}).status();
  EXPECT_EQ(CodeOf(status), ErrorCode::kOutOfSharedMemory) << status;
}

TEST_F(MujocoTasksTest, LooksAtTheRegionsRoomBeforeItMakesEnvironments) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {.rlim_cur = 4096, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status =
      MakeMujocoEngine("Humanoid-v5", {.num_envs = 2}).status();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(CodeOf(status), ErrorCode::kOutOfSharedMemory) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "the region needs"))
      << status;
}

// Each environment would need its own model of 64 MB.
TEST_F(MujocoTasksTest, RefusesAContractForMoreModelsThanFitIntoMemory) {
  const std::string path = Write("large.xml", R"(<mujoco>
      <asset><hfield name="h" nrow="4000" ncol="4000" size="1 1 1 1"/></asset>
      <worldbody><geom type="hfield" hfield="h"/><body pos="0 0 3">
        <joint name="j" axis="0 1 0"/><geom size=".1"/></body></worldbody>
      <actuator><motor joint="j"/></actuator></mujoco>)");
  TaskRequest request;
  // Four times the available memory: other processes may free some meanwhile.
  request.num_envs = static_cast<uint32_t>(AvailableMemoryBytes() / 16000000);
  const std::unique_ptr<Engine> engine =
      MakeModelEngine(path, std::move(request)).value();
  std::vector<uint32_t> all(engine->schema().num_envs);
  std::iota(all.begin(), all.end(), 0);
  const rpc::SimulationContractT contract;
  RandomizationPort* const port = engine->ports().randomization;
  const absl::Status status = port->SetContract(all, &contract, {}).status();
  EXPECT_EQ(CodeOf(status), ErrorCode::kOutOfSharedMemory) << status;
  EXPECT_TRUE(port->SetContract(std::span(all).first(1), &contract, {}).ok());
}

}  // namespace
}  // namespace tandem
