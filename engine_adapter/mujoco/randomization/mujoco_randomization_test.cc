#include "engine_adapter/mujoco/randomization/mujoco_randomization.h"

#include <gtest/gtest.h>
#include <mujoco/mujoco.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine_adapter/mujoco/mujoco_log.h"
#include "engine_adapter/mujoco/randomization/randomization_rig.h"
#include "transport/base/error.h"

namespace tandem {
namespace {

constexpr char kRover[] =
    "engine_adapter/mujoco/randomization/testdata/rover.xml";
constexpr char kServoArm[] =
    "engine_adapter/mujoco/randomization/testdata/servo_arm.xml";

// Every field that acts on the model.
rpc::SimulationContractT ModelContract() {
  rpc::SimulationContractT contract;
  contract.friction_range = {0.2F, 0.6F};
  contract.restitution_range = {0.1F, 0.9F};
  contract.mass_scale_range = {0.5F, 2};
  contract.com_offset_range = {-0.01F, 0.02F};
  contract.motor_strength_range = {0.7F, 1.3F};
  contract.motor_offset_range = {-0.1F, 0.1F};
  contract.terrain_type = "rough";
  contract.terrain_difficulty = 0.5F;
  return contract;
}

rpc::SimulationContractT WholeContract() {
  rpc::SimulationContractT contract = ModelContract();
  contract.pose_position_noise = {0.01F, 0.02F, 0.03F};
  contract.pose_orientation_noise = 0.1F;
  contract.joint_position_noise = 0.05F;
  contract.joint_velocity_noise = 0.1F;
  contract.push_interval_range = {0.1F, 0.3F};
  contract.push_velocity_range = {0.5F, 1};
  contract.vel_command_x_range = {0.5F, 1};
  contract.vel_command_y_range = {-1, -0.5F};
  contract.vel_command_yaw_range = {2, 3};
  contract.vel_command_resampling_time_range = {0.1F, 0.2F};
  contract.vel_command_standing_probability = 0.25F;
  return contract;
}

// All bytes of a model as MuJoCo saves it.
std::vector<char> Bytes(const mjModel& model) {
  std::vector<char> bytes(static_cast<size_t>(mj_sizeModel(&model)));
  mj_saveModel(&model, nullptr, bytes.data(), static_cast<int>(bytes.size()));
  return bytes;
}

float ActionOf(int step) { return step % 7 < 4 ? 0.4F : -0.5F; }

// What environment 0 goes through in so many steps, observations included.
std::vector<double> Trajectory(RandomizationRig& rig, int steps) {
  std::vector<double> all;
  for (int step = 0; step <= steps; ++step) {
    if (step > 0) rig.Step(0, ActionOf(step));
    const std::vector<double> state = rig.State(0);
    all.insert(all.end(), state.begin(), state.end());
    all.insert(all.end(), rig.obs(0).begin(), rig.obs(0).end());
  }
  return all;
}

RandomizationRig Make(const std::string& name, uint32_t num_envs) {
  if (name == "rover") return RandomizationRig::OfModel(kRover, num_envs);
  if (name == "commanded rover") {
    return RandomizationRig::OfModel(kRover, num_envs, /*commanded=*/true);
  }
  if (name == "servo arm") {
    return RandomizationRig::OfModel(kServoArm, num_envs);
  }
  return RandomizationRig::OfTask(name, num_envs);
}

class MujocoRandomizationTest : public testing::Test {
 protected:
  void SetUp() override {
    InstallMujocoLog([](absl::string_view) {});
  }
  void TearDown() override { InstallMujocoLog(nullptr); }
};

// Each of the message's fields, with others that it needs to act; `without` is
// the same without it.
struct Field {
  const char* name;
  rpc::SimulationContractT with;
  rpc::SimulationContractT without;
};

template <typename Set, typename Also>
Field MakeField(const char* name, Set set, Also also) {
  Field field = {.name = name, .with = {}, .without = {}};
  also(field.with);
  also(field.without);
  set(field.with);
  return field;
}

std::vector<Field> AllFields() {
  const auto alone = [](auto&) {};
  return {
      MakeField(
          "pose_position_noise",
          [](auto& c) {
            c.pose_position_noise = {0.1F, 0.1F, 0.1F};
          },
          alone),
      MakeField(
          "pose_orientation_noise",
          [](auto& c) { c.pose_orientation_noise = 0.1F; }, alone),
      MakeField(
          "joint_position_noise",
          [](auto& c) { c.joint_position_noise = 0.1F; }, alone),
      MakeField(
          "joint_velocity_noise",
          [](auto& c) { c.joint_velocity_noise = 0.1F; }, alone),
      MakeField(
          "friction_range",
          [](auto& c) {
            c.friction_range = {0.1F, 0.2F};
          },
          alone),
      MakeField(
          "restitution_range",
          [](auto& c) {
            c.restitution_range = {0.7F, 0.8F};
          },
          alone),
      MakeField(
          "mass_scale_range",
          [](auto& c) {
            c.mass_scale_range = {1.5F, 2};
          },
          alone),
      MakeField(
          "com_offset_range",
          [](auto& c) {
            c.com_offset_range = {0.01F, 0.02F};
          },
          alone),
      MakeField(
          "motor_strength_range",
          [](auto& c) {
            c.motor_strength_range = {0.5F, 0.6F};
          },
          alone),
      MakeField(
          "motor_offset_range",
          [](auto& c) {
            c.motor_offset_range = {0.1F, 0.2F};
          },
          alone),
      MakeField(
          "push_interval_range",
          [](auto& c) {
            c.push_interval_range = {0.1F, 0.2F};
          },
          [](auto& c) {
            c.push_velocity_range = {1, 2};
          }),
      MakeField(
          "push_velocity_range",
          [](auto& c) {
            c.push_velocity_range = {1, 2};
          },
          [](auto& c) {
            c.push_interval_range = {0.1F, 0.2F};
          }),
      MakeField(
          "terrain_type", [](auto& c) { c.terrain_type = "rough"; },
          [](auto& c) { c.terrain_difficulty = 1; }),
      MakeField(
          "terrain_difficulty", [](auto& c) { c.terrain_difficulty = 1; },
          [](auto& c) { c.terrain_type = "slope"; }),
      MakeField(
          "vel_command_x_range",
          [](auto& c) {
            c.vel_command_x_range = {1, 2};
          },
          alone),
      MakeField(
          "vel_command_y_range",
          [](auto& c) {
            c.vel_command_y_range = {1, 2};
          },
          alone),
      MakeField(
          "vel_command_yaw_range",
          [](auto& c) {
            c.vel_command_yaw_range = {1, 2};
          },
          alone),
      MakeField(
          "vel_command_resampling_time_range",
          [](auto& c) {
            c.vel_command_resampling_time_range = {0.1F, 0.2F};
          },
          [](auto& c) {
            c.vel_command_x_range = {1, 2};
          }),
      MakeField(
          "vel_command_standing_probability",
          [](auto& c) { c.vel_command_standing_probability = 1; },
          [](auto& c) {
            c.vel_command_x_range = {1, 2};
          }),
  };
}

struct Uses {
  const char* name;
  std::set<std::string> unused;
};

// Either a field changes what happens, or it is answered as unused; and which.
TEST_F(MujocoRandomizationTest, EveryFieldActsOrIsAnsweredAsUnused) {
  const std::set<std::string> commands = {
      "vel_command_x_range", "vel_command_y_range", "vel_command_yaw_range",
      "vel_command_resampling_time_range", "vel_command_standing_probability"};
  const std::set<std::string> terrain = {"terrain_type", "terrain_difficulty"};
  const std::set<std::string> pose = {
      "pose_position_noise", "pose_orientation_noise", "push_interval_range",
      "push_velocity_range"};
  const std::set<std::string> contacts = {"friction_range",
                                          "restitution_range"};
  const auto all_of = [](std::vector<std::set<std::string>> sets) {
    std::set<std::string> all;
    for (const auto& each : sets) all.insert(each.begin(), each.end());
    return all;
  };
  const std::set<std::string> offset = {"motor_offset_range"};
  const std::vector<Uses> cases = {
      {"HalfCheetah-v5", all_of({commands, terrain, offset})},
      {"Hopper-v5", all_of({commands, terrain, offset})},
      {"Walker2d-v5", all_of({commands, terrain, offset})},
      {"Swimmer-v5", all_of({commands, terrain, offset, contacts})},
      {"Ant-v5", all_of({commands, terrain, offset})},
      {"Humanoid-v5", all_of({commands, terrain, offset})},
      {"HumanoidStandup-v5", all_of({commands, terrain, offset})},
      {"Reacher-v5", all_of({commands, terrain, offset, pose, contacts})},
      {"InvertedPendulum-v5",
       all_of({commands, terrain, offset, pose, contacts})},
      {"servo arm", all_of({commands, terrain, pose, contacts})},
      {"rover", commands},
      {"commanded rover", {}},
  };
  for (const Uses& uses : cases) {
    for (const Field& field : AllFields()) {
      RandomizationRig with = Make(uses.name, 1);
      RandomizationRig without = Make(uses.name, 1);
      const std::vector<std::string> unused = with.Take(&field.with, 3).value();
      ASSERT_TRUE(without.Take(&field.without, 3).ok());
      const bool is_unused = std::ranges::count(unused, field.name) > 0;
      EXPECT_EQ(is_unused, uses.unused.contains(field.name))
          << uses.name << ", " << field.name;
      with.Reset(1);
      without.Reset(1);
      EXPECT_EQ(Trajectory(with, 150) == Trajectory(without, 150), is_unused)
          << uses.name << ", " << field.name;
    }
  }
}

TEST_F(MujocoRandomizationTest, AnEnvironmentsModelLiesInTheRanges) {
  for (const std::string name : {"HalfCheetah-v5", "Ant-v5", "Humanoid-v5",
                                 "Reacher-v5", "servo arm", "rover"}) {
    constexpr uint32_t kEnvs = 8;
    RandomizationRig rig = Make(name, kEnvs);
    const rpc::SimulationContractT contract = ModelContract();
    ASSERT_TRUE(rig.Take(&contract, 3).ok());
    rig.Reset(0);
    const mjModel& original = rig.original();
    std::set<double> masses;
    std::set<double> frictions;
    std::set<double> strengths;
    for (uint32_t env = 0; env < kEnvs; ++env) {
      const mjModel& model = rig.model(env);
      const double scale = model.body_mass[1] / original.body_mass[1];
      masses.insert(scale);
      EXPECT_GE(scale, 0.5);
      EXPECT_LE(scale, 2);
      for (int i = 1; i < model.nbody; ++i) {
        EXPECT_DOUBLE_EQ(model.body_mass[i], scale * original.body_mass[i]);
        EXPECT_DOUBLE_EQ(model.body_inertia[3 * i + 1],
                         scale * original.body_inertia[3 * i + 1]);
        for (int k = 3 * i; k < 3 * i + 3; ++k) {
          const double offset = model.body_ipos[k] - original.body_ipos[k];
          EXPECT_GE(offset, -0.0101);
          EXPECT_LE(offset, 0.0201);
        }
      }
      frictions.insert(model.geom_friction[0]);
      for (int i = 0; i < model.ngeom; ++i) {
        EXPECT_GE(model.geom_friction[3 * i], double{0.2F});
        EXPECT_LE(model.geom_friction[3 * i], double{0.6F});
        EXPECT_EQ(model.geom_friction[3 * i], model.geom_friction[0]);
      }
      for (int i = 0; i < model.npair; ++i) {
        EXPECT_EQ(model.pair_friction[5 * i], model.geom_friction[0]);
        EXPECT_EQ(model.pair_friction[5 * i + 1], model.geom_friction[0]);
      }
      const double strength =
          model.actuator_gainprm[0] / original.actuator_gainprm[0];
      strengths.insert(strength);
      EXPECT_GE(strength, 0.7 - 1e-7);
      EXPECT_LE(strength, 1.3 + 1e-7);
    }
    EXPECT_EQ(masses.size(), kEnvs) << name;
    EXPECT_EQ(frictions.size(), kEnvs) << name;
    EXPECT_EQ(strengths.size(), kEnvs) << name;
  }
}

TEST_F(MujocoRandomizationTest, TheSameSeedDrawsTheSameAgain) {
  const rpc::SimulationContractT contract = WholeContract();
  RandomizationRig rig = Make("commanded rover", 2);
  RandomizationRig same = Make("commanded rover", 2);
  RandomizationRig next = Make("commanded rover", 2);
  RandomizationRig chosen = Make("commanded rover", 2);
  ASSERT_TRUE(rig.Take(&contract, 3).ok());
  ASSERT_TRUE(same.Take(&contract, 3).ok());
  ASSERT_TRUE(next.Take(&contract, 4).ok());
  ASSERT_TRUE(chosen.Take(&contract, {}).ok());
  std::vector<std::vector<char>> models;
  for (int episode = 0; episode < 3; ++episode) {
    for (RandomizationRig* each : {&rig, &same, &next, &chosen}) each->Reset(1);
    EXPECT_EQ(Bytes(rig.model(0)), Bytes(same.model(0)));
    // Environment 1 draws what environment 0 does from the next seed; later on
    // only one of the two has drawn pushes.
    if (episode == 0) {
      EXPECT_EQ(Bytes(rig.model(1)), Bytes(next.model(0)));
    }
    EXPECT_NE(Bytes(rig.model(0)), Bytes(rig.model(1)));
    EXPECT_NE(Bytes(rig.model(0)), Bytes(chosen.model(0)));
    models.push_back(Bytes(rig.model(0)));
    const std::vector<double> trajectory = Trajectory(rig, 100);
    EXPECT_EQ(trajectory, Trajectory(same, 100));
    EXPECT_NE(trajectory, Trajectory(next, 100));
  }
  EXPECT_NE(models[0], models[1]);
  EXPECT_NE(models[1], models[2]);
  // Taken on again, it starts again.
  ASSERT_TRUE(rig.Take(&contract, 3).ok());
  rig.Reset(1);
  EXPECT_EQ(Bytes(rig.model(0)), models[0]);
}

TEST_F(MujocoRandomizationTest, WithoutAContractEverythingIsAsItWas) {
  for (const std::string name :
       {"HalfCheetah-v5", "Hopper-v5", "Walker2d-v5", "Ant-v5", "Humanoid-v5",
        "HumanoidStandup-v5", "Reacher-v5", "Pusher-v5", "Swimmer-v5",
        "InvertedPendulum-v5", "servo arm", "commanded rover"}) {
    RandomizationRig rig = Make(name, 2);
    RandomizationRig untouched = Make(name, 2);
    const std::vector<char> original = Bytes(rig.original());
    const rpc::SimulationContractT contract = WholeContract();
    ASSERT_TRUE(rig.Take({0}, &contract, 3).ok());
    for (int episode = 0; episode < 2; ++episode) {
      rig.Reset(1);
      EXPECT_NE(Bytes(rig.model(0)), original) << name;
      EXPECT_EQ(&rig.model(1), &rig.original()) << name;
      for (int step = 0; step < 20; ++step) rig.Step(0, ActionOf(step));
    }
    ASSERT_TRUE(rig.Take(nullptr, {}).ok());
    rig.Reset(9);
    untouched.Reset(9);
    EXPECT_EQ(Bytes(rig.model(0)), original) << name;
    EXPECT_EQ(&rig.model(1), &rig.original()) << name;
    EXPECT_EQ(Trajectory(rig, 100), Trajectory(untouched, 100)) << name;
  }
}

TEST_F(MujocoRandomizationTest, HoldsFromTheNextResetOn) {
  RandomizationRig rig = Make("commanded rover", 1);
  RandomizationRig untouched = Make("commanded rover", 1);
  rig.Reset(1);
  untouched.Reset(1);
  const rpc::SimulationContractT contract = WholeContract();
  ASSERT_TRUE(rig.Take(&contract, 3).ok());
  EXPECT_EQ(Bytes(rig.model(0)), Bytes(rig.original()));
  EXPECT_EQ(Trajectory(rig, 100), Trajectory(untouched, 100));
  rig.Reset(1);
  const std::vector<char> drawn = Bytes(rig.model(0));
  EXPECT_NE(drawn, Bytes(rig.original()));
  ASSERT_TRUE(rig.Take(nullptr, {}).ok());
  for (int step = 0; step < 20; ++step) rig.Step(0);
  EXPECT_EQ(Bytes(rig.model(0)), drawn);
  rig.Reset(1);
  EXPECT_EQ(Bytes(rig.model(0)), Bytes(rig.original()));
}

TEST_F(MujocoRandomizationTest, AWrongContractChangesNothing) {
  RandomizationRig rig = Make("rover", 1);
  rpc::SimulationContractT contract = ModelContract();
  ASSERT_TRUE(rig.Take(&contract, 3).ok());
  rig.Reset(1);
  const std::vector<char> first = Bytes(rig.model(0));
  ASSERT_TRUE(rig.Take(&contract, 3).ok());
  contract.mass_scale_range = {2, 1};
  EXPECT_EQ(CodeOf(rig.Take(&contract, 4).status()),
            ErrorCode::kInvalidArgument);
  rig.Reset(1);
  EXPECT_EQ(Bytes(rig.model(0)), first);
}

// What others move in an environment's model stays where it is, with a
// contract and after it.
TEST_F(MujocoRandomizationTest, LeavesWhatItDoesNotDraw) {
  RandomizationRig rig = Make("rover", 1);
  rig.own_model(0)->geom_pos[0] = 0.25;
  rig.own_model(0)->cam_pos0[1] = 0.5;
  const rpc::SimulationContractT contract = [] {
    rpc::SimulationContractT of_friction;
    of_friction.friction_range = {0.2F, 0.6F};
    return of_friction;
  }();
  ASSERT_TRUE(rig.Take(&contract, 3).ok());
  rig.Reset(1);
  EXPECT_EQ(rig.model(0).geom_pos[0], 0.25);
  ASSERT_TRUE(rig.Take(nullptr, {}).ok());
  rig.Reset(1);
  EXPECT_EQ(rig.model(0).geom_friction[0], rig.original().geom_friction[0]);
  EXPECT_EQ(rig.model(0).geom_pos[0], 0.25);
  EXPECT_EQ(rig.model(0).cam_pos0[1], 0.5);
}

// Bare MuJoCo, with a model that was changed the same way by hand.
TEST_F(MujocoRandomizationTest, StepsAsMujocoDoesWithTheSameModel) {
  for (const std::string name : {"HalfCheetah-v5", "Ant-v5", "rover"}) {
    RandomizationRig rig = Make(name, 1);
    const rpc::SimulationContractT contract = ModelContract();
    ASSERT_TRUE(rig.Take(&contract, 3).ok());
    rig.Reset(1);
    const mjModel& drawn = rig.model(0);
    const ModelPtr model = CopyModel(rig.original()).value();
    const DataPtr data = MakeData(*model).value();
    const auto copy = [](const auto* from, auto* to, auto count) {
      std::copy_n(from, count, to);
    };
    copy(drawn.body_mass, model->body_mass, drawn.nbody);
    copy(drawn.body_inertia, model->body_inertia, 3 * drawn.nbody);
    copy(drawn.body_ipos, model->body_ipos, 3 * drawn.nbody);
    copy(drawn.geom_friction, model->geom_friction, 3 * drawn.ngeom);
    copy(drawn.geom_solref, model->geom_solref, mjNREF * drawn.ngeom);
    copy(drawn.pair_friction, model->pair_friction, 5 * drawn.npair);
    copy(drawn.pair_solref, model->pair_solref, mjNREF * drawn.npair);
    copy(drawn.hfield_data, model->hfield_data, drawn.nhfielddata);
    copy(drawn.actuator_gainprm, model->actuator_gainprm,
         mjNGAIN * drawn.nactuator);
    copy(drawn.actuator_biasprm, model->actuator_biasprm,
         mjNBIAS * drawn.nactuator);
    copy(drawn.actuator_forcerange, model->actuator_forcerange,
         2 * drawn.nactuator);
    mj_setConst(model.get(), data.get());
    mj_resetData(model.get(), data.get());
    copy(rig.data(0).qpos, data->qpos, drawn.nq);
    copy(rig.data(0).qvel, data->qvel, drawn.nv);
    mj_forward(model.get(), data.get());
    for (int step = 0; step < 50; ++step) {
      rig.Step(0, ActionOf(step));
      std::fill_n(data->ctrl, drawn.nu, ActionOf(step));
      while (data->time < rig.data(0).time) mj_step(model.get(), data.get());
      ASSERT_EQ(std::memcmp(data->qpos, rig.data(0).qpos,
                            sizeof(mjtNum) * static_cast<size_t>(drawn.nq)),
                0)
          << name << ", step " << step;
    }
  }
}

// The force of each actuator at the same state, by the factor; at its limit,
// too.
TEST_F(MujocoRandomizationTest, StrengthScalesForcesExactly) {
  for (const float action : {0.01F, 1.0F}) {
    RandomizationRig rig = Make("servo arm", 1);
    RandomizationRig plain = Make("servo arm", 1);
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

// A servo that is told 0 comes to rest at the offset, and says so in the
// joint's own unit, though its gear is 2.
TEST_F(MujocoRandomizationTest, AnOffsetIsWhereAMotorThatIsToldZeroRests) {
  RandomizationRig rig = Make("rover", 1);
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

// 4,000 draws: the deviation is off by 1.1 % at one sigma.
TEST_F(MujocoRandomizationTest, NoiseHasItsDeviation) {
  RandomizationRig rig = Make("rover", 4000);
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
    EXPECT_LE(std::abs(data.qpos[7]), 1);  // its limit
    mju_quat2Vel(vector, data.qpos + 8, 1);
    EXPECT_LE(mju_norm3(vector), 0.5 + 1e-9);  // the tail's
    speed.push_back(data.qvel[6]);
    for (int i = 0; i < 6; ++i) EXPECT_EQ(data.qvel[i], 0);
    for (int i = 12; i < 19; ++i) {  // the ball that lies about
      EXPECT_EQ(data.qpos[i], rig.original().qpos0[i]);
    }
  }
  EXPECT_NEAR(Deviation(x), 0.1, 0.005);
  EXPECT_NEAR(Deviation(y), 0.2, 0.01);
  EXPECT_NEAR(Deviation(turn), 0.05, 0.0025);
  EXPECT_NEAR(Deviation(mast), 0.3, 0.015);
  EXPECT_NEAR(Deviation(speed), 0.4, 0.02);
}

TEST_F(MujocoRandomizationTest, APlanarRootIsMovedAlongItsSlides) {
  RandomizationRig rig = Make("HalfCheetah-v5", 1);
  RandomizationRig plain = Make("HalfCheetah-v5", 1);
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

// A push is where a step differs from bare MuJoCo's from the same state.
TEST_F(MujocoRandomizationTest, PushesComeInTime) {
  for (const std::string name : {"Ant-v5", "HalfCheetah-v5", "Swimmer-v5"}) {
    RandomizationRig rig = Make(name, 1);
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

// In weightlessness, without contacts, nothing changes it in the step.
TEST_F(MujocoRandomizationTest, APushHasTheDrawnSize) {
  RandomizationRig rig = Make("rover", 1);
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

TEST_F(MujocoRandomizationTest, ACommandIsObservedAndDrawnAnewInTime) {
  RandomizationRig rig = Make("commanded rover", 1);
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
      // Standing twice running looks like standing once.
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
  EXPECT_GT(drawn, 60);  // of 20 s
  EXPECT_GT(stood, 10);
  EXPECT_LT(stood, drawn / 2);
}

TEST_F(MujocoRandomizationTest, TerrainIsWhatABodyRestsOn) {
  RandomizationRig rig = Make("rover", 1);
  rpc::SimulationContractT contract;
  contract.terrain_type = "slope";
  contract.terrain_difficulty = 1;
  EXPECT_TRUE(rig.Take(&contract, 3).value().empty());
  rig.Reset(1);
  // The ball lies 2 m out of 6: 1/3 of 0.5 m up.
  for (int step = 0; step < 60; ++step) rig.Step(0);
  EXPECT_NEAR(rig.data(0).qpos[14], 0.1 + 0.5 / 3, 0.05);
}

}  // namespace
}  // namespace tandem
