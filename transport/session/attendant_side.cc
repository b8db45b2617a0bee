#include "transport/attendant_side.h"

#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/error.h"
#include "base/os/fork_guard.h"
#include "base/os/process_handle.h"
#include "schema/layout/phase_word.h"
#include "transport/frames/image_slot.h"
#include "transport/memory/attached_region.h"
#include "transport/ring/ring.h"
#include "transport/session/attendant_label.h"
#include "transport/session/engine_watch.h"
#include "transport/session/open_region.h"
#include "transport/wait/doorbell.h"
#include "transport/wait/waiter.h"

namespace tandem {
namespace {

Doorbell BellOf(AttendantSlot* slot) {
  return {&slot->doorbell, &slot->sleepers};
}

Doorbell EngineBellOf(LrbcHeader* header) {
  return {&header->engine_doorbell, &header->engine_sleepers};
}

}  // namespace

absl::StatusOr<std::unique_ptr<AttendantSide>> AttendantSide::Attach(
    absl::string_view name, const Options& options) {
  if (options.label.size() > kMaxLabelBytes) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat("label: expected at most ", kMaxLabelBytes,
                                  " bytes, found ", options.label.size()));
  }
  const Deadline deadline = Deadline::After(options.timeout_secs);
  for (;;) {
    TANDEM_ASSIGN_OR_RETURN(
        AttachedRegion region,
        OpenByDeadline(name, options.interrupted, deadline));
    auto side =
        absl::WrapUnique(new AttendantSide(name, options, std::move(region)));
    TANDEM_RETURN_IF_ERROR(side->TakeSlot());
    const absl::Status status = side->Request(deadline);
    if (status.ok()) return side;
    // The engine died before its answer; another engine may be starting.
    if (CodeOf(status) != ErrorCode::kPeerGone) return status;
  }
}

AttendantSide::AttendantSide(absl::string_view name, const Options& options,
                             AttachedRegion region)
    : name_(name.data(), name.size()),
      options_(options),
      born_in_(ForkCount()),
      region_(std::make_unique<AttachedRegion>(std::move(region))) {}

AttendantSide::~AttendantSide() { Close(); }

absl::Status AttendantSide::TakeSlot() {
  if ((plan().feature_bits & kFeatureAttendants) == 0) {
    return MakeError(ErrorCode::kUnsupported,
                     absl::StrCat("region '", name_,
                                  "': expected an engine with slots for "
                                  "attendants, found one without; start an "
                                  "engine of this version"));
  }
  std::vector<std::string> found;
  for (slot_ = 0; slot_ < kAttendantSlots; ++slot_) {
    if (region_->AcquireLock(AttendantLockByte(plan(), slot_))) {
      return absl::OkStatus();
    }
    found.push_back(LabelAndPid(*SlotAt(slot_)));
  }
  slot_ = 0;
  return MakeError(
      ErrorCode::kAlreadyAttached,
      absl::StrCat("region '", name_, "': expected a free slot of ",
                   kAttendantSlots, ", found the attendants ",
                   absl::StrJoin(found, ", "), "; close one of them"));
}

absl::Status AttendantSide::Request(Deadline deadline) {
  AttendantSlot* const slot = SlotAt(slot_);
  BellOf(slot).ClearSleepers();
  // relaxed: a label for people.
  slot->pid.store(ProcessId(), std::memory_order_relaxed);
  StoreLabel(options_.label, slot);
  // relaxed: only attendants write it, one at a time: the lock orders them.
  request_ = NextRequest(slot->request.load(std::memory_order_relaxed));
  // SYNC(attendant.hello): release; the label before the request.
  slot->request.store(request_, std::memory_order_release);
  AnnounceRpcs();

  EngineWatch watch(*this, options_.interrupted);
  Waiter waiter = RpcWaiter();
  const ErrorCode code = waiter.Until(
      [&] {
        // SYNC(attendant.welcome): acquire; the answer, then empty rings.
        return slot->ack.load(std::memory_order_acquire) == request_;
      },
      deadline, watch);
  if (code == ErrorCode::kOk) return absl::OkStatus();
  const absl::string_view what =
      code == ErrorCode::kStepTimeout
          ? "the engine did not acknowledge the attendant before the deadline; "
            "it has been "
          : "while waiting for the engine, which has been ";
  absl::Status status = MakeError(
      code, absl::StrCat("region '", name_, "': ", what, EnginePhase()));
  Close();
  return status;
}

void AttendantSide::Close() {
  if (born_in_ != ForkCount() || !region_->HoldsLock()) return;
  // SYNC(attendant.hello): release; our last reads before the engine empties
  // the rings for the next attendant.
  SlotAt(slot_)->request.store(request_ + 1, std::memory_order_release);
  AnnounceRpcs();
  region_->ReleaseLock();
}

absl::StatusOr<RingReader> AttendantSide::RpcRingReader() {
  RingHeader* const ring = RingAt(kToAttendant);
  return RingReader::Attach(ring, RingDataOf(ring, plan().attendant_ring_size),
                            EngineBellOf(mapping()->header()));
}

absl::StatusOr<RingWriter> AttendantSide::RpcRingWriter() {
  RingHeader* const ring = RingAt(kToEngine);
  return RingWriter::Attach(ring, RingDataOf(ring, plan().attendant_ring_size),
                            EngineBellOf(mapping()->header()));
}

Waiter AttendantSide::RpcWaiter() const {
  return Waiter(BellOf(SlotAt(slot_)), options_.wait);
}

ImagePlace AttendantSide::image_place() const {
  return ImagePlace::Of(mapping(), plan(), 1 + slot_);
}

void AttendantSide::AnnounceRpcs() {
  LrbcHeader* const header = mapping()->header();
  // SYNC(attendant.bell): release; what was written before the count.
  header->attendant_bell.fetch_add(1, std::memory_order_release);
  EngineBellOf(header).NotifyIfWaiting();
}

std::string AttendantSide::EnginePhase() const {
  // relaxed: the phase is only displayed.
  return Describe(UnpackPhase(mapping()->header()->engine_phase.load(
                      std::memory_order_relaxed)),
                  MonotonicNanos());
}

bool AttendantSide::EngineAlive() const { return region_->EngineAlive(); }
const LrbcHeader& AttendantSide::plan() const { return region_->plan(); }
const std::shared_ptr<const RegionMapping>& AttendantSide::mapping() const {
  return region_->mapping();
}

AttendantSlot* AttendantSide::SlotAt(size_t slot) const {
  return mapping()->At<AttendantSlot>(AttendantSlotOffset(plan(), slot));
}

RingHeader* AttendantSide::RingAt(size_t ring) const {
  return mapping()->At<RingHeader>(
      AttendantSlotOffset(plan(), slot_) +
      AttendantRingOffset(ring, plan().attendant_ring_size));
}

}  // namespace tandem
