#include "engine_adapter/conformance/reference/counter_flags.h"

#include <cstdint>

#include "absl/flags/flag.h"

ABSL_FLAG(uint32_t, obs_size, 4, "number of observations, at least 1");
ABSL_FLAG(uint32_t, act_size, 1, "number of actions, at least 1");
ABSL_FLAG(uint32_t, terminate_after, 0,
          "number of steps after which episodes terminate; 0: never");
ABSL_FLAG(uint32_t, truncate_after, 0,
          "number of steps after which episodes are truncated; 0: never");

namespace tandem {

CounterEngine::Options CounterOptions(const ServerOptions& server) {
  return {.num_envs = server.num_envs,
          .obs_size = absl::GetFlag(FLAGS_obs_size),
          .act_size = absl::GetFlag(FLAGS_act_size),
          .terminate_after = absl::GetFlag(FLAGS_terminate_after),
          .truncate_after = absl::GetFlag(FLAGS_truncate_after)};
}

}  // namespace tandem
