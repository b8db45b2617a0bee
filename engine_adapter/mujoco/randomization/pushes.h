// Pushes: sudden changes of a robot's level velocity, now and then.
//
// Data flow: reset -> Start; before each step -> Push -> mjData.qvel.
//
//   pushes.Start(contract, random);
//   pushes.Push(contract, base, random, model, data);

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_RANDOMIZATION_PUSHES_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_RANDOMIZATION_PUSHES_H_

#include <mujoco/mujoco.h>

#include "engine_adapter/core/env_random.h"
#include "engine_adapter/mujoco/randomization/contract.h"
#include "engine_adapter/mujoco/randomization/floating_base.h"

namespace tandem {

// Does nothing unless the contract has both interval and velocity and the base
// moves level.
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

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_RANDOMIZATION_PUSHES_H_
