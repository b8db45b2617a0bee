// Randomization: one environment's contract, and its drawn values.
//
// Data flow: the contract and a random stream -> the environment's own model,
// its initial state, pushes, the velocity command.
// Ownership: a MujocoEnvironment, whose thread calls: once an episode
//   DrawModel, mj_resetData, Task::Reset, ShakeState, mj_forward
// and around each step BeforeStep, AfterStep. No call allocates.
//
//   environment.SetRandomization(std::make_unique<Randomization>(
//       original, parts, contract, EnvRandom(seed)));

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_RANDOMIZATION_RANDOMIZATION_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_RANDOMIZATION_RANDOMIZATION_H_

#include <mujoco/mujoco.h>

#include <array>
#include <memory>

#include "engine_adapter/core/env_random.h"
#include "engine_adapter/mujoco/randomization/contract.h"
#include "engine_adapter/mujoco/randomization/floating_base.h"
#include "engine_adapter/mujoco/randomization/model_parts.h"

namespace tandem {

// Normal noise: on the floating base's place and turn (of a free or ball joint
// by a rotation vector of three draws), on the other joints' positions, which
// stay within their limits, and velocities. Other free joints, of things that
// lie about, stay. Draws once for each number that it changes, in this order
// and the model's. No allocation.
void ShakeState(const Contract& contract, const ModelParts& parts,
                EnvRandom& random, const mjModel& model, mjData* data);

// Sudden changes of a robot's horizontal velocity. Does nothing unless the
// contract has both interval and velocity and the base moves horizontally.
class Pushes {
 public:
  // An episode starts, at time 0: the first push is an interval away.
  void Start(const Contract& contract, EnvRandom& random);

  // Pushes once if it is time for it: adds a velocity of drawn size in a drawn
  // direction, along x and y; where the base moves along one of them only, to
  // and fro along that. Then draws the next interval, which begins now.
  void Push(const Contract& contract, const FloatingBase& base,
            EnvRandom& random, const mjModel& model, mjData* data);

 private:
  double next_secs_ = 0;  // of simulated time
};

// The velocity that a robot is commanded, drawn again after each resampling
// time.
class VelocityCommand {
 public:
  // An episode starts, at time 0, with a drawn command.
  void Start(const Contract& contract, EnvRandom& random);
  // Draws another one if it is time for it; without a resampling time never.
  // `tolerance_secs` too early counts as in time.
  void Update(const Contract& contract, EnvRandom& random, double now_secs,
              double tolerance_secs);

  // Metres a second forward and to the left, radians a second to the left; 0
  // for what the contract has no range for. All 0: stand still.
  const std::array<double, 3>& values() const { return values_; }

 private:
  void Draw(const Contract& contract, EnvRandom& random, double now_secs);

  std::array<double, 3> values_ = {};
  double next_secs_ = 0;  // of simulated time
};

// With an empty contract all values are those of `original`, the task's own
// model.
class Randomization {
 public:
  Randomization(std::shared_ptr<const mjModel> original,
                std::shared_ptr<const ModelParts> parts,
                const Contract& contract, const EnvRandom& random);

  // Whether its contract changes nothing.
  bool is_empty() const { return contract_ == Contract(); }

  // Of the environment's own model; `data` is scratch. Throws MujocoError.
  void DrawModel(mjModel* model, mjData* data);
  void ShakeState(const mjModel& model, mjData* data);
  void BeforeStep(const mjModel& model, mjData* data);
  void AfterStep(const mjModel& model, const mjData& data);

  const std::array<double, 3>& velocity_command() const {
    return command_.values();
  }

 private:
  std::shared_ptr<const mjModel> original_;
  std::shared_ptr<const ModelParts> parts_;
  Contract contract_;
  EnvRandom random_;
  Pushes pushes_;
  VelocityCommand command_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_RANDOMIZATION_RANDOMIZATION_H_
