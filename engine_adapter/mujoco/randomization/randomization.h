// Randomization: one environment's contract, and its drawn values.
//
// Data flow: the contract and a random stream -> the environment's own model,
// its initial state, pushes, the velocity command.
// Ownership: a MujocoEnvironment owns it and calls, once an episode,
//   DrawModel, mj_resetData, Task::Reset, ShakeState, mj_forward
// and BeforeStep and AfterStep at each step. No call allocates.
//
//   environment.SetRandomization(std::make_unique<Randomization>(
//       original, parts, contract, EnvRandom(seed)));

#pragma once

#include <mujoco/mujoco.h>

#include <array>
#include <memory>
#include <utility>

#include "engine_adapter/core/env_random.h"
#include "engine_adapter/core/state_bytes.h"
#include "engine_adapter/mujoco/randomization/contract.h"
#include "engine_adapter/mujoco/randomization/model_parts.h"

namespace tandem {

// With an empty contract all values are those of `original`, the task's model.
class Randomization {
 public:
  Randomization(std::shared_ptr<const mjModel> original,
                std::shared_ptr<const ModelParts> parts,
                const Contract& contract, const EnvRandom& random)
      : original_(std::move(original)),
        parts_(std::move(parts)),
        contract_(contract),
        random_(random) {}

  // Whether its contract changes nothing.
  bool is_empty() const { return contract_ == Contract(); }

  // `model` is the environment's own; `data` is scratch memory. Throws
  // MujocoError.
  void DrawModel(mjModel* model, mjData* data);

  // Starts an episode at time 0. Adds normal noise, in this order:
  //  - to the floating base's position and orientation. A free or ball joint
  //    turns by a rotation vector of three draws.
  //  - to the other joints' positions, within their limits
  //  - to the other joints' velocities
  // Other free joints do not change. Makes one draw for each changed degree of
  // freedom, in the model's order. Then draws the time of the first push, one
  // interval, and the first velocity command.
  void ShakeState(const mjModel& model, mjData* data);

  // Pushes the robot: a sudden change of its horizontal velocity. Active if the
  // contract has both interval and velocity, and the base moves horizontally.
  // If a push is due, adds a velocity of drawn size in a drawn direction. If
  // the base moves along x or y only, the direction has that axis and a drawn
  // sign. Then draws the next interval, from now on.
  void BeforeStep(const mjModel& model, mjData* data);

  // Draws a new velocity command if the resampling time has passed, or ends
  // within half a time step. Without a resampling time the command stays.
  void AfterStep(const mjModel& model, const mjData& data);

  // The contract, the random stream and what was drawn, for a saved state.
  void Save(StateWriter* to) const { Transfer(*to, *this); }
  void Read(StateReader* from);

  // The commanded velocity of a robot: forward and left in m/s, turn to the
  // left in rad/s. A component without a range is 0. All 0: stand still.
  const std::array<double, 3>& velocity_command() const {
    return velocity_command_;
  }

 private:
  template <typename Bytes, typename State>
  static void Transfer(Bytes& bytes, State& state) {
    bytes.Values(state.contract_, state.random_, state.next_push_secs_,
                 state.next_command_secs_, state.velocity_command_);
  }
  void DrawCommand(double now_secs);

  std::shared_ptr<const mjModel> original_;
  std::shared_ptr<const ModelParts> parts_;
  Contract contract_;
  EnvRandom random_;
  double next_push_secs_ = 0;  // of simulated time; so is the next one
  double next_command_secs_ = 0;
  std::array<double, 3> velocity_command_ = {};
};

}  // namespace tandem
