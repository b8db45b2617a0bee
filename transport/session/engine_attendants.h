// EngineAttendants: the engine's end of the slots of attendants.
//
// Data flow: an attendant's request and bell -> Poll -> Welcome -> RpcReader
// and RpcWriter.
// Ownership: EngineSide has one; the engine's thread calls it.
// docs/protocol.md, "Attendants", is the specification.
//
//   if (attendants.Rang()) {
//     attendants.Look();
//     for (size_t slot = 0; slot < kAttendantSlots; ++slot) {
//       if (attendants.Poll(slot, region) == AttendantChange::kArrived) {
//         ... RpcReader(slot), RpcWriter(slot) ...
//         attendants.Welcome(slot);
//       }
//     }
//   }

#ifndef TANDEM_TRANSPORT_SESSION_ENGINE_ATTENDANTS_H_
#define TANDEM_TRANSPORT_SESSION_ENGINE_ATTENDANTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "schema/layout/attendant_slot.h"
#include "transport/memory/owned_region.h"
#include "transport/memory/region_mapping.h"
#include "transport/ring/ring.h"
#include "transport/wait/doorbell.h"

namespace tandem {

enum class [[nodiscard]] AttendantChange : uint8_t{
    kNone,
    kArrived,  // an older attendant of this slot has left: its rings are void
    kLeft,
};

// Trusts no word of a slot: an attendant may write anything at any time.
class EngineAttendants {
 public:
  // A region without slots has no attendants.
  explicit EngineAttendants(std::shared_ptr<const RegionMapping> mapping);

  // Whether any attendant has written, or Look is due for another reason. One
  // load.
  bool Rang() const {
    // SYNC(attendant.bell): acquire; the count, then what was written before.
    return header_->attendant_bell.load(std::memory_order_acquire) != seen_;
  }
  // Makes Rang false until an attendant writes again.
  void Look() {
    // SYNC(attendant.bell): acquire; as above.
    seen_ = header_->attendant_bell.load(std::memory_order_acquire);
  }
  // Makes Rang true once more: messages are left in a ring.
  void LookAgain() { --seen_; }

  // Call it now and then: makes Rang true, and the next Poll of each slot
  // checks whether its attendant lives.
  void CheckLocks();
  AttendantChange Poll(size_t slot, const OwnedRegion& region);

  // Empties both rings. Legal after kArrived.
  void Reset(size_t slot);
  // The engine's ends of the rings, after Reset. kBrokenPeer: the positions are
  // invalid already.
  absl::StatusOr<RingReader> RpcReader(size_t slot);
  absl::StatusOr<RingWriter> RpcWriter(size_t slot);
  // Admits the attendant.
  void Welcome(size_t slot);

  // The label and pid of the slot's attendant, for people: any bytes.
  std::string TextOf(size_t slot) const;
  // Wakes all: the engine stops.
  void NotifyAll();

 private:
  struct Known {
    uint32_t request = 0;  // the one handled last
    bool present = false;
    bool check = false;  // whether Poll tests the lock
  };

  AttendantSlot* SlotAt(size_t slot) const {
    return mapping_->At<AttendantSlot>(offset_ + slot * slot_bytes_);
  }
  RingHeader* RingAt(size_t slot, size_t ring) const;
  Doorbell BellOf(size_t slot) const {
    return {&SlotAt(slot)->doorbell, &SlotAt(slot)->sleepers};
  }

  std::shared_ptr<const RegionMapping> mapping_;
  LrbcHeader* header_;
  // The engine's own copies; 0: no slots.
  uint64_t offset_ = 0;
  uint32_t ring_bytes_ = 0;
  uint64_t slot_bytes_ = 0;
  uint32_t seen_ = 0;  // of attendant_bell
  std::array<Known, kAttendantSlots> known_;
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_SESSION_ENGINE_ATTENDANTS_H_
