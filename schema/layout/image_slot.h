// ImageSlot: a region's place for one image that a caller has requested by RPC.
//
// Data flow: the engine copies an image into a free slot of the caller, and
// sends the notice through the caller's RPC ring (ImageFrame's slot, slot_seq
// and slot_bytes); the caller reads the image in place, and releases it.
// Ownership: a region with kFeatureImageSlots has kImageSlots of them at
// image_slots_offset, each followed by image_slot_bytes bytes: two for the
// client, and two for each slot of attendants, so that a caller can hold one
// image while it waits for the next.
// `schema/goldens/lrbc_v1.txt` lists every field.
//
//   const auto* slot = mapping.At<ImageSlot>(ImageSlotOffset(plan, 0, 1));

#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "schema/layout/attendant_slot.h"
#include "schema/layout/lrbc.h"
#include "schema/layout/shared_word.h"

namespace tandem {

inline constexpr uint32_t kSlotsOfCaller = 2;
inline constexpr uint32_t kImageSlots = kSlotsOfCaller * (1 + kAttendantSlots);
inline constexpr uint32_t kMaxImageSlotBytes = 1u << 30;

struct ImageSlot {
  // Writer engine; reader caller: the image's number n, as in a frame's slot
  // (FlanSeqWriting, FlanSeqWhole); initially 0. Does not wrap in the lifetime
  // of a machine.
  SharedWord<uint64_t> seq;
  uint8_t reserved_8[120];

  // Writer caller; reader engine: the seq of the newest image that the caller
  // no longer uses; publishes the end of its reads. The engine stores 0 before
  // it writes a caller's first image.
  SharedWord<uint64_t> released;
  uint8_t reserved_136[120];
};

static_assert(offsetof(ImageSlot, seq) == 0);
static_assert(offsetof(ImageSlot, released) == 128);
static_assert(sizeof(ImageSlot) == 256);
static_assert(alignof(ImageSlot) == 8);
static_assert(std::is_trivially_copyable_v<ImageSlot>);
static_assert(std::is_standard_layout_v<ImageSlot>);

// Bytes of a slot with its image of `image_bytes` at most.
constexpr uint64_t ImageSlotBytes(uint32_t image_bytes) {
  return sizeof(ImageSlot) + uint64_t{image_bytes};
}

// The offset of a caller's slot in the region; `plan` has passed CheckHeader.
// Caller 0 is the client, caller 1 + s the attendant in slot s.
inline uint64_t ImageSlotOffset(const LrbcHeader& plan, size_t caller,
                                size_t slot) {
  return plan.image_slots_offset + (kSlotsOfCaller * caller + slot) *
                                       ImageSlotBytes(plan.image_slot_bytes);
}

}  // namespace tandem
