// WorkerText: a worker and its activity as text, for people.
//
// Data flow: a slot's labels -> a text of the supervisor or of the client.
// Ownership: the caller has the slot's mapping; the worker may write meanwhile.
//
//   WorkerText(slot, 2, rows, MonotonicNanos());
//   // "worker 2 (pid 4711, environments 4 to 7), stepping environment 5 for
//   // 1.20 s"

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_format.h"
#include "schema/layout/phase_word.h"
#include "schema/layout/worker_slot.h"

namespace tandem {

// Accepts any content of the slot. `rows` are checked ones. Allocates.
inline std::string WorkerText(const WorkerSlot& slot, size_t worker,
                              const WorkerRows& rows, int64_t now_ns) {
  // relaxed: for display, here and below.
  const PhaseSince phase =
      UnpackPhase(slot.phase.load(std::memory_order_relaxed));
  const uint32_t env = slot.env.load(std::memory_order_relaxed);
  const double secs =
      static_cast<double>(std::max<int64_t>(now_ns - phase.since_ns, 0)) / 1e9;
  // Between two environments the word has no valid number.
  const bool has_env =
      IsWork(phase.phase) && env - rows.first_env < rows.num_envs;
  const std::string where =
      has_env ? absl::StrFormat(" environment %d", env) : "";
  // relaxed: as above.
  const uint32_t pid = slot.pid.load(std::memory_order_relaxed);
  return absl::StrFormat(
      "worker %d (pid %d, environments %d to %d), %s%s for %.2f s", worker, pid,
      rows.first_env, uint64_t{rows.first_env} + rows.num_envs - 1,
      NameOf(phase.phase), where, secs);
}

}  // namespace tandem
