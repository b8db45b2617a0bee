// WaitStrategy: how a side waits for its peer, and the names that users type.
// InterruptHook: what ends a long wait.
//
// Data flow: a flag's or an argument's text -> WaitStrategy -> a side's options
// -> its waits, which call the hook.
// Ownership: values only. docs/waiting.md explains the strategies.
//
//   std::optional<WaitStrategy> wait = WaitStrategyNamed("adaptive");
//   if (!wait) return Refuse("expected spin, adaptive or block");
//   NameOf(*wait)  // "adaptive"
//   ClientSide::Attach("demo", {.wait = *wait, .interrupted = &HasSignal});

#pragma once

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

// A function that the waiting thread calls during a long wait: every 50 ms, and
// after each signal. If it returns true, the wait ends with kInterrupted. It
// looks at state of the process, such as a flag that a signal handler sets.
using InterruptHook = bool (*)();

}  // namespace tandem
