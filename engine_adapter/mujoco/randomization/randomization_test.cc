#include "engine_adapter/mujoco/randomization/randomization.h"

#include <gtest/gtest.h>
#include <mujoco/mujoco.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "engine_adapter/mujoco/environment/testing/randomization_rig.h"
#include "engine_adapter/mujoco/model/model_file.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {
namespace {

// Each actuator's force in the same state is multiplied by the factor, also at
// the force's limit.
TEST(Randomization, StrengthScalesForcesExactly) {
  for (const float action : {0.01F, 1.0F}) {
    RandomizationRig rig = RandomizationRig::Of("servo arm", 1);
    RandomizationRig plain = RandomizationRig::Of("servo arm", 1);
    rpc::SimulationContractT contract;
    contract.motor_strength_range = {0.5F, 0.5F};
    EXPECT_TRUE(rig.Take(&contract, 3).value().empty());
    rig.Reset(1);
    plain.Reset(1);
    rig.Step(0, action);
    plain.Step(0, action);
    for (int i = 0; i < rig.original().nactuator; ++i) {
      EXPECT_EQ(rig.data(0).actuator_force[i],
                plain.data(0).actuator_force[i] / 2)
          << i;
    }
    for (int i = 0; i < rig.original().nv; ++i) {
      EXPECT_EQ(rig.data(0).qfrc_actuator[i],
                plain.data(0).qfrc_actuator[i] / 2)
          << i;
    }
  }
}

// A servo with control 0 rests at the offset, in the joint's own unit, although
// its gear is 2.
TEST(Randomization, MotorOffsetIsItsRestPositionAtZeroControl) {
  RandomizationRig rig = RandomizationRig::Of("rover", 1);
  rpc::SimulationContractT contract;
  contract.motor_offset_range = {0.2F, 0.2F};
  EXPECT_TRUE(rig.Take(&contract, 3).value().empty());
  rig.Reset(1);
  for (int step = 0; step < 2000; ++step) rig.Step(0);
  EXPECT_NEAR(rig.data(0).qpos[7], 0.2, 0.03);
}

double Deviation(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

// With 4,000 draws, one sigma of the deviation is 1.1 %.
TEST(Randomization, NoiseHasItsDeviation) {
  RandomizationRig rig = RandomizationRig::Of("rover", 4000);
  rpc::SimulationContractT contract;
  contract.pose_position_noise = {0.1F, 0.2F, 0};
  contract.pose_orientation_noise = 0.05F;
  contract.joint_position_noise = 0.3F;
  contract.joint_velocity_noise = 0.4F;
  EXPECT_TRUE(rig.Take(&contract, 3).value().empty());
  rig.Reset(1);
  std::vector<double> x;
  std::vector<double> y;
  std::vector<double> turn;
  std::vector<double> mast;
  std::vector<double> speed;
  for (uint32_t env = 0; env < 4000; ++env) {
    const mjData& data = rig.data(env);
    x.push_back(data.qpos[0]);
    y.push_back(data.qpos[1]);
    EXPECT_EQ(data.qpos[2], rig.original().qpos0[2]);
    mjtNum vector[3];
    mju_quat2Vel(vector, data.qpos + 3, 1);
    turn.push_back(vector[0]);
    mast.push_back(data.qpos[7]);
    EXPECT_LE(std::abs(data.qpos[7]), 1);  // the joint's limit
    mju_quat2Vel(vector, data.qpos + 8, 1);
    EXPECT_LE(mju_norm3(vector), 0.5 + 1e-9);  // the limit of "tail"
    speed.push_back(data.qvel[6]);
    for (int i = 0; i < 6; ++i) EXPECT_EQ(data.qvel[i], 0);
    for (int i = 12; i < 19; ++i) {  // the free ball
      EXPECT_EQ(data.qpos[i], rig.original().qpos0[i]);
    }
  }
  EXPECT_NEAR(Deviation(x), 0.1, 0.005);
  EXPECT_NEAR(Deviation(y), 0.2, 0.01);
  EXPECT_NEAR(Deviation(turn), 0.05, 0.0025);
  EXPECT_NEAR(Deviation(mast), 0.3, 0.015);
  EXPECT_NEAR(Deviation(speed), 0.4, 0.02);
}

TEST(Randomization, APlanarRootIsMovedAlongItsSlides) {
  RandomizationRig rig = RandomizationRig::Of("HalfCheetah-v5", 1);
  RandomizationRig plain = RandomizationRig::Of("HalfCheetah-v5", 1);
  rpc::SimulationContractT contract;
  contract.pose_position_noise = {0.1F, 0.1F, 0};
  EXPECT_TRUE(rig.Take(&contract, 3).value().empty());
  rig.Reset(1);
  plain.Reset(1);
  EXPECT_NE(rig.data(0).qpos[0], plain.data(0).qpos[0]);
  for (int i = 1; i < 9; ++i) {
    EXPECT_EQ(rig.data(0).qpos[i], plain.data(0).qpos[i]);
  }
  contract.pose_position_noise = {0, 0.1F, 0};
  EXPECT_EQ(rig.Take(&contract, 3).value(),
            std::vector<std::string>{"pose_position_noise"});
}

// A step with a push differs from bare MuJoCo's step from the same state.
TEST(Randomization, PushesComeInTime) {
  for (const std::string name : {"Ant-v5", "HalfCheetah-v5", "Swimmer-v5"}) {
    RandomizationRig rig = RandomizationRig::Of(name, 1);
    rpc::SimulationContractT contract;
    contract.push_interval_range = {0.2F, 0.4F};
    contract.push_velocity_range = {1, 2};
    EXPECT_TRUE(rig.Take(&contract, 3).value().empty());
    rig.Reset(1);
    const mjModel& model = rig.original();
    const DataPtr data = MakeData(model).value();
    std::vector<double> pushed_at;
    std::set<double> sizes;
    bool left = false;
    bool right = false;
    double last = 0;
    double step_secs = 0;
    for (int step = 0; step < 400; ++step) {
      const double before = rig.data(0).time;
      mj_copyData(data.get(), &model, &rig.data(0));
      std::fill_n(data->ctrl, model.nu, 0);
      rig.Step(0);
      step_secs = rig.data(0).time - before;
      for (int i = 0; i < std::lround(step_secs / model.opt.timestep); ++i) {
        mj_step(&model, data.get());
      }
      const double dx = rig.data(0).qvel[0] - data->qvel[0];
      const double dy =
          name == "HalfCheetah-v5" ? 0 : rig.data(0).qvel[1] - data->qvel[1];
      if (dx == 0 && dy == 0) continue;
      EXPECT_GE(before - last, 0.2 - model.opt.timestep) << name;
      EXPECT_LE(before - last, 0.4 + step_secs) << name;
      last = before;
      pushed_at.push_back(before);
      sizes.insert(std::hypot(dx, dy));
      left |= dx < 0;
      right |= dx > 0;
    }
    const double simulated = 400 * step_secs;
    EXPECT_GE(static_cast<double>(pushed_at.size()), simulated / 0.5) << name;
    EXPECT_LE(static_cast<double>(pushed_at.size()), simulated / 0.2) << name;
    EXPECT_EQ(sizes.size(), pushed_at.size()) << name;
    EXPECT_TRUE(left && right) << name;
  }
}

// Without gravity and contacts, the step does not change the velocity.
TEST(Randomization, APushHasTheDrawnSize) {
  RandomizationRig rig = RandomizationRig::Of("rover", 1);
  rpc::SimulationContractT contract;
  contract.push_interval_range = {0, 0};
  contract.push_velocity_range = {1.5F, 1.5F};
  EXPECT_TRUE(rig.Take(&contract, 3).value().empty());
  rig.own_model(0)->opt.gravity[2] = 0;
  rig.own_model(0)->opt.disableflags |= mjDSBL_CONTACT;
  rig.Reset(1);
  rig.Step(0);
  EXPECT_NEAR(std::hypot(rig.data(0).qvel[0], rig.data(0).qvel[1]), 1.5, 1e-9);
  EXPECT_NEAR(rig.data(0).qvel[2], 0, 1e-9);
}

TEST(Randomization, VelocityCommandIsObservedAndRedrawnPeriodically) {
  RandomizationRig rig = RandomizationRig::Of("commanded rover", 1);
  const rpc::SimulationContractT contract = WholeContract();
  rig.Reset(1);
  const auto command = [&] {
    return std::vector<float>(rig.obs(0).end() - 3, rig.obs(0).end());
  };
  const std::vector<float> none = {0, 0, 0};
  EXPECT_EQ(command(), none);
  EXPECT_TRUE(rig.Take(&contract, 3).value().empty());
  rig.Reset(1);
  int stood = 0;
  int drawn = 0;
  double since = 0;
  std::vector<float> last = command();
  for (int step = 0; step < 4000; ++step) {
    rig.Step(0);
    const std::vector<float> now = command();
    const double time = rig.data(0).time;
    if (now == last) {
      // Two successive standing commands look like one.
      if (now != none) {
        EXPECT_LE(time - since, 0.2 + 0.005);
      }
      continue;
    }
    if (last != none) {
      EXPECT_GE(time - since, 0.1 - 0.003);
    }
    since = time;
    last = now;
    ++drawn;
    if (now == none) {
      ++stood;
      continue;
    }
    EXPECT_TRUE(now[0] >= 0.5F && now[0] <= 1) << now[0];
    EXPECT_TRUE(now[1] >= -1 && now[1] <= -0.5F) << now[1];
    EXPECT_TRUE(now[2] >= 2 && now[2] <= 3) << now[2];
  }
  EXPECT_GT(drawn, 60);  // in 20 s
  EXPECT_GT(stood, 10);
  EXPECT_LT(stood, drawn / 2);
}

TEST(Randomization, BodyRestsOnTerrain) {
  RandomizationRig rig = RandomizationRig::Of("rover", 1);
  rpc::SimulationContractT contract;
  contract.terrain_type = "slope";
  contract.terrain_difficulty = 1;
  EXPECT_TRUE(rig.Take(&contract, 3).value().empty());
  rig.Reset(1);
  // The ball is 2 m out of 6 from the middle: at 1/3 of 0.5 m.
  for (int step = 0; step < 60; ++step) rig.Step(0);
  EXPECT_NEAR(rig.data(0).qpos[14], 0.1 + 0.5 / 3, 0.05);
}

}  // namespace
}  // namespace tandem
