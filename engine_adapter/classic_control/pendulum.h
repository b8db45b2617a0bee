// Pendulum-v1, as Gymnasium 1.4.0 defines it: a pendulum to be swung up.
//
// float32[3] observations: cosine and sine of its angle from upright, and its
// velocity (radians, seconds), which stays within 8. Action: a torque, of which
// what is beyond 2 is cut off; NaN makes the state NaN until the next reset.
// Reward: -(angle^2 + 0.1 velocity^2 + 0.001 torque^2). Never terminates,
// truncated after 200 steps. The option `g` is gravity, 10.

#ifndef TANDEM_ENGINE_ADAPTER_CLASSIC_CONTROL_PENDULUM_H_
#define TANDEM_ENGINE_ADAPTER_CLASSIC_CONTROL_PENDULUM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine_adapter/core/engine.h"
#include "engine_adapter/core/task_options.h"

namespace tandem {

// kInvalidArgument for options that it does not have.
absl::StatusOr<std::unique_ptr<Engine>> MakePendulum(TaskRequest request);

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_CLASSIC_CONTROL_PENDULUM_H_
