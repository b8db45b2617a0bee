// The smallest engine server: serves the reference engine to one client.
#include <cstdint>
#include <memory>

#include "absl/flags/flag.h"
#include "engine_adapter/host/server_main.h"
#include "engine_adapter/reference/counter_engine.h"

ABSL_FLAG(uint32_t, obs_size, 4, "number of observations, at least 1");
ABSL_FLAG(uint32_t, act_size, 1, "number of actions, at least 1");
ABSL_FLAG(uint32_t, terminate_after, 0,
          "number of steps after which episodes terminate; 0: never");
ABSL_FLAG(uint32_t, truncate_after, 0,
          "number of steps after which episodes are truncated; 0: never");

constexpr char kUsage[] =
    "Serves environments that count their steps, for tests of clients.\n\n"
    "  server --num_envs 64 --obs_size 32 --act_size 8 --name demo";

int main(int argc, char** argv) {
  return tandem::RunServer(
      argc, argv, kUsage, [](const tandem::ServerOptions& options) {
        return std::make_unique<tandem::CounterEngine>(
            tandem::CounterEngine::Options{
                .num_envs = options.num_envs,
                .obs_size = absl::GetFlag(FLAGS_obs_size),
                .act_size = absl::GetFlag(FLAGS_act_size),
                .terminate_after = absl::GetFlag(FLAGS_terminate_after),
                .truncate_after = absl::GetFlag(FLAGS_truncate_after)});
      });
}
