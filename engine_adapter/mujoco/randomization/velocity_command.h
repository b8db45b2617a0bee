// VelocityCommand: where a robot is told to go, drawn anew now and then.
//
// Data flow: reset -> Start; after each step -> Update; values() ->
// observation.
//
//   command.Start(contract, random);
//   command.Update(contract, random, data.time, timestep / 2);

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_RANDOMIZATION_VELOCITY_COMMAND_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_RANDOMIZATION_VELOCITY_COMMAND_H_

#include <array>

#include "engine_adapter/core/env_random.h"
#include "engine_adapter/mujoco/randomization/contract.h"

namespace tandem {

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

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_RANDOMIZATION_VELOCITY_COMMAND_H_
