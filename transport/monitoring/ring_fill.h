// ReadRingFill: counts the messages in an RPC ring, for monitoring.
//
// Data flow: a region's file -> copies of positions and lengths, checked ->
// counts. It reads no message.
// Ownership: the observer owns it; it has no effect on either side of the ring.

#pragma once

#include <cstdint>

#include "transport/memory/observed_file.h"
#include "transport/report.h"

namespace tandem {

// Makes a few system calls, at most one for each counted message. Waits at most
// kRingGraceNs, and only if a word is invalid. `offset` and `capacity` may have
// any value.
RingFill ReadRingFill(const ObservedFile& file, uint64_t offset,
                      uint32_t capacity);

}  // namespace tandem
