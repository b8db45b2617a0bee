// WaitStrategy: how a side waits for its peer, and the names that users type.
//
// Data flow: a flag's or an argument's text -> WaitStrategy -> Waiter.
//
//   std::optional<WaitStrategy> wait = WaitStrategyNamed("adaptive");
//   if (!wait) return Refuse("expected spin, adaptive or block");
//   NameOf(*wait)  // "adaptive"

#ifndef TANDEM_TRANSPORT_WAIT_STRATEGY_H_
#define TANDEM_TRANSPORT_WAIT_STRATEGY_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace tandem {

enum class WaitStrategy : uint8_t {
  kSpin,      // spins without sleeping: lowest latency, needs a core of its
              // own. Under SCHED_FIFO or SCHED_RR it sleeps after 10 ms.
  kAdaptive,  // spins as long as that has paid lately, then sleeps
  kBlock,     // sleeps at once: cores stay free
};

// "spin", "adaptive" or "block". Neither function allocates.
constexpr absl::string_view NameOf(WaitStrategy strategy) {
  switch (strategy) {
    case WaitStrategy::kSpin:
      return "spin";
    case WaitStrategy::kAdaptive:
      return "adaptive";
    case WaitStrategy::kBlock:
      return "block";
  }
  return "";
}

// The one of that very name; none: nullopt.
constexpr std::optional<WaitStrategy> WaitStrategyNamed(
    absl::string_view name) {
  for (const WaitStrategy strategy :
       {WaitStrategy::kSpin, WaitStrategy::kAdaptive, WaitStrategy::kBlock}) {
    if (name == NameOf(strategy)) return strategy;
  }
  return std::nullopt;
}

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_WAIT_STRATEGY_H_
