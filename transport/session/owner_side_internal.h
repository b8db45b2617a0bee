// What owner_side.cc, engine_side.cc and supervisor_side.cc share: the state of
// a region's owner, and what each exchange calls.
//
// Data flow: as in owner_side.h.
// Ownership: an OwnerSide has one State; only its thread uses it, except for
// `asked`.

#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/grace_period.h"
#include "schema/layout/attendant_slot.h"
#include "schema/layout/lrbc.h"
#include "schema/layout/phase_word.h"
#include "schema/layout/ring_header.h"
#include "transport/memory/owned_region.h"
#include "transport/run_snapshot.h"
#include "transport/session/owner_side.h"
#include "transport/wait/doorbell.h"
#include "transport/wait/waiter.h"
#include "transport/wait_strategy.h"

namespace tandem {

struct OwnerSide::State {
  static constexpr int64_t kPollPeerNs = 5'000'000;
  static constexpr int64_t kCheckNameNs = 100'000'000;
  // How long a writer may show invalid values before they count.
  static constexpr int64_t kGraceNs = 100'000'000;
  // Bits of `asked`.
  static constexpr uint32_t kAskedToStop = 1;
  static constexpr uint32_t kAskedForFrame = 2;

  State(OwnedRegion owned, WaitStrategy wait);

  // Adds an attendant's pause that ends now.
  void CountAttendantPause(int64_t now_ns);
  AttendantSlot* SlotAt(size_t slot) const {
    return reinterpret_cast<AttendantSlot*>(
        attendant_slots + slot * AttendantSlotBytes(attendant_ring_bytes));
  }
  Doorbell BellOf(size_t slot) const {
    return {&SlotAt(slot)->doorbell, &SlotAt(slot)->sleepers};
  }
  RingHeader* RingAt(size_t slot, size_t ring) const {
    return reinterpret_cast<RingHeader*>(
        reinterpret_cast<std::byte*>(SlotAt(slot)) +
        AttendantRingOffset(ring, attendant_ring_bytes));
  }

  OwnedRegion region;
  LrbcHeader* header;
  Waiter waiter;
  Doorbell own_bell;
  Doorbell client_bell;

  // The RPC rings, as planned; the peer can change the region's copy.
  RingHeader* const to_client;
  RingHeader* const to_engine;
  const uint32_t ring_bytes;
  const bool has_frames;
  const bool has_workers;

  // Private truth: the region's copies can be scribbled over by the peer.
  uint64_t frame_seq = 0;
  uint32_t acknowledged = 0;  // the attach_request answered last
  uint32_t arriving = 0;      // the one being answered
  uint32_t frame_request = 0;
  Phase phase = Phase::kResetting;
  bool has_client = false;
  bool holds = false;         // there is a held exchange
  Phase idle = Phase::kIdle;  // between steps
  int64_t phase_since_ns = 0;
  uint64_t attendant_pause_ns = 0;  // as the region's

  // What is known of an attendant's slot, whose words may be anything.
  struct Attendant {
    uint32_t request = 0;  // the one handled last
    bool present = false;
    bool check = false;  // whether PollAttendant tests the lock
  };
  // The owner's own copies; 0: no slots.
  uint64_t attendants_offset = 0;
  std::byte* attendant_slots = nullptr;  // also after the region is unlinked
  uint32_t attendant_ring_bytes = 0;
  std::array<Attendant, kAttendantSlots> attendants;
  bool just_polled_attendants = false;
  std::string broken_text;

  std::optional<RunSnapshot> own_run = {};  // as read last

  int64_t taken_at_ns = 0;
  int64_t polled_peer_ns = 0;
  int64_t name_checked_ns = 0;
  GracePeriod count_grace{kGraceNs};  // whether action_seq makes sense

  // Of kAsked*. Writers: any thread or signal handler set bits, the owner's
  // thread clears kAskedForFrame; reader: the owner's thread.
  std::atomic<uint32_t> asked{0};
};

[[gnu::always_inline]] inline void OwnerSide::SetPhase(Phase phase,
                                                       int64_t now_ns) {
  State& s = *state_;
  if (s.phase == Phase::kPausedByAttendant) s.CountAttendantPause(now_ns);
  s.phase = phase;
  s.phase_since_ns = now_ns;
  // SYNC(attendant.pause): release; the pauses before this phase. Otherwise it
  // is for display only.
  s.header->engine_phase.store(PackPhase(phase, now_ns),
                               std::memory_order_release);
}

inline void OwnerSide::ClearRequests() {
  std::fill(arrays_.resets.begin(), arrays_.resets.end(), uint8_t{0});
  // relaxed: the next frame_seq or attach_ack publishes it.
  StoreIfOther(&header_->exchange_kind, 0);
}

template <typename Event>
Event OwnerSide::TakeRequest() {
  State& s = *state_;
  // Alternates with all others: an attendant that rings without end, and a
  // client that calls without end, do not delay each other.
  if (!s.just_polled_attendants && PollAttendants()) {
    s.just_polled_attendants = true;
    return Event::kAttendants;
  }
  s.just_polled_attendants = false;
  if (PollRpcs()) return Event::kRpcs;
  // relaxed: the flag alone is what is asked; FrameThread's word has the rest.
  const bool called =
      (s.asked.fetch_and(~State::kAskedForFrame, std::memory_order_relaxed) &
       State::kAskedForFrame) != 0;
  // relaxed: a number that is only compared.
  const uint32_t request =
      s.header->frame_request.load(std::memory_order_relaxed);
  if (!called && (!s.has_frames || request == s.frame_request)) {
    return PollAttendants() ? Event::kAttendants : Event::kTimedOut;
  }
  s.frame_request = request;
  return Event::kFrameWanted;
}

}  // namespace tandem
