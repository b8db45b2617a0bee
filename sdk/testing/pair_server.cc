// Serves a PairEngine, for the tests of clients in C++ and C#.
#include <memory>

#include "engine_adapter/server_main.h"
#include "sdk/testing/pair_engine.h"

int main(int argc, char** argv) {
  return tandem::RunServer(
      argc, argv, "Serves environments with typed fields.",
      [](const tandem::ServerOptions& options) {
        return std::make_unique<tandem::PairEngine>(options.num_envs);
      });
}
