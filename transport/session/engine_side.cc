#include "transport/session/engine_side.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "schema/layout/ring_header.h"
#include "schema/layout/worker_slot.h"
#include "transport/session/engine_side_internal.h"
#include "transport/session/exchange_status.h"
#include "transport/session/phase_word.h"
#include "transport/session/step_times.h"

namespace tandem {
namespace {

constexpr uint32_t kAskedToStop = 1;
constexpr uint32_t kAskedForFrame = 2;

}  // namespace

absl::StatusOr<EngineSide> EngineSide::Create(absl::string_view name,
                                              const RegionSpec& spec,
                                              const Options& options) {
  TANDEM_ASSIGN_OR_RETURN(auto region,
                          OwnedRegion::Create(name, spec, options.region));
  return EngineSide(std::move(region), options.wait);
}

EngineSide::EngineSide(OwnedRegion region, WaitStrategy wait)
    : region_(std::move(region)),
      header_(region_.mapping()->header()),
      // A private region still: the header is as PlanRegion made it.
      arrays_(StepArrays::Of(*region_.mapping(), *header_, region_.fields())),
      waiter_(Doorbell(&header_->engine_doorbell, &header_->engine_sleepers),
              // A supervisor takes no core from its workers.
              HasWorkers(*header_) ? WaitStrategy::kBlock : wait),
      own_bell_(&header_->engine_doorbell, &header_->engine_sleepers),
      client_bell_(&header_->client_doorbell, &header_->client_sleepers),
      to_client_(mapping()->At<RingHeader>(header_->cmd_s2c_offset)),
      to_engine_(mapping()->At<RingHeader>(header_->cmd_c2s_offset)),
      ring_bytes_(header_->cmd_ring_size),
      has_frames_(!region_.frame_ring().empty()),
      attendants_(region_.mapping()),
      supervision_(HasWorkers(*header_) ? std::make_unique<Supervision>(region_)
                                        : nullptr),
      asked_(std::make_unique<std::atomic<uint32_t>>(0)) {
  SetPhase(Phase::kResetting, MonotonicNanos());
}

EngineSide::EngineSide(EngineSide&&) noexcept = default;

EngineSide::~EngineSide() {
  if (!region_.IsOurs()) return;
  SetPhase(Phase::kStopped, MonotonicNanos());
  const std::shared_ptr<const RegionMapping> mapping = region_.mapping();
  // Unlinks the name and drops the lock before the client checks.
  { const OwnedRegion gone = std::move(region_); }
  client_bell_.NotifyAll();
  attendants_.NotifyAll();
  if (supervision_ != nullptr) own_bell_.NotifyAll();  // the workers
}

absl::Status EngineSide::Open() {
  SetPhase(idle_, MonotonicNanos());
  if (supervision_ != nullptr) {
    supervision_->opened = true;
    LetWorkersGo();
  }
  return region_.Link();
}

bool EngineSide::Ready() const { return HasExchange() || HasRequest(); }

// Not inline: the usual case is an exchange.
[[gnu::noinline]] bool EngineSide::HasRequest() const {
  if (supervision_ != nullptr) {
    if (SupervisorReady() || InputIsReadable()) return true;
    if (!supervision_->TakesRequests()) return StopRequested();
    // SYNC(attach.hello): acquire; the request, then the mode it asks for.
  } else if (header_->attach_request.load(std::memory_order_acquire) !=
             acknowledged_) {
    return true;
  }
  // relaxed: the flags alone are what is asked.
  if (asked_->load(std::memory_order_relaxed) != 0) return true;
  if (HasRpcs() || attendants_.Rang()) return true;
  // relaxed: a number that is only compared; beside attach_request.
  return has_frames_ && header_->frame_request.load(
                            std::memory_order_relaxed) != frame_request_;
}

bool EngineSide::HasExchange() const {
  // SYNC(lockstep.action): acquire; the number, then what it publishes.
  return !holds_ &&
         header_->action_seq.load(std::memory_order_acquire) ==
             frame_seq_ + 1 &&
         supervision_ == nullptr;
}

bool EngineSide::PollRpcs() {
  if (!HasRpcs()) return false;
  // relaxed: as in HasRpcs.
  polled_pos_ = to_engine_->write_pos.load(std::memory_order_relaxed);
  polled_all_ = true;
  return true;
}

EngineEvent EngineSide::Next(Deadline deadline) {
  if (supervision_ != nullptr) return NextOfSupervisor(deadline);
  for (;;) {
    Watch watch(this);
    const ErrorCode code =
        waiter_.Until([this] { return Ready(); }, deadline, watch);
    EngineEvent event = EngineEvent::kTimedOut;
    if (code == ErrorCode::kOk) {
      event = Take(waiter_.CameAtNs());
      // Take has answered the client: the caller has no event to handle.
      if (event == EngineEvent::kTimedOut &&
          !deadline.PassedAt(MonotonicNanos())) {
        continue;
      }
    } else if (code != ErrorCode::kStepTimeout) {
      event = watch.event();
    } else {
      // The waiter checks only in long waits; deadlines may be earlier.
      event = PollPeerNowAndThen();
    }
    return Deliver(event);
  }
}

EngineEvent EngineSide::Poll() {
  return Deliver(Ready() ? Take(waiter_.NowNs()) : PollPeerNowAndThen());
}

EngineEvent EngineSide::PollPeerNowAndThen() {
  const int64_t now = waiter_.NowNs();
  if (now - polled_peer_ns_ < kPollPeerNs) return EngineEvent::kTimedOut;
  polled_peer_ns_ = now;
  const EngineEvent event = PollPeer(now);
  // A client's last message is handled before its leave.
  return Ready() ? Take(now) : event;
}

EngineEvent EngineSide::Take(int64_t seen_at_ns) {
  if (StopRequested()) return EngineEvent::kStopRequested;
  // An exchange is handled before a new client: it is the old client's last.
  // The attach request is read first, so that no exchange sent before it is
  // missed. Only one exchange: otherwise a client that keeps stepping would
  // delay another client's request forever.
  // SYNC(attach.hello): acquire; the request, then the mode it asks for.
  const uint32_t request =
      header_->attach_request.load(std::memory_order_acquire);
  const bool put_off = request != acknowledged_ && request == put_off_;
  if (!put_off && HasExchange()) {
    put_off_ = request;
    count_grace_.Clear();
    taken_at_ns_ = seen_at_ns;
    // relaxed: action_seq published it.
    kind_ = static_cast<ExchangeKind>(
        header_->exchange_kind.load(std::memory_order_relaxed));
    if (kind_ != ExchangeKind::kStep && kind_ != ExchangeKind::kResetOnly) {
      Fail(
          ErrorCode::kUnsupported,
          "exchange_kind: expected 0 or 1, found another; nothing was stepped");
      return EngineEvent::kTimedOut;
    }
    SetPhase(
        kind_ == ExchangeKind::kStep ? Phase::kStepping : Phase::kResetting,
        taken_at_ns_);
    return EngineEvent::kExchange;
  }
  if (supervision_ != nullptr) return TakeOfSupervisor();
  if (request == acknowledged_) return TakeRequest();
  arriving_ = request;
  DropHeldExchange();
  // relaxed: attach_request published it.
  autoreset_mode_ = static_cast<AutoresetMode>(
      header_->autoreset_mode.load(std::memory_order_relaxed));
  if (autoreset_mode_ > AutoresetMode::kDisabled) {
    const bool left = has_client_;
    AcknowledgeAttach(
        UnknownMode(std::exchange(autoreset_mode_, AutoresetMode::kSameStep)));
    return left ? EngineEvent::kClientLeft : EngineEvent::kTimedOut;
  }
  SetPhase(Phase::kResetting, MonotonicNanos());
  return EngineEvent::kClientArrived;
}

absl::Status EngineSide::UnknownMode(AutoresetMode mode) {
  return MakeError(ErrorCode::kUnsupported,
                   absl::StrCat("autoreset_mode: expected 0 to 2, found ",
                                static_cast<uint32_t>(mode)));
}

// Handles requests of both kinds of peers beside steps; kTimedOut if there are
// none.
EngineEvent EngineSide::TakeRequest() {
  // Alternates with all others: an attendant that rings without end, and a
  // client that calls without end, do not delay each other.
  if (!just_polled_attendants_ && PollAttendants()) {
    just_polled_attendants_ = true;
    return EngineEvent::kAttendants;
  }
  just_polled_attendants_ = false;
  if (PollRpcs()) return EngineEvent::kRpcs;
  // relaxed: the flag alone is what is asked; FrameThread's word has the rest.
  const bool called =
      (asked_->fetch_and(~kAskedForFrame, std::memory_order_relaxed) &
       kAskedForFrame) != 0;
  // relaxed: a number that is only compared.
  const uint32_t request =
      header_->frame_request.load(std::memory_order_relaxed);
  if (!called && (!has_frames_ || request == frame_request_)) {
    return PollAttendants() ? EngineEvent::kAttendants : EngineEvent::kTimedOut;
  }
  frame_request_ = request;
  return EngineEvent::kFrameWanted;
}

// Detects events without a request; kTimedOut if there are none. Changes
// nothing that a caller can see: an exchange may still be handled before the
// event.
EngineEvent EngineSide::PollPeer(int64_t now_ns) {
  if (supervision_ != nullptr) {
    if (supervision_->opened) RestoreNameNowAndThen(now_ns);
    PollWorkers(now_ns);  // Take returns what it finds
    return EngineEvent::kTimedOut;
  }
  RestoreNameNowAndThen(now_ns);
  if (has_client_ && !region_.PeerAlive(kClientLockByte))
    return EngineEvent::kClientLeft;
  // relaxed: only compared; an exchange is taken by Take's acquire.
  const uint64_t action_seq =
      header_->action_seq.load(std::memory_order_relaxed);
  if (action_seq - frame_seq_ <= 1) {
    count_grace_.Clear();
  } else if (count_grace_.Expired()) {
    return EngineEvent::kBrokenClient;
  }
  return EngineEvent::kTimedOut;
}

EngineEvent EngineSide::Deliver(EngineEvent event) {
  // With workers this has been done already.
  if (event == EngineEvent::kClientLeft && supervision_ == nullptr) {
    ForgetClient();
  }
  if (event == EngineEvent::kBrokenClient && supervision_ == nullptr) {
    Resynchronise();
  }
  return event;
}

// Clears what a client wrote but did not send before it left.
void EngineSide::ClearRequests() {
  std::fill(arrays_.resets.begin(), arrays_.resets.end(), uint8_t{0});
  // relaxed: the next frame_seq or attach_ack publishes it.
  StoreIfOther(&header_->exchange_kind, 0);
}

// The client of the held exchange has left, or another one has attached.
void EngineSide::DropHeldExchange() {
  if (!holds_) return;
  holds_ = false;
  taken_at_ns_ = waiter_.NowNs();  // it was held, not stepped
  Fail(ErrorCode::kUnsupported,
       "the held exchange was dropped: its client left");
}

void EngineSide::HoldExchange() {
  holds_ = true;
  SetPhase(idle_, taken_at_ns_);
}

void EngineSide::ShowPaused(bool paused, bool by_attendant) {
  const bool between_steps = phase_ == idle_;
  idle_ = !paused        ? Phase::kIdle
          : by_attendant ? Phase::kPausedByAttendant
                         : Phase::kPaused;
  if (between_steps) SetPhase(idle_, MonotonicNanos());
  if (supervision_ == nullptr) return;
  supervision_->pauses = paused;
  // At once: who reads the answer of a pause has the workers' order, too.
  AdvanceWorkers();
}

void EngineSide::ShowRealTimeStep(bool under_way) {
  SetPhase(under_way ? Phase::kStepping : idle_, MonotonicNanos());
}

void EngineSide::ShowServices(uint32_t services) {
  // relaxed: for observers; no call depends on it.
  header_->services.store(services, std::memory_order_relaxed);
}

void EngineSide::ShowDroppedMessages(uint64_t dropped) {
  // relaxed: a count for people.
  StoreIfOther(&header_->dropped_messages, dropped);
}

void EngineSide::SetMode(RegionMode mode) {
  // relaxed: for observers; no exchange depends on it.
  header_->mode.store(static_cast<uint8_t>(mode), std::memory_order_relaxed);
}

// After this the region is in the state that a header-only client expects.
void EngineSide::ForgetClient() {
  // If the client was killed, the kernel released its lock after its last
  // write.
  // SYNC(attach.leave): acquire; the phase, then what the client left.
  (void)header_->client_phase.load(std::memory_order_acquire);
  DropHeldExchange();
  has_client_ = false;
  polls_rpcs_ = false;
  taken_at_ns_ = 0;  // its exchanges are no other client's
  autoreset_mode_ = AutoresetMode::kSameStep;
  // A pending exchange still needs its flags and kind, and will clear them.
  // relaxed: only compared; the exchange is taken by Take's acquire.
  if (header_->action_seq.load(std::memory_order_relaxed) == frame_seq_) {
    ClearRequests();
  }
  // The next client may have stored its labels already.
  if (region_.PeerAlive(kClientLockByte)) return;
  // relaxed: labels, for display.
  header_->client_pid.store(0, std::memory_order_relaxed);
  header_->client_phase.store(PackPhase(Phase::kAbsent, MonotonicNanos()),
                              std::memory_order_relaxed);
}

void EngineSide::Resynchronise() {
  count_grace_.Clear();
  holds_ = false;
  // relaxed: only the number is used, nothing that it would publish.
  const uint64_t found = header_->action_seq.load(std::memory_order_relaxed);
  broken_text_ = absl::StrCat("action_seq: expected ", frame_seq_, " or ",
                              frame_seq_ + 1, ", found ", found,
                              "; more than one client, or one that does not "
                              "add 1 to what it found");
  SetStatus(ErrorCode::kBrokenPeer, broken_text_);
  frame_seq_ = found;
  // SYNC(lockstep.frame): release; the error before the number.
  header_->frame_seq.store(frame_seq_, std::memory_order_release);
  client_bell_.NotifyIfWaiting();
}

void EngineSide::TagImages(uint64_t frame_seq) {
  // relaxed: frame_seq or attach_ack publishes it, or the region's name.
  header_->image_step.store(frame_seq, std::memory_order_relaxed);
}

void EngineSide::Complete(ErrorCode code, absl::string_view text) {
  SetStatus(code, text);
  // A header-only client after this one finds the defaults.
  ClearRequests();
  ++frame_seq_;
  // SYNC(lockstep.frame): release; results and cleared flags before the number.
  header_->frame_seq.store(frame_seq_, std::memory_order_release);
  // Before the bell: the wake of the client is not part of the step's time.
  const int64_t now = waiter_.NowNs();
  client_bell_.NotifyIfWaiting();
  // The client runs already; the statistics are updated in parallel.
  SetPhase(idle_, now);
  RecordStepTime(&header_->engine_step_times,
                 static_cast<uint64_t>(now - taken_at_ns_));
  RestoreNameNowAndThen(now);
}

void EngineSide::AcknowledgeAttach(const absl::Status& status) {
  // relaxed: only compared; nothing that it publishes is read here.
  const uint64_t action_seq =
      header_->action_seq.load(std::memory_order_relaxed);
  // The last client may have written an invalid number, or overwritten
  // frame_seq. With workers no exchange of an earlier client is pending here.
  if (action_seq - frame_seq_ > 1 || supervision_ != nullptr) {
    frame_seq_ = action_seq;
  }
  // relaxed: attach_ack publishes it.
  header_->frame_seq.store(frame_seq_, std::memory_order_relaxed);
  count_grace_.Clear();
  ClearRequests();
  // Messages to and from the last client are dropped with it; the next uses
  // the rings only once its attach is acknowledged.
  ResetRing(to_client_);
  ResetRing(to_engine_);
  polls_rpcs_ = false;
  SetStatus(CodeOf(status), status.message());
  acknowledged_ = arriving_;
  has_client_ = status.ok();
  // Its number may differ from the one at rendering.
  if (status.ok() && !arrays_.images.empty()) TagImages(frame_seq_);
  SetPhase(idle_, MonotonicNanos());
  // SYNC(attach.welcome): release; fresh observations before the answer.
  header_->attach_ack.store(acknowledged_, std::memory_order_release);
  client_bell_.NotifyIfWaiting();
  if (supervision_ != nullptr) {
    supervision_->client_left = false;  // the last client's
    supervision_->fresh_at = supervision_->workers.Activity();
    LetWorkersGo();
  }
}

absl::StatusOr<RingReader> EngineSide::RpcRingReader() {
  polls_rpcs_ = true;
  polled_all_ = false;  // requests before this call
  return RingReader::Attach(to_engine_, RingDataOf(to_engine_, ring_bytes_),
                            client_bell_);
}

absl::StatusOr<RingWriter> EngineSide::RpcRingWriter() {
  return RingWriter::Attach(to_client_, RingDataOf(to_client_, ring_bytes_),
                            client_bell_);
}

void EngineSide::RequestStop() {
  // relaxed: the flag alone is what is said.
  asked_->fetch_or(kAskedToStop, std::memory_order_relaxed);
  own_bell_.NotifyAll();
}

bool EngineSide::StopRequested() const {
  // relaxed: only the flag's value is used.
  return (asked_->load(std::memory_order_relaxed) & kAskedToStop) != 0;
}

void EngineSide::WakeStepThread() {
  // relaxed: the flag alone is what is said.
  asked_->fetch_or(kAskedForFrame, std::memory_order_relaxed);
  own_bell_.NotifyIfWaiting();
}

void EngineSide::AnswerFrame(uint32_t request) {
  // SYNC(frames.answer): release; the frame in its ring before the number.
  header_->frame_answer.store(request, std::memory_order_release);
  client_bell_.NotifyIfWaiting();
}

void EngineSide::SetStatus(ErrorCode code, absl::string_view text) {
  StoreStatus(header_, code, text);
}

[[gnu::noinline]] void EngineSide::CountAttendantPause(int64_t now_ns) {
  attendant_pause_ns_ += static_cast<uint64_t>(now_ns - phase_since_ns_);
  // relaxed: the phase publishes it.
  header_->attendant_pause_ns.store(attendant_pause_ns_,
                                    std::memory_order_relaxed);
}

bool EngineSide::PollAttendants() {
  if (!attendants_.Rang()) return false;
  attendants_.Look();
  return true;
}

AttendantChange EngineSide::PollAttendant(size_t slot) {
  const AttendantChange change = attendants_.Poll(slot, region_);
  if (change == AttendantChange::kArrived) attendants_.Reset(slot);
  return change;
}

std::string EngineSide::ClientText(int64_t now_ns) const {
  if (has_client_) {
    // relaxed: a label for people.
    return absl::StrCat("the client of pid ",
                        header_->client_pid.load(std::memory_order_relaxed));
  }
  const bool stepped = taken_at_ns_ != 0 && now_ns - taken_at_ns_ < kLocklessNs;
  return stepped ? "a client without a lock" : "";
}

void EngineSide::RestoreNameNowAndThen(int64_t now_ns) {
  if (now_ns - name_checked_ns_ < kRestoreNameNs) return;
  name_checked_ns_ = now_ns;
  attendants_.CheckLocks();
  region_.RestoreName();
}

}  // namespace tandem
