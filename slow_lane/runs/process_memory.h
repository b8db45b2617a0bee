// SumOfPss: the memory of a run's processes.
//
// Data flow: /proc/PID/smaps_rollup of each process -> a sum of bytes. PSS
// (proportional set size) counts a page that several processes share once, in
// equal parts. Ownership: any thread; reads files.

#pragma once

#include <cstdint>
#include <span>

#include "slow_lane/runs/process_identity.h"

namespace tandem::slow_lane {

// Processes that have ended, or belong to another user, count as 0.
uint64_t SumOfPss(std::span<const TreeMember> members);

}  // namespace tandem::slow_lane
