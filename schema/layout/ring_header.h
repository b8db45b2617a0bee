// The head of an RPC ring.
//
// Data flow: the writer copies an entry into the data, then advances write_pos;
// the reader copies it out, then advances read_pos.
// Ownership: the mapped region; writer and reader are one process each.
// transport/ring/ring.h has the form of an entry, and the wrap rule.
//
//   auto* ring = reinterpret_cast<RingHeader*>(base + header->cmd_c2s_offset);
//   std::byte* data = reinterpret_cast<std::byte*>(ring) + sizeof(RingHeader);

#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "schema/layout/shared_word.h"

namespace tandem {

inline constexpr uint32_t kRingSkip = 0xFFFFFFFF;
inline constexpr uint32_t kRingEntryAlignment = 8;
inline constexpr uint32_t kDefaultRingBytes = 512 * 1024;
inline constexpr uint32_t kMinRingBytes = 64;
inline constexpr uint32_t kMaxRingBytes = 1u << 30;

struct RingHeader {
  // Writer: the ring's writer; reader: its reader; publishes entries; initially
  // 0.
  SharedWord<uint32_t> write_pos;
  uint8_t reserved_4[60];
  // Writer: the ring's reader; reader: its writer; publishes free space;
  // initially 0.
  SharedWord<uint32_t> read_pos;
  uint8_t reserved_68[60];
};

static_assert(offsetof(RingHeader, write_pos) == 0);
static_assert(offsetof(RingHeader, read_pos) == 64);
static_assert(sizeof(RingHeader) == 128);
static_assert(std::is_trivially_copyable_v<RingHeader>);
static_assert(std::is_standard_layout_v<RingHeader>);

}  // namespace tandem
