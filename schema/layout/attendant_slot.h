// AttendantSlot: a region's place for one attendant, a process that calls the
// engine's RPCs in addition to the client.
//
// Data flow: the attendant locks the first byte of `pid`, writes its label, and
// requests; the engine empties both rings and acknowledges.
// Ownership: a region with kFeatureAttendants has kAttendantSlots of them at
// attendants_offset, each followed by two rings: engine to attendant, attendant
// to engine. `schema/goldens/lrbc_v1.txt` lists every field.
//
//   const auto* slot = mapping.At<AttendantSlot>(AttendantSlotOffset(plan, 2));

#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "schema/layout/lrbc.h"
#include "schema/layout/ring_header.h"
#include "schema/layout/shared_word.h"

namespace tandem {

inline constexpr uint32_t kAttendantSlots = 4;
inline constexpr uint32_t kAttendantRingBytes = 32 * 1024;

struct AttendantSlot {
  // Writer attendant; reader engine.
  SharedWord<uint32_t> pid;       // for display, also after it has left; its
                                  // first byte is the lock byte
  SharedWord<uint32_t> request;   // odd: an attendant's number; even: none, or
                                  // it has left. Each one adds 1 when it comes
                                  // and when it leaves; wraps
  SharedWord<uint8_t> label[56];  // UTF-8, NUL-terminated
  uint8_t reserved_64[64];

  // Writer engine; reader attendant.
  SharedWord<uint32_t> ack;  // the request that the engine acknowledged
  uint8_t reserved_132[124];

  // As the header's doorbells: the engine rings, the attendant sleeps.
  SharedWord<uint32_t> doorbell;
  uint8_t reserved_260[124];
  SharedWord<uint32_t> sleepers;
  uint8_t reserved_388[124];
};

static_assert(offsetof(AttendantSlot, pid) == 0);
static_assert(offsetof(AttendantSlot, request) == 4);
static_assert(offsetof(AttendantSlot, label) == 8);
static_assert(offsetof(AttendantSlot, ack) == 128);
static_assert(offsetof(AttendantSlot, doorbell) == 256);
static_assert(offsetof(AttendantSlot, sleepers) == 384);
static_assert(sizeof(AttendantSlot) == 512);
static_assert(std::is_trivially_copyable_v<AttendantSlot>);
static_assert(std::is_standard_layout_v<AttendantSlot>);

// Of a label, without its NUL.
inline constexpr size_t kMaxLabelBytes = sizeof(AttendantSlot::label) - 1;
static_assert(sizeof(SharedWord<uint8_t>) == 1);

// Bytes of a slot with its two rings of `ring_size` bytes.
constexpr uint64_t AttendantSlotBytes(uint32_t ring_size) {
  return sizeof(AttendantSlot) + 2 * (sizeof(RingHeader) + uint64_t{ring_size});
}

// The offset of a slot in the region; `plan` has passed CheckHeader.
inline uint64_t AttendantSlotOffset(const LrbcHeader& plan, size_t slot) {
  return plan.attendants_offset +
         slot * AttendantSlotBytes(plan.attendant_ring_size);
}

// Whether the slot has, or had, an attendant that has not left.
constexpr bool IsPresent(uint32_t request) { return request % 2 == 1; }
// The next attendant's request. A dead one's is still odd.
constexpr uint32_t NextRequest(uint32_t request) {
  return request + 1 + request % 2;
}

// The order of a slot's rings.
inline constexpr size_t kToAttendant = 0;
inline constexpr size_t kToEngine = 1;

// The offset of a ring in the slot.
constexpr uint64_t AttendantRingOffset(size_t ring, uint32_t ring_size) {
  return sizeof(AttendantSlot) + ring * (sizeof(RingHeader) + ring_size);
}

// The byte of the file that the slot's attendant locks.
inline int64_t AttendantLockByte(const LrbcHeader& plan, size_t slot) {
  return static_cast<int64_t>(AttendantSlotOffset(plan, slot));
}

}  // namespace tandem
