#include "engine_adapter/mujoco/environment/mujoco_state_port.h"

#include <gtest/gtest.h>
#include <mujoco/mujoco.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/mujoco/model/model_file.h"
#include "engine_adapter/mujoco/model/mujoco_log.h"
#include "engine_adapter/mujoco/mujoco_tasks.h"
#include "engine_adapter/testing/engine_rig.h"

namespace tandem {
namespace {

using Floats = std::vector<float>;
using Texts = std::vector<std::string>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class MujocoStatePortTest : public testing::Test {
 protected:
  void SetUp() override {
    InstallMujocoLog([](absl::string_view) {});
  }
  void TearDown() override { InstallMujocoLog(nullptr); }
};

// Two environments, each a drone with three motors.
EngineRig Drones() {
  const std::string path = absl::StrCat(testing::TempDir(), "/drone.xml");
  std::ofstream(path) << R"(<mujoco><worldbody>
      <body><freejoint name="root"/><geom size=".1"/>
        <body pos=".2 0 0"><joint type="ball"/><geom size=".1"/></body>
        <body pos="0 .2 0"><joint name="flap"/><geom size=".1"/></body>
      </body></worldbody><actuator>
      <motor name="wide" joint="flap"/>
      <motor joint="flap" ctrlrange="-.5 .25"/>
      <motor name="late" joint="flap" ctrlrange="0 1" ctrllimited="false"/>
    </actuator></mujoco>)";
  EngineRig rig(MakeModelEngine(path, {.num_envs = 2}).value());
  EXPECT_TRUE(rig.ResetAll(0).ok());
  return rig;
}

TEST_F(MujocoStatePortTest, DescribesTheModel) {
  EngineRig rig = Drones();
  const MujocoPort::Info& info = rig.ports().mujoco->info();
  EXPECT_EQ(info.nq, 7u + 4 + 1);
  EXPECT_EQ(info.nv, 6u + 3 + 1);
  EXPECT_EQ(info.joint_names, (Texts{"root", "", "flap"}));
  EXPECT_EQ(info.position_names,
            (Texts{"root_x", "root_y", "root_z", "root_qw", "root_qx",
                   "root_qy", "root_qz", "joint 1_qw", "joint 1_qx",
                   "joint 1_qy", "joint 1_qz", "flap"}));
  ASSERT_EQ(info.actuators.size(), 3u);
  EXPECT_EQ(info.actuators[0].name, "wide");
  EXPECT_EQ(info.actuators[0].high, kInfinity);
  EXPECT_EQ(info.actuators[1].name, "");
  EXPECT_EQ(info.actuators[1].low, -0.5F);
  EXPECT_EQ(info.actuators[1].high, 0.25F);
  EXPECT_EQ(info.actuators[2].low, -kInfinity);
  EXPECT_EQ(rig.step_secs(), 0.002);
}

TEST_F(MujocoStatePortTest, JointsAreMujocosAfterTheSameSteps) {
  const ModelFile file = *FindModelFile("ant.xml", "");
  EngineRig rig(MakeModelEngine(file.path, {.num_envs = 2}).value());
  ASSERT_TRUE(rig.ResetAll(0).ok());
  const ModelPtr model = LoadModel(file).value();
  const DataPtr data = MakeData(*model).value();
  mj_resetData(model.get(), data.get());
  mj_forward(model.get(), data.get());
  std::ranges::fill(rig.actions, 0.5F);
  std::fill_n(data->ctrl, model->nu, 0.5);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(rig.Step().ok());
    mj_step(model.get(), data.get());
  }
  const rpc::JointStateT found = rig.ports().mujoco->Joints(1);
  EXPECT_EQ(found.env_id, 1u);
  EXPECT_EQ(found.nq, static_cast<uint32_t>(model->nq));
  EXPECT_EQ(found.nv, static_cast<uint32_t>(model->nv));
  EXPECT_EQ(found.positions, Floats(data->qpos, data->qpos + model->nq));
  EXPECT_EQ(found.velocities, Floats(data->qvel, data->qvel + model->nv));
}

TEST_F(MujocoStatePortTest, SetPositionsChangesNoOtherPartOfTheState) {
  EngineRig rig(MakeMujocoEngine("HalfCheetah-v5", {.num_envs = 1}).value());
  ASSERT_TRUE(rig.ResetAll(0).ok());
  std::ranges::fill(rig.actions, 0.5F);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(rig.Step().ok());
  std::string before;
  std::string after;
  ASSERT_TRUE(rig.ports().states->Save(0, &before).ok());
  rig.ports().mujoco->model()->SetPositions(0, {{3, 0.25F}});
  ASSERT_TRUE(rig.ports().states->Save(0, &after).ok());
  EXPECT_EQ(rig.ports().mujoco->Joints(0).positions[3], 0.25F);
  ASSERT_EQ(before.size(), after.size());
  size_t changed = 0;
  for (size_t i = 0; i < before.size(); ++i) changed += before[i] != after[i];
  EXPECT_LE(changed, sizeof(mjtNum));
}

TEST_F(MujocoStatePortTest, AStepIsAllOfItsSubsteps) {
  EngineRig rig(MakeMujocoEngine("Ant-v5", {.num_envs = 1}).value());
  EXPECT_EQ(rig.step_secs(), 5 * 0.01);
}

TEST_F(MujocoStatePortTest, SetControlReplacesTheNextActionOnly) {
  EngineRig rig = Drones();
  EngineRig told = Drones();
  MujocoPort& port = *rig.ports().mujoco;
  rig.actions = {0.1F, 0.2F, 0.3F, 0.1F, 0.2F, 0.3F};
  told.actions = {0.1F, 0.2F, 0.3F, -4, 0.2F, 0.7F};
  port.SetControl(1, 2, 0.9F);
  port.SetControl(1, 2, 0.7F);
  port.SetControl(1, 0, -4);
  EXPECT_EQ(port.Controls(1), (Floats{-4, 0, 0.7F}));
  EXPECT_EQ(port.Controls(0), (Floats{0, 0, 0}));
  ASSERT_TRUE(rig.Step().ok());
  ASSERT_TRUE(told.Step().ok());
  EXPECT_EQ(rig.obs, told.obs);
  EXPECT_EQ(port.Controls(1), (Floats{-4, 0.2F, 0.7F}));
  EXPECT_EQ(port.Controls(0), (Floats{0.1F, 0.2F, 0.3F}));
  told.actions = rig.actions;
  ASSERT_TRUE(rig.Step().ok());
  ASSERT_TRUE(told.Step().ok());
  EXPECT_EQ(rig.obs, told.obs);
  EXPECT_EQ(port.Controls(1), (Floats{0.1F, 0.2F, 0.3F}));
}

TEST_F(MujocoStatePortTest, ASetControlWaitsForTheStepThroughAReset) {
  EngineRig rig = Drones();
  EngineRig told = Drones();
  MujocoPort& port = *rig.ports().mujoco;
  port.SetControl(0, 1, 0.25F);
  ASSERT_TRUE(rig.ResetAll(0).ok());
  EXPECT_EQ(port.Controls(0), (Floats{0, 0.25F, 0}));
  told.actions[1] = 0.25F;
  ASSERT_TRUE(rig.Step().ok());
  ASSERT_TRUE(told.Step().ok());
  EXPECT_EQ(rig.obs, told.obs);
}

}  // namespace
}  // namespace tandem
