#include "viz/inspect/each_second.h"

#include <atomic>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/os/stop_signals.h"
#include "program/screen.h"

namespace tandem {
namespace {

// Writer: the system's thread for stop events; reader: the main thread. A flag.
std::atomic<bool> stopped{false};

}  // namespace

absl::Status ShowEachSecond(
    const std::function<std::string(bool replaces)>& text) {
  // relaxed: the flag publishes nothing else.
  HandleStopSignals(
      [](int) { stopped.store(true, std::memory_order_relaxed); });
  for (int tenths = 0; !stopped.load(std::memory_order_relaxed); ++tenths) {
    if (tenths % 10 == 0) {
      if (absl::Status shown = Print(text(false)); !shown.ok()) return shown;
    }
    absl::SleepFor(absl::Milliseconds(100));
  }
  return absl::OkStatus();
}

}  // namespace tandem
