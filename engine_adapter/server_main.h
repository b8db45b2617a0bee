// RunServer: the common main function of engine servers.
//
// Data flow: flags -> ServerOptions -> the server's factory -> Engine ->
// EngineHost, until a signal or the launcher's end stops it.
// Ownership: main calls it once, in a process without other threads.
//
//   int main(int argc, char** argv) {
//     return tandem::RunServer(argc, argv, kUsage, [](const auto& options) {
//       return MyEngine::Create(options.num_envs);
//     });
//   }

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/engine_host.h"

namespace tandem {

// The shared flags that a factory needs.
struct ServerOptions {
  uint32_t num_envs = 0;
  int threads = 0;  // for ThreadPool; at least 1
};

// Makes the engine. nullptr, which is no error: the flags requested other
// output, such as a list, and the factory has printed it.
using EngineFactory = std::function<absl::StatusOr<std::unique_ptr<Engine>>(
    const ServerOptions& options)>;
using TickedEngineFactory =
    std::function<absl::StatusOr<std::unique_ptr<EngineBase>>(
        const ServerOptions& options)>;

// A flag that is not one of Abseil's: that of an engine in another language.
struct OwnFlag {
  std::string name;
  double* value = nullptr;  // has the default; gets the flag's number
};

inline constexpr int kExitStopped = 0;
inline constexpr int kExitFailed = 1;    // engine or region: the status's text
inline constexpr int kExitBadUsage = 2;  // a flag, or what it names

// Writes a line to this server's log, stderr, with the time. Thread-safe.
void LogLine(absl::string_view line);

// Parses the flags, makes the engine, serves its region; returns the exit code.
//   kExitStopped   a stop signal (base/os/stop_signals.h), or --launcher_fd's
//                  pipe closed: the region is removed. Also --help. A signal
//                  before the region's memory is reserved, or more than a
//                  second after the first, ends the process at once.
//   kExitBadUsage  unknown flag, bad value, or kInvalidArgument from engine or
//                  region
//   kExitFailed    any other error of engine or region
// Errors go to stderr, one line each. The last line has a fixed form:
//   tandem TIME error: CLASS: TEXT
// tandem.launch_engine raises this class of Python's. After kExitBadUsage it
// rewrites the text with the names of its own keywords
// (client_py/tandem/engine/refusals.py):
//   tandem TIME error: InvalidArgument: --FLAG: expected ..., found ...; NEXT
//   ... --FLAG: unknown KIND: expected one of NAME, NAME, found 'NAME'; NEXT
// For a task option the option's name stands in place of --FLAG.
int RunServer(int argc, const char* const* argv, absl::string_view usage,
              const EngineFactory& make_engine);

// The same for an engine with a loop of its own. `loop` takes work from the
// host until host->StopRequested(), or until it returns an error, such as
// one of EngineHost::Done.
// engine_adapter/conformance/reference/ticked_server.cc is an example. `own`:
// the engine's flags that are not Abseil's.
int RunTickedServer(int argc, const char* const* argv, absl::string_view usage,
                    const TickedEngineFactory& make_engine,
                    const std::function<absl::Status(EngineHost* host)>& loop,
                    absl::Span<const OwnFlag> own = {});

}  // namespace tandem
