// The classic control tasks, with Gymnasium's names: small, and without a
// physics library.
//
// Data flow: name and request -> Engine.
//
//   TaskRequest request = {.num_envs = 64, .threads = 2};
//   request.options = *TaskOptions::Parse(R"({"g": 9.81})");
//   MakeClassicControlEngine("Pendulum-v1", std::move(request));

#ifndef TANDEM_ENGINE_ADAPTER_CLASSIC_CONTROL_CLASSIC_CONTROL_TASKS_H_
#define TANDEM_ENGINE_ADAPTER_CLASSIC_CONTROL_CLASSIC_CONTROL_TASKS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine_adapter/core/engine.h"
#include "engine_adapter/core/task_options.h"

namespace tandem {

// In alphabetical order.
std::vector<std::string> ClassicControlTasks();

// kInvalidArgument for an unknown task or option; the text has the known ones.
absl::StatusOr<std::unique_ptr<Engine>> MakeClassicControlEngine(
    const std::string& task, TaskRequest request);

// CartPole-v1, as Gymnasium 1.4.0 defines it: a cart that balances a pole.
//
// float32[4] observations: the cart's position and velocity, the pole's angle
// from upright and its velocity (metres, radians, seconds). Action: 0 pushes to
// the left, 1 to the right; anything else fails the exchange, and leaves that
// environment as it was. Terminates beyond 2.4 m or 12 degrees, truncated after
// 500 steps. Reward: 1 for each step until it has terminated, 0 beyond that;
// with the option `sutton_barto_reward` 0, and -1 where it is terminated.
// kInvalidArgument for options that it does not have.
absl::StatusOr<std::unique_ptr<Engine>> MakeCartPole(TaskRequest request);

// Pendulum-v1, as Gymnasium 1.4.0 defines it: a pendulum to be swung up.
//
// float32[3] observations: cosine and sine of its angle from upright, and its
// velocity (radians, seconds), which stays within 8. Action: a torque, of which
// what is beyond 2 is cut off; NaN makes the state NaN until the next reset.
// Reward: -(angle^2 + 0.1 velocity^2 + 0.001 torque^2). Never terminates,
// truncated after 200 steps. The option `g` is gravity, 10.
// kInvalidArgument for options that it does not have.
absl::StatusOr<std::unique_ptr<Engine>> MakePendulum(TaskRequest request);

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_CLASSIC_CONTROL_CLASSIC_CONTROL_TASKS_H_
