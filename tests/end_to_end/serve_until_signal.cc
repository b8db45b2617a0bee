#include "tests/end_to_end/serve_until_signal.h"

#include <signal.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace tandem {
namespace {

// Written before the handler is installed, read by it.
EngineHost* serving_host = nullptr;

void StopServing(int) { serving_host->RequestStop(); }

}  // namespace

int ServeUntilSignal(Engine* engine, EngineHost::Options options) {
  absl::StatusOr<std::unique_ptr<EngineHost>> host =
      EngineHost::Create(engine, std::move(options));
  if (!host.ok()) {
    std::fprintf(stderr, "%s\n", host.status().ToString().c_str());
    return 1;
  }
  serving_host = host->get();
  struct sigaction action = {};
  action.sa_handler = StopServing;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  (*host)->Run();
  // From here on a second signal has nothing to stop.
  signal(SIGTERM, SIG_IGN);
  signal(SIGINT, SIG_IGN);
  return 0;
}

}  // namespace tandem
