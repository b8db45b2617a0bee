// Contract: a SimulationContract with checked numbers.
//
// Data flow: the message -> ReadContract -> Contract -> draws at each reset.
// Ownership: a value; each environment has its own.
//
//   absl::StatusOr<Contract> contract = ReadContract(message);
//   if (contract->friction) friction = contract->friction->Draw(random);

#pragma once

#include <array>
#include <optional>

#include "absl/status/statusor.h"
#include "engine_adapter/core/env_random.h"
#include "engine_adapter/mujoco/randomization/terrain.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

struct DrawRange {
  double low = 0;
  double high = 0;

  double Draw(EnvRandom& random) const { return random.Uniform(low, high); }
  bool operator==(const DrawRange&) const = default;
};

// The message's fields, in its order. The message's comments define units and
// meaning. If a range is absent or a noise is 0, the task's value holds. A
// default Contract changes nothing.
struct Contract {
  std::array<double, 3> pose_position_noise = {};
  double pose_orientation_noise = 0;
  double joint_position_noise = 0;
  double joint_velocity_noise = 0;
  std::optional<DrawRange> friction;
  std::optional<DrawRange> restitution;
  std::optional<DrawRange> mass_scale;
  std::optional<DrawRange> com_offset;
  std::optional<DrawRange> motor_strength;
  std::optional<DrawRange> motor_offset;
  std::optional<DrawRange> push_interval;
  std::optional<DrawRange> push_velocity;
  std::optional<Terrain> terrain;
  double terrain_difficulty = 0;
  // x, y, yaw.
  std::array<std::optional<DrawRange>, 3> velocity_command;
  std::optional<DrawRange> command_resampling_time;
  double standing_probability = 0;

  bool operator==(const Contract&) const = default;

  // For saved states.
  template <typename Bytes, typename C>
  static void Transfer(Bytes& bytes, C& contract) {
    bytes.Values(
        contract.pose_position_noise, contract.pose_orientation_noise,
        contract.joint_position_noise, contract.joint_velocity_noise,
        contract.friction, contract.restitution, contract.mass_scale,
        contract.com_offset, contract.motor_strength, contract.motor_offset,
        contract.push_interval, contract.push_velocity, contract.terrain,
        contract.terrain_difficulty, contract.velocity_command,
        contract.command_resampling_time, contract.standing_probability);
  }
};

// kInvalidArgument for the first invalid field; the text has its name, the
// expected and the found value.
absl::StatusOr<Contract> ReadContract(const rpc::SimulationContractT& message);

}  // namespace tandem
