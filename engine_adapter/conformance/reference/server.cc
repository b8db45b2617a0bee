// The smallest engine server: serves the reference engine to one client.
#include <memory>

#include "engine_adapter/conformance/reference/counter_engine.h"
#include "engine_adapter/conformance/reference/counter_flags.h"
#include "engine_adapter/server_main.h"

constexpr char kUsage[] =
    "Serves environments that count their steps, for tests of clients.\n\n"
    "  server --num_envs 64 --obs_size 32 --act_size 8 --name demo";

int main(int argc, char** argv) {
  return tandem::RunServer(argc, argv, kUsage,
                           [](const tandem::ServerOptions& options) {
                             return std::make_unique<tandem::CounterEngine>(
                                 tandem::CounterOptions(options));
                           });
}
