#include "tests/end_to_end/serve_until_signal.h"

#include <signal.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"

namespace tandem {
namespace {

// Writer: ServeUntilSignal, before the handler is installed; reader: the
// handler.
std::atomic<EngineHost*> serving_host{nullptr};
static_assert(std::atomic<EngineHost*>::is_always_lock_free);

void StopServing(int) {
  // relaxed: the handler is installed by sigaction, which follows the store.
  serving_host.load(std::memory_order_relaxed)->RequestStop();
}

}  // namespace

int ServeUntilSignal(Engine* engine, EngineHost::Options options) {
  absl::StatusOr<std::unique_ptr<EngineHost>> host =
      EngineHost::Create(engine, std::move(options));
  if (!host.ok()) {
    std::fprintf(stderr, "%s\n", host.status().ToString().c_str());
    return 1;
  }
  // relaxed: as in StopServing.
  serving_host.store(host->get(), std::memory_order_relaxed);
  struct sigaction action = {};
  action.sa_handler = StopServing;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  (*host)->Run();
  // A second signal from here on has no host to stop.
  signal(SIGTERM, SIG_IGN);
  signal(SIGINT, SIG_IGN);
  return 0;
}

}  // namespace tandem
