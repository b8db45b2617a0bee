#include "engine_adapter/mujoco/model/part_names.h"

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace tandem {
namespace {

using Texts = std::vector<std::string>;
using Model = std::unique_ptr<mjModel, void (*)(mjModel*)>;

// A free joint, an unnamed ball joint, a hinge; four motors, one of them with a
// name: the name of a joint that another motor moves.
Model Zoo() {
  const std::string path = testing::TempDir() + "/zoo.xml";
  std::ofstream(path) << R"(<mujoco><worldbody>
      <body name="box"><freejoint name="root"/><geom size=".1"/>
        <body><joint type="ball"/><geom size=".1" pos=".2 0 0"/>
          <body><joint name="knee"/><geom size=".1" pos=".4 0 0"/></body>
        </body></body></worldbody><actuator>
      <motor joint="knee"/><motor joint="knee"/>
      <motor name="knee" joint="knee"/>
      <motor joint="root" gear="1 0 0 0 0 0"/></actuator></mujoco>)";
  char error[1000] = "";
  Model model(mj_loadXML(path.c_str(), nullptr, error, sizeof(error)),
              mj_deleteModel);
  EXPECT_NE(model, nullptr) << error;
  return model;
}

template <typename Name>
Texts AllOf(const mjModel& model, mjtSize count, Name name) {
  Texts texts;
  for (int i = 0; i < static_cast<int>(count); ++i) {
    texts.push_back(name(model, i));
  }
  return texts;
}

TEST(PartNames, PositionsAndVelocitiesAreTheirJoints) {
  const Model model = Zoo();
  EXPECT_EQ(AllOf(*model, model->nq, PositionName),
            (Texts{"root_x", "root_y", "root_z", "root_qw", "root_qx",
                   "root_qy", "root_qz", "joint 1_qw", "joint 1_qx",
                   "joint 1_qy", "joint 1_qz", "knee"}));
  EXPECT_EQ(
      AllOf(*model, model->nv, VelocityName),
      (Texts{"root_vx", "root_vy", "root_vz", "root_wx", "root_wy", "root_wz",
             "joint 1_wx", "joint 1_wy", "joint 1_wz", "knee"}));
}

TEST(PartNames, NumbersOfBodiesAreTheirBodys) {
  const Model model = Zoo();
  EXPECT_EQ(BodyNumberName<6>(*model, 9), "box/3");
  EXPECT_EQ(BodyNumberName<10>(*model, 20), "body 2/0");
  EXPECT_EQ(BodyAxisName(*model, 2), "world/z");
}

TEST(PartNames, ActuatorsHaveJointNamesIfUniqueElseNumbers) {
  EXPECT_EQ(ActuatorNames(*Zoo()),
            (Texts{"actuator 0", "actuator 1", "knee", "root"}));
}

}  // namespace
}  // namespace tandem
