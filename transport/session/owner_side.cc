#include "transport/session/owner_side.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/error.h"
#include "transport/ring/ring.h"
#include "transport/session/attendant_label.h"
#include "transport/session/exchange_status.h"
#include "transport/session/make_step_arrays.h"
#include "transport/session/own_run.h"
#include "transport/session/owner_side_internal.h"

namespace tandem {

OwnerSide::State::State(OwnedRegion owned, WaitStrategy wait)
    : region(std::move(owned)),
      header(region.mapping()->header()),
      waiter(Doorbell(&header->engine_doorbell, &header->engine_sleepers),
             wait),
      own_bell(&header->engine_doorbell, &header->engine_sleepers),
      client_bell(&header->client_doorbell, &header->client_sleepers),
      to_client(region.mapping()->At<RingHeader>(header->cmd_s2c_offset)),
      to_engine(region.mapping()->At<RingHeader>(header->cmd_c2s_offset)),
      ring_bytes(header->cmd_ring_size),
      has_frames(!region.frame_ring().empty()),
      has_workers(HasWorkers(*header)) {
  if (!has_workers) {
    waiter.ShareCore(&header->client_core, &header->engine_core);
  }
  if ((header->feature_bits & kFeatureAttendants) == 0) return;
  attendants_offset = header->attendants_offset;
  attendant_slots = region.mapping()->At<std::byte>(attendants_offset);
  attendant_ring_bytes = header->attendant_ring_size;
}

[[gnu::noinline]] void OwnerSide::State::CountAttendantPause(int64_t now_ns) {
  attendant_pause_ns += static_cast<uint64_t>(now_ns - phase_since_ns);
  // relaxed: the phase publishes it.
  header->attendant_pause_ns.store(attendant_pause_ns,
                                   std::memory_order_relaxed);
}

OwnerSide::OwnerSide(std::unique_ptr<State> state)
    : state_(std::move(state)),
      header_(state_->header),
      // A private region still: the header is as PlanRegion made it.
      arrays_(MakeStepArrays(*mapping(), *header_, region().fields())),
      rpcs_written_(&state_->to_engine->write_pos) {
  SetPhase(Phase::kResetting, MonotonicNanos());
}

OwnerSide::OwnerSide(OwnerSide&&) noexcept = default;

OwnerSide::~OwnerSide() {
  if (state_ == nullptr || !state_->region.IsOurs()) return;
  SetPhase(Phase::kStopped, MonotonicNanos());
  const std::shared_ptr<const RegionMapping> mapping = region().mapping();
  // Unlinks the name and drops the lock before the client checks.
  { const OwnedRegion gone = std::move(state_->region); }
  state_->client_bell.NotifyAll();
  for (size_t slot = 0; slot < kAttendantSlots; ++slot) {
    if (state_->attendants[slot].present) state_->BellOf(slot).NotifyAll();
  }
  if (state_->has_workers) state_->own_bell.NotifyAll();
}

bool OwnerSide::holds_exchange() const { return state_->holds; }
void OwnerSide::ReleaseExchange() { state_->holds = false; }
uint32_t OwnerSide::frame_request() const { return state_->frame_request; }
uint64_t OwnerSide::frame_seq() const { return state_->frame_seq; }
const OwnedRegion& OwnerSide::region() const { return state_->region; }
const std::string& OwnerSide::BrokenClientText() const {
  return state_->broken_text;
}

bool OwnerSide::HasCalls() const {
  const State& s = *state_;
  // relaxed: the flags alone are what is asked.
  if (s.asked.load(std::memory_order_relaxed) != 0) return true;
  if (HasRpcs() || AttendantsRang()) return true;
  // relaxed: a number that is only compared; beside attach_request.
  return s.has_frames && s.header->frame_request.load(
                             std::memory_order_relaxed) != s.frame_request;
}

bool OwnerSide::PollRpcs() {
  if (!HasRpcs()) return false;
  // relaxed: as in HasRpcs.
  polled_rpcs_ = rpcs_written_->load(std::memory_order_relaxed);
  polled_all_ = true;
  return true;
}

void OwnerSide::PollRpcsAgain() { polled_all_ = false; }

absl::StatusOr<RingReader> OwnerSide::RpcRingReader() {
  State& s = *state_;
  polls_rpcs_ = true;
  polled_all_ = false;  // requests before this call
  return RingReader::Attach(s.to_engine, RingDataOf(s.to_engine, s.ring_bytes),
                            s.client_bell);
}

absl::StatusOr<RingWriter> OwnerSide::RpcRingWriter() {
  State& s = *state_;
  return RingWriter::Attach(s.to_client, RingDataOf(s.to_client, s.ring_bytes),
                            s.client_bell);
}

bool OwnerSide::PollAttendants() {
  if (!AttendantsRang()) return false;
  // SYNC(attendant.bell): acquire; as above.
  attendant_bell_ = header_->attendant_bell.load(std::memory_order_acquire);
  return true;
}

void OwnerSide::PollAttendantsAgain() { --attendant_bell_; }

AttendantChange OwnerSide::PollAttendant(size_t slot) {
  State& s = *state_;
  if (s.attendants_offset == 0) return AttendantChange::kNone;
  State::Attendant& known = s.attendants[slot];
  // SYNC(attendant.hello): acquire; the request, then the label.
  const uint32_t request =
      s.SlotAt(slot)->request.load(std::memory_order_acquire);
  if (request != known.request) {
    known.request = request;
    const bool was_present = std::exchange(known.present, IsPresent(request));
    if (!known.present) {
      return was_present ? AttendantChange::kLeft : AttendantChange::kNone;
    }
    ResetRing(s.RingAt(slot, kToAttendant));
    ResetRing(s.RingAt(slot, kToEngine));
    return AttendantChange::kArrived;
  }
  if (!std::exchange(known.check, false)) return AttendantChange::kNone;
  known.present = s.region.PeerAlive(static_cast<int64_t>(
      s.attendants_offset + slot * AttendantSlotBytes(s.attendant_ring_bytes)));
  return known.present ? AttendantChange::kNone : AttendantChange::kLeft;
}

absl::StatusOr<RingReader> OwnerSide::AttendantRingReader(size_t slot) {
  State& s = *state_;
  RingHeader* const ring = s.RingAt(slot, kToEngine);
  return RingReader::Attach(ring, RingDataOf(ring, s.attendant_ring_bytes),
                            s.BellOf(slot));
}

absl::StatusOr<RingWriter> OwnerSide::AttendantRingWriter(size_t slot) {
  State& s = *state_;
  RingHeader* const ring = s.RingAt(slot, kToAttendant);
  return RingWriter::Attach(ring, RingDataOf(ring, s.attendant_ring_bytes),
                            s.BellOf(slot));
}

void OwnerSide::WelcomeAttendant(size_t slot) {
  State& s = *state_;
  // SYNC(attendant.welcome): release; empty rings before the answer.
  s.SlotAt(slot)->ack.store(s.attendants[slot].request,
                            std::memory_order_release);
  s.BellOf(slot).NotifyIfWaiting();
}

std::string OwnerSide::AttendantText(size_t slot) const {
  return LabelAndPid(*state_->SlotAt(slot));
}

std::string OwnerSide::ClientText(int64_t now_ns) const {
  const State& s = *state_;
  if (s.has_client) {
    // relaxed: a label for people.
    return absl::StrCat("the client of pid ",
                        s.header->client_pid.load(std::memory_order_relaxed));
  }
  const bool stepped =
      s.taken_at_ns != 0 && now_ns - s.taken_at_ns < kLocklessNs;
  return stepped ? "a client without a lock" : "";
}

absl::Status OwnerSide::TakeAutoresetMode() {
  State& s = *state_;
  // relaxed: attach_request published it.
  const auto mode = static_cast<AutoresetMode>(
      s.header->autoreset_mode.load(std::memory_order_relaxed));
  const bool known = mode <= AutoresetMode::kDisabled;
  autoreset_mode_ = known ? mode : AutoresetMode::kSameStep;
  if (known) return absl::OkStatus();
  return MakeError(ErrorCode::kUnsupported,
                   absl::StrCat("autoreset_mode: expected 0 to 2, found ",
                                static_cast<uint32_t>(mode)));
}

void OwnerSide::ForgetClient() {
  State& s = *state_;
  // If the client was killed, the kernel released its lock after its last
  // write.
  // SYNC(attach.leave): acquire; the phase, then what the client left.
  (void)s.header->client_phase.load(std::memory_order_acquire);
  DropHeldExchange();
  s.has_client = false;
  polls_rpcs_ = false;
  s.taken_at_ns = 0;  // its exchanges are no other client's
  autoreset_mode_ = AutoresetMode::kSameStep;
  // A pending exchange still needs its flags and kind, and will clear them.
  // relaxed: only compared; the exchange is taken by Take's acquire.
  if (s.header->action_seq.load(std::memory_order_relaxed) == s.frame_seq) {
    ClearRequests();
  }
  StoreIfOther(&s.header->client_core, 0);  // the next stores it when welcomed
  // An engine that never sleeps stores no core, and clears none that is wrong.
  StoreIfOther(&s.header->engine_core, 0);
  // The next client may have stored its labels already.
  if (s.region.PeerAlive(kClientLockByte)) return;
  // relaxed: labels, for display.
  s.header->client_pid.store(0, std::memory_order_relaxed);
  s.header->client_phase.store(PackPhase(Phase::kAbsent, MonotonicNanos()),
                               std::memory_order_relaxed);
}

void OwnerSide::Resynchronise() {
  State& s = *state_;
  s.count_grace.Clear();
  s.holds = false;
  // relaxed: only the number is used, nothing that it would publish.
  const uint64_t found = s.header->action_seq.load(std::memory_order_relaxed);
  s.broken_text = absl::StrCat("action_seq: expected ", s.frame_seq, " or ",
                               s.frame_seq + 1, ", found ", found,
                               "; more than one client, or one that does not "
                               "add 1 to what it found");
  StoreStatus(s.header, ErrorCode::kBrokenPeer, s.broken_text);
  s.frame_seq = found;
  // SYNC(lockstep.frame): release; the error before the number.
  s.header->frame_seq.store(s.frame_seq, std::memory_order_release);
  s.client_bell.NotifyIfWaiting();
}

void OwnerSide::Answer(const absl::Status& status, uint64_t frame_seq) {
  State& s = *state_;
  s.frame_seq = frame_seq;
  // relaxed: attach_ack publishes it.
  s.header->frame_seq.store(frame_seq, std::memory_order_relaxed);
  s.count_grace.Clear();
  ClearRequests();
  // Messages to and from the last client are dropped with it; the next uses
  // the rings only once its attach is acknowledged.
  ResetRing(s.to_client);
  ResetRing(s.to_engine);
  polls_rpcs_ = false;
  StoreStatus(s.header, CodeOf(status), status.message());
  s.acknowledged = s.arriving;
  s.has_client = status.ok();
  // Its number may differ from the one at rendering.
  if (status.ok() && !arrays_.images.empty()) TagImages(frame_seq);
  SetPhase(s.idle, MonotonicNanos());
  StoreIfOther(&s.header->client_core, 0);
  s.own_run.reset();  // the last client's
  StoreOwnRun(s.header, std::nullopt);
  // SYNC(attach.welcome): release; fresh observations before the answer.
  s.header->attach_ack.store(s.acknowledged, std::memory_order_release);
  s.client_bell.NotifyIfWaiting();
}

void OwnerSide::ShowPaused(bool paused, bool by_attendant) {
  State& s = *state_;
  const bool between_steps = s.phase == s.idle;
  s.idle = !paused        ? Phase::kIdle
           : by_attendant ? Phase::kPausedByAttendant
                          : Phase::kPaused;
  if (between_steps) SetPhase(s.idle, MonotonicNanos());
}

void OwnerSide::ShowRealTimeStep(bool under_way) {
  SetPhase(under_way ? Phase::kStepping : state_->idle, MonotonicNanos());
}

void OwnerSide::ShowServices(uint32_t services) {
  // relaxed: for observers; no call depends on it.
  state_->header->services.store(services, std::memory_order_relaxed);
}

void OwnerSide::ShowDroppedMessages(uint64_t dropped) {
  // relaxed: a count for people.
  StoreIfOther(&state_->header->dropped_messages, dropped);
}

void OwnerSide::SetMode(RegionMode mode) {
  // relaxed: for observers; no exchange depends on it.
  state_->header->mode.store(static_cast<uint8_t>(mode),
                             std::memory_order_relaxed);
}

void OwnerSide::TagImages(uint64_t frame_seq) {
  // relaxed: frame_seq or attach_ack publishes it, or the region's name.
  state_->header->image_step.store(frame_seq, std::memory_order_relaxed);
}

std::optional<RunSnapshot> OwnerSide::OwnRun() {
  State& s = *state_;
  // The exchanges since the client left are those of a header-only client.
  if (!s.has_client && s.taken_at_ns != 0) return std::nullopt;
  (void)LoadOwnRun(*s.header, &s.own_run);
  return s.own_run;
}

void OwnerSide::RequestStop() {
  // relaxed: the flag alone is what is said.
  state_->asked.fetch_or(State::kAskedToStop, std::memory_order_relaxed);
  state_->own_bell.NotifyAll();
}

bool OwnerSide::StopRequested() const {
  // relaxed: only the flag's value is used.
  return (state_->asked.load(std::memory_order_relaxed) &
          State::kAskedToStop) != 0;
}

void OwnerSide::WakeStepThread() {
  // relaxed: the flag alone is what is said.
  state_->asked.fetch_or(State::kAskedForFrame, std::memory_order_relaxed);
  state_->own_bell.NotifyIfWaiting();
}

void OwnerSide::AnswerFrame(uint32_t request) {
  State& s = *state_;
  // SYNC(frames.answer): release; the frame in its ring before the number.
  s.header->frame_answer.store(request, std::memory_order_release);
  s.client_bell.NotifyIfWaiting();
}

void OwnerSide::CheckNameAndAttendants(int64_t now_ns) {
  State& s = *state_;
  if (now_ns - s.name_checked_ns < State::kCheckNameNs) return;
  s.name_checked_ns = now_ns;
  for (State::Attendant& known : s.attendants) {
    known.check = known.present;
    if (known.present && !AttendantsRang()) PollAttendantsAgain();
  }
  s.region.RestoreName();
}

}  // namespace tandem
