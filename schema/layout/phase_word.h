// A side's phase and its beginning, in one word that the other side can load.
//
// Data flow: each side publishes its own word; the other side's error texts and
// observers read it. There is no heartbeat: a stuck step shows as one long
// phase.
//
//   word.store(PackPhase(Phase::kStepping, MonotonicNanos()), relaxed);
//   PhaseSince now = UnpackPhase(word.load(relaxed));

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_format.h"
#include "schema/layout/lrbc.h"

namespace tandem {

struct PhaseSince {
  Phase phase;
  int64_t since_ns;  // CLOCK_MONOTONIC
};

// The top 4 bits are the phase; the 60 bits below wrap after 36 years of
// uptime.
constexpr uint64_t PackPhase(Phase phase, int64_t since_ns) {
  return static_cast<uint64_t>(phase) << 60 |
         (static_cast<uint64_t>(since_ns) & ((uint64_t{1} << 60) - 1));
}

// Accepts any word; the phase may be an unknown number of the peer.
constexpr PhaseSince UnpackPhase(uint64_t word) {
  return {static_cast<Phase>(word >> 60),
          static_cast<int64_t>(word & ((uint64_t{1} << 60) - 1))};
}

constexpr const char* NameOf(Phase phase) {
  constexpr std::array kNames = {
      "absent",  "attaching", "idle",
      "waiting", "stepping",  "resetting",
      "stopped", "paused",    "paused by an attendant",
      "calling"};
  const auto index = static_cast<size_t>(phase);
  return index < kNames.size() ? kNames[index] : "garbled";
}

// Whether a worker in this phase is inside an environment's method.
constexpr bool IsWork(Phase phase) {
  return phase == Phase::kStepping || phase == Phase::kResetting ||
         phase == Phase::kCalling;
}

// Returns text such as "stepping for 9.98 s".
inline std::string Describe(PhaseSince phase, int64_t now_ns) {
  const double secs =
      static_cast<double>(std::max<int64_t>(now_ns - phase.since_ns, 0)) / 1e9;
  return absl::StrFormat("%s for %.2f s", NameOf(phase.phase), secs);
}

}  // namespace tandem
