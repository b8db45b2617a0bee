// RunServer: the main function that every engine server shares.
//
// Data flow: flags -> ServerOptions -> the server's own factory -> Engine ->
// EngineHost, until a signal or the launcher ends it.
// Ownership: called once, from main, in a process without other threads.
//
//   int main(int argc, char** argv) {
//     return tandem::RunServer(argc, argv, kUsage, [](const auto& options) {
//       return MyEngine::Create(options.num_envs);
//     });
//   }

#ifndef TANDEM_ENGINE_ADAPTER_HOST_SERVER_MAIN_H_
#define TANDEM_ENGINE_ADAPTER_HOST_SERVER_MAIN_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine_adapter/core/engine.h"

namespace tandem {

// What a factory needs of the shared flags.
struct ServerOptions {
  uint32_t num_envs = 0;
  int threads = 0;  // for ThreadPool: already at least 1
};

// No engine, but no error either (nullptr): the flags asked for something else,
// such as a list, and the factory has done it.
using EngineFactory = std::function<absl::StatusOr<std::unique_ptr<Engine>>(
    const ServerOptions& options)>;

inline constexpr int kExitStopped = 0;
inline constexpr int kExitFailed = 1;    // engine or region: the status's text
inline constexpr int kExitBadUsage = 2;  // a flag, or what it names

// Writes a line of this server's log to stderr, with the time. Thread-safe.
void LogLine(absl::string_view line);

// Parses the flags, makes the engine, serves its region; returns the exit code.
//   kExitStopped   SIGINT, SIGTERM, or --launcher_fd's pipe closed: the region
//                  is gone. Also --help. A signal that comes more than a
//                  second after the first ends the process at once.
//   kExitBadUsage  unknown flag, bad value, or an engine or region that says
//                  kInvalidArgument
//   kExitFailed    any other error of engine or region
// Errors go to stderr, one line each. After kExitBadUsage the last line has the
// fixed form that tandem.launch_engine puts into its keywords' terms
// (client_py/tandem/engine/refusals.py):
//   tandem TIME error: InvalidArgument: --FLAG: expected ..., found ...; NEXT
//   ... --FLAG: unknown KIND: expected one of NAME, NAME, found 'NAME'; NEXT
// A task's option stands in place of --FLAG by its own name.
int RunServer(int argc, const char* const* argv, absl::string_view usage,
              const EngineFactory& make_engine);

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_HOST_SERVER_MAIN_H_
