#include "engine_adapter/mujoco/environment/mujoco_randomization.h"

#include <gtest/gtest.h>
#include <mujoco/mujoco.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/error.h"
#include "engine_adapter/mujoco/environment/testing/randomization_rig.h"
#include "engine_adapter/mujoco/model/mujoco_log.h"

namespace tandem {
namespace {

// Returns a model's bytes in MuJoCo's file format.
std::vector<char> Bytes(const mjModel& model) {
  std::vector<char> bytes(static_cast<size_t>(mj_sizeModel(&model)));
  mj_saveModel(&model, nullptr, bytes.data(), static_cast<int>(bytes.size()));
  return bytes;
}

float ActionOf(int step) { return step % 7 < 4 ? 0.4F : -0.5F; }

// Returns environment 0's states and observations of the given steps.
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

class MujocoRandomizationTest : public testing::Test {
 protected:
  void SetUp() override {
    InstallMujocoLog([](absl::string_view) {});
  }
  void TearDown() override { InstallMujocoLog(nullptr); }
};

// One field of the message, with other fields that it needs to have an effect;
// `without` is the same message without the field.
struct Field {
  const char* name;
  rpc::SimulationContractT with;
  rpc::SimulationContractT without;
};

std::vector<Field> AllFields() {
  using C = rpc::SimulationContractT;
  using Range = std::vector<float>;
  std::vector<Field> fields;
  const auto only = [](auto member, const auto& value) {
    C contract;
    contract.*member = value;
    return contract;
  };
  const auto add = [&](const char* name, auto member, const auto& value,
                       const C& also = {}) {
    fields.push_back({.name = name, .with = also, .without = also});
    fields.back().with.*member = value;
  };
  const C command = only(&C::vel_command_x_range, Range{1, 2});
  add("pose_position_noise", &C::pose_position_noise, Range{0.1F, 0.1F, 0.1F});
  add("pose_orientation_noise", &C::pose_orientation_noise, 0.1F);
  add("joint_position_noise", &C::joint_position_noise, 0.1F);
  add("joint_velocity_noise", &C::joint_velocity_noise, 0.1F);
  add("friction_range", &C::friction_range, Range{0.1F, 0.2F});
  add("restitution_range", &C::restitution_range, Range{0.7F, 0.8F});
  add("mass_scale_range", &C::mass_scale_range, Range{1.5F, 2});
  add("com_offset_range", &C::com_offset_range, Range{0.01F, 0.02F});
  add("motor_strength_range", &C::motor_strength_range, Range{0.5F, 0.6F});
  add("motor_offset_range", &C::motor_offset_range, Range{0.1F, 0.2F});
  add("push_interval_range", &C::push_interval_range, Range{0.1F, 0.2F},
      only(&C::push_velocity_range, Range{1, 2}));
  add("push_velocity_range", &C::push_velocity_range, Range{1, 2},
      only(&C::push_interval_range, Range{0.1F, 0.2F}));
  add("terrain_type", &C::terrain_type, "rough",
      only(&C::terrain_difficulty, 1.0F));
  add("terrain_difficulty", &C::terrain_difficulty, 1.0F,
      only(&C::terrain_type, "slope"));
  add("vel_command_x_range", &C::vel_command_x_range, Range{1, 2});
  add("vel_command_y_range", &C::vel_command_y_range, Range{1, 2});
  add("vel_command_yaw_range", &C::vel_command_yaw_range, Range{1, 2});
  add("vel_command_resampling_time_range",
      &C::vel_command_resampling_time_range, Range{0.1F, 0.2F}, command);
  add("vel_command_standing_probability", &C::vel_command_standing_probability,
      1.0F, command);
  return fields;
}

struct Uses {
  const char* name;
  std::set<std::string> unused;
};

// Each field changes the simulation, or is reported as unused.
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
      RandomizationRig with = RandomizationRig::Of(uses.name, 1);
      RandomizationRig without = RandomizationRig::Of(uses.name, 1);
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
    RandomizationRig rig = RandomizationRig::Of(name, kEnvs);
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
  RandomizationRig rig = RandomizationRig::Of("commanded rover", 2);
  RandomizationRig same = RandomizationRig::Of("commanded rover", 2);
  RandomizationRig next = RandomizationRig::Of("commanded rover", 2);
  RandomizationRig chosen = RandomizationRig::Of("commanded rover", 2);
  ASSERT_TRUE(rig.Take(&contract, 3).ok());
  ASSERT_TRUE(same.Take(&contract, 3).ok());
  ASSERT_TRUE(next.Take(&contract, 4).ok());
  ASSERT_TRUE(chosen.Take(&contract, {}).ok());
  std::vector<std::vector<char>> models;
  for (int episode = 0; episode < 3; ++episode) {
    for (RandomizationRig* each : {&rig, &same, &next, &chosen}) each->Reset(1);
    EXPECT_EQ(Bytes(rig.model(0)), Bytes(same.model(0)));
    // Environment 1 draws as environment 0 does with the next seed; later only
    // one of the two has drawn pushes.
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
  // The same contract, set again, draws from the start.
  ASSERT_TRUE(rig.Take(&contract, 3).ok());
  rig.Reset(1);
  EXPECT_EQ(Bytes(rig.model(0)), models[0]);
}

TEST_F(MujocoRandomizationTest, WithoutAContractEverythingIsAsItWas) {
  for (const std::string name :
       {"HalfCheetah-v5", "Hopper-v5", "Walker2d-v5", "Ant-v5", "Humanoid-v5",
        "HumanoidStandup-v5", "Reacher-v5", "Pusher-v5", "Swimmer-v5",
        "InvertedPendulum-v5", "servo arm", "commanded rover"}) {
    RandomizationRig rig = RandomizationRig::Of(name, 2);
    RandomizationRig untouched = RandomizationRig::Of(name, 2);
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
    EXPECT_EQ(&rig.model(0), &rig.original()) << name;  // own copy is freed
    EXPECT_EQ(&rig.model(1), &rig.original()) << name;
    EXPECT_EQ(Trajectory(rig, 100), Trajectory(untouched, 100)) << name;
  }
}

TEST_F(MujocoRandomizationTest, HoldsFromTheNextResetOn) {
  RandomizationRig rig = RandomizationRig::Of("commanded rover", 1);
  RandomizationRig untouched = RandomizationRig::Of("commanded rover", 1);
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
  EXPECT_EQ(&rig.model(0), &rig.original());
  ASSERT_TRUE(rig.Take(&contract, 3).ok());
  rig.Reset(1);
  EXPECT_EQ(Bytes(rig.model(0)), drawn);
}

TEST_F(MujocoRandomizationTest, AWrongContractChangesNothing) {
  RandomizationRig rig = RandomizationRig::Of("rover", 1);
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

// Values that other services change in an environment's model stay, with a
// contract and after it.
TEST_F(MujocoRandomizationTest, LeavesOtherValues) {
  RandomizationRig rig = RandomizationRig::Of("rover", 1);
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

// Compares with bare MuJoCo and a model that the test changed in the same way.
TEST_F(MujocoRandomizationTest, StepsAsMujocoDoesWithTheSameModel) {
  for (const std::string name : {"HalfCheetah-v5", "Ant-v5", "rover"}) {
    RandomizationRig rig = RandomizationRig::Of(name, 1);
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

}  // namespace
}  // namespace tandem
