#include "engine_adapter/mujoco/randomization/contract.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "base/error.h"

namespace tandem {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Contract, EmptyContractChangesNothing) {
  const Contract contract = ReadContract({}).value();
  EXPECT_FALSE(contract.friction.has_value());
  EXPECT_FALSE(contract.terrain.has_value());
  EXPECT_EQ(contract.pose_position_noise, (std::array<double, 3>{}));
  EXPECT_EQ(contract.joint_velocity_noise, 0);
}

TEST(Contract, ReadsEachFieldFromTheMatchingMessageField) {
  rpc::SimulationContractT message;
  message.pose_position_noise = {0.5F, 1, 1.5F};
  message.pose_orientation_noise = 2;
  message.joint_position_noise = 3;
  message.joint_velocity_noise = 4;
  message.friction_range = {5, 6};
  message.restitution_range = {0, 1};
  message.mass_scale_range = {7, 8};
  message.com_offset_range = {-9, 9};
  message.motor_strength_range = {10, 11};
  message.motor_offset_range = {-12, -11};
  message.push_interval_range = {13, 14};
  message.push_velocity_range = {15, 16};
  message.terrain_type = "stairs";
  message.terrain_difficulty = 0.25F;
  message.vel_command_x_range = {-1, 17};
  message.vel_command_y_range = {-2, 18};
  message.vel_command_yaw_range = {-3, 19};
  message.vel_command_resampling_time_range = {20, 21};
  message.vel_command_standing_probability = 0.75F;
  const Contract contract = ReadContract(message).value();
  EXPECT_EQ(contract.pose_position_noise[1], 1);
  EXPECT_EQ(contract.pose_orientation_noise, 2);
  EXPECT_EQ(contract.joint_position_noise, 3);
  EXPECT_EQ(contract.joint_velocity_noise, 4);
  EXPECT_EQ(contract.friction->low, 5);
  EXPECT_EQ(contract.friction->high, 6);
  EXPECT_EQ(contract.restitution->high, 1);
  EXPECT_EQ(contract.mass_scale->low, 7);
  EXPECT_EQ(contract.com_offset->low, -9);
  EXPECT_EQ(contract.motor_strength->high, 11);
  EXPECT_EQ(contract.motor_offset->high, -11);
  EXPECT_EQ(contract.push_interval->low, 13);
  EXPECT_EQ(contract.push_velocity->high, 16);
  EXPECT_EQ(contract.terrain, Terrain::kStairs);
  EXPECT_EQ(contract.terrain_difficulty, 0.25);
  EXPECT_EQ(contract.velocity_command[0]->high, 17);
  EXPECT_EQ(contract.velocity_command[1]->high, 18);
  EXPECT_EQ(contract.velocity_command[2]->low, -3);
  EXPECT_EQ(contract.command_resampling_time->high, 21);
  EXPECT_EQ(contract.standing_probability, 0.75);
}

struct Wrong {
  const char* field;
  const char* found;  // as in the error's text
  std::function<void(rpc::SimulationContractT&)> set;
};

TEST(Contract, RefusesInvalidValueAndNamesItsField) {
  const std::vector<Wrong> wrongs = {
      {"pose_position_noise", "[1, 2]",
       [](auto& c) {
         c.pose_position_noise = {1, 2};
       }},
      {"pose_position_noise", "-2",
       [](auto& c) {
         c.pose_position_noise = {1, -2, 0};
       }},
      {"pose_orientation_noise", "-1",
       [](auto& c) { c.pose_orientation_noise = -1; }},
      {"joint_position_noise", "nan",
       [](auto& c) { c.joint_position_noise = kNan; }},
      {"joint_velocity_noise", "inf",
       [](auto& c) { c.joint_velocity_noise = kInfinity; }},
      {"friction_range", "[1]", [](auto& c) { c.friction_range = {1}; }},
      {"friction_range", "[-1, 1]",
       [](auto& c) {
         c.friction_range = {-1, 1};
       }},
      {"friction_range", "[2, 1]",
       [](auto& c) {
         c.friction_range = {2, 1};
       }},
      {"friction_range", "nan",
       [](auto& c) {
         c.friction_range = {kNan, 1};
       }},
      {"friction_range", "inf",
       [](auto& c) {
         c.friction_range = {0, kInfinity};
       }},
      {"restitution_range", "1.5",
       [](auto& c) {
         c.restitution_range = {0, 1.5F};
       }},
      {"mass_scale_range", "[0, 1]",
       [](auto& c) {
         c.mass_scale_range = {0, 1};
       }},
      {"com_offset_range", "[1, 2, 3]",
       [](auto& c) {
         c.com_offset_range = {1, 2, 3};
       }},
      {"motor_strength_range", "-1",
       [](auto& c) {
         c.motor_strength_range = {-1, 1};
       }},
      {"motor_offset_range", "[1, -1]",
       [](auto& c) {
         c.motor_offset_range = {1, -1};
       }},
      {"push_interval_range", "-1",
       [](auto& c) {
         c.push_interval_range = {-1, 1};
       }},
      {"push_velocity_range", "-1",
       [](auto& c) {
         c.push_velocity_range = {-1, 1};
       }},
      {"terrain_type", "'moon'; ", [](auto& c) { c.terrain_type = "moon"; }},
      {"terrain_type", "flat, rough, slope, stairs",
       [](auto& c) { c.terrain_type = "moon"; }},
      {"terrain_difficulty", "1.5",
       [](auto& c) { c.terrain_difficulty = 1.5F; }},
      {"vel_command_x_range", "[1]",
       [](auto& c) { c.vel_command_x_range = {1}; }},
      {"vel_command_y_range", "[1]",
       [](auto& c) { c.vel_command_y_range = {1}; }},
      {"vel_command_yaw_range", "[1]",
       [](auto& c) { c.vel_command_yaw_range = {1}; }},
      {"vel_command_resampling_time_range", "-1",
       [](auto& c) {
         c.vel_command_resampling_time_range = {-1, 1};
       }},
      {"vel_command_standing_probability", "-0.5",
       [](auto& c) { c.vel_command_standing_probability = -0.5F; }},
  };
  for (const Wrong& wrong : wrongs) {
    rpc::SimulationContractT message;
    wrong.set(message);
    const absl::Status status = ReadContract(message).status();
    EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument) << wrong.field;
    EXPECT_TRUE(absl::StartsWith(status.message(), wrong.field)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), wrong.found)) << status;
  }
}

}  // namespace
}  // namespace tandem
