// RingFill: read-only count of the messages in an RPC ring, for monitoring.
//
// Data flow: a region's file -> copies of positions and lengths, checked ->
// counts. No message is read.
// Ownership: the observer's; neither side of the ring can tell.
//
//   RingFill fill = ReadRingFill(*file, header.cmd_c2s_offset, capacity);
//   if (fill.problem.empty()) Show(fill.used_bytes, fill.messages);

#ifndef TANDEM_TRANSPORT_RING_RING_FILL_H_
#define TANDEM_TRANSPORT_RING_RING_FILL_H_

#include <cstdint>
#include <optional>
#include <string>

#include "transport/memory/observed_file.h"

namespace tandem {

struct RingFill {
  // Messages are counted up to here; more than that is this many.
  static constexpr uint32_t kMostCounted = 1u << 16;

  uint32_t capacity = 0;    // bytes
  uint32_t used_bytes = 0;  // by messages that wait, and skips
  // Nothing: the reader moved on during each read, or there is a problem.
  std::optional<uint32_t> messages = {};
  // What has been invalid for kRingGraceNs; "": nothing.
  std::string problem = {};
};

// Makes a few system calls, at most one for each message counted. Waits, for
// kRingGraceNs at most, only where a word is invalid. `offset` and `capacity`
// may be anything.
RingFill ReadRingFill(const ObservedFile& file, uint64_t offset,
                      uint32_t capacity);

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_RING_RING_FILL_H_
