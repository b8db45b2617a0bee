// CartPole-v1, as Gymnasium 1.4.0 defines it: a cart that balances a pole.
//
// float32[4] observations: the cart's position and velocity, the pole's angle
// from upright and its velocity (metres, radians, seconds). Action: 0 pushes to
// the left, 1 to the right; anything else fails the exchange, and leaves that
// environment as it was. Terminates beyond 2.4 m or 12 degrees, truncated after
// 500 steps. Reward: 1 for each step until it has terminated, 0 beyond that;
// with the option `sutton_barto_reward` 0, and -1 where it is terminated.

#ifndef TANDEM_ENGINE_ADAPTER_CLASSIC_CONTROL_CART_POLE_H_
#define TANDEM_ENGINE_ADAPTER_CLASSIC_CONTROL_CART_POLE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine_adapter/core/engine.h"
#include "engine_adapter/core/task_options.h"

namespace tandem {

// kInvalidArgument for options that it does not have.
absl::StatusOr<std::unique_ptr<Engine>> MakeCartPole(TaskRequest request);

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_CLASSIC_CONTROL_CART_POLE_H_
