// The classic control tasks, with Gymnasium's names. They use no physics
// library.
//
// Data flow: name and request -> Engine.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine_adapter/core/task_options.h"
#include "engine_adapter/engine.h"

namespace tandem {

// In alphabetical order.
std::vector<std::string> ClassicControlTasks();

// kInvalidArgument for an unknown task or option; the text has the known ones.
absl::StatusOr<std::unique_ptr<Engine>> MakeClassicControlEngine(
    const std::string& task, TaskRequest request);

// CartPole-v1, as Gymnasium 1.4.0 defines it: a cart that balances a pole.
//
// float32[4] observations: the cart's position and velocity, the pole's angle
// from upright and its velocity (metres, radians, seconds). Action 0 pushes to
// the left, 1 to the right. Any other action fails the exchange and does not
// change that environment. Terminates beyond 2.4 m or 12 degrees. Truncates
// after 500 steps. Reward: 1 for each step up to the termination, then 0. With
// the option `sutton_barto_reward`: 0, and -1 when terminated.
// kInvalidArgument: unknown option.
absl::StatusOr<std::unique_ptr<Engine>> MakeCartPole(TaskRequest request);

// Pendulum-v1, as Gymnasium 1.4.0 defines it: swing a pendulum up.
//
// float32[3] observations: cosine and sine of the angle from upright, and its
// velocity (radians, seconds), limited to -8 .. 8. Action: a torque, limited to
// -2 .. 2; NaN makes the state NaN until the next reset. Reward:
// -(angle^2 + 0.1 velocity^2 + 0.001 torque^2). Never terminates; truncates
// after 200 steps. The option `g` is gravity, 10 by default.
// kInvalidArgument: unknown option.
absl::StatusOr<std::unique_ptr<Engine>> MakePendulum(TaskRequest request);

}  // namespace tandem
