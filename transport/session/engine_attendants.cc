#include "transport/session/engine_attendants.h"

#include <utility>

#include "transport/session/attendant_label.h"

namespace tandem {
EngineAttendants::EngineAttendants(std::shared_ptr<const RegionMapping> mapping)
    : mapping_(std::move(mapping)), header_(mapping_->header()) {
  if ((header_->feature_bits & kFeatureAttendants) == 0) return;
  offset_ = header_->attendants_offset;
  ring_bytes_ = header_->attendant_ring_size;
  slot_bytes_ = AttendantSlotBytes(ring_bytes_);
}

void EngineAttendants::CheckLocks() {
  bool any = false;
  for (Known& known : known_) {
    known.check = known.present;
    any |= known.present;
  }
  if (any) LookAgain();
}

AttendantChange EngineAttendants::Poll(size_t slot, const OwnedRegion& region) {
  if (offset_ == 0) return AttendantChange::kNone;
  Known& known = known_[slot];
  // SYNC(attendant.hello): acquire; the request, then the label.
  const uint32_t request =
      SlotAt(slot)->request.load(std::memory_order_acquire);
  if (request != known.request) {
    known.request = request;
    const bool was_present = std::exchange(known.present, IsPresent(request));
    if (known.present) return AttendantChange::kArrived;
    return was_present ? AttendantChange::kLeft : AttendantChange::kNone;
  }
  if (!std::exchange(known.check, false)) return AttendantChange::kNone;
  known.present =
      region.PeerAlive(static_cast<int64_t>(offset_ + slot * slot_bytes_));
  return known.present ? AttendantChange::kNone : AttendantChange::kLeft;
}

void EngineAttendants::Reset(size_t slot) {
  ResetRing(RingAt(slot, kToAttendant));
  ResetRing(RingAt(slot, kToEngine));
}

absl::StatusOr<RingReader> EngineAttendants::RpcReader(size_t slot) {
  RingHeader* const ring = RingAt(slot, kToEngine);
  return RingReader::Attach(ring, RingDataOf(ring, ring_bytes_), BellOf(slot));
}

absl::StatusOr<RingWriter> EngineAttendants::RpcWriter(size_t slot) {
  RingHeader* const ring = RingAt(slot, kToAttendant);
  return RingWriter::Attach(ring, RingDataOf(ring, ring_bytes_), BellOf(slot));
}

void EngineAttendants::Welcome(size_t slot) {
  // SYNC(attendant.welcome): release; empty rings before the answer.
  SlotAt(slot)->ack.store(known_[slot].request, std::memory_order_release);
  BellOf(slot).NotifyIfWaiting();
}

std::string EngineAttendants::TextOf(size_t slot) const {
  return LabelAndPid(*SlotAt(slot));
}

void EngineAttendants::NotifyAll() {
  if (offset_ == 0) return;
  for (size_t slot = 0; slot < kAttendantSlots; ++slot) {
    if (known_[slot].present) BellOf(slot).NotifyAll();
  }
}

RingHeader* EngineAttendants::RingAt(size_t slot, size_t ring) const {
  return mapping_->At<RingHeader>(offset_ + slot * slot_bytes_ +
                                  AttendantRingOffset(ring, ring_bytes_));
}

}  // namespace tandem
