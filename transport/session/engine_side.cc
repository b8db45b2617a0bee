#include "transport/session/engine_side.h"

#include <cassert>
#include <utility>

#include "base/error.h"
#include "transport/session/exchange_status.h"
#include "transport/session/owner_side_internal.h"
#include "transport/step_times.h"
#include "transport/wait/waiter.h"

namespace tandem {

// Ends a long wait for reasons that the condition does not show: a client that
// died, or a client with an invalid action_seq.
class EngineSide::Watch final : public WaitWatch {
 public:
  explicit Watch(EngineSide* side) : side_(side) {}

  ErrorCode Check(int64_t now_ns, bool interrupted) override {
    event_ = side_->PollPeer(now_ns);
    if (event_ == EngineEvent::kTimedOut && interrupted) {
      event_ = EngineEvent::kInterrupted;
    }
    return event_ == EngineEvent::kTimedOut ? ErrorCode::kOk
                                            : ErrorCode::kInterrupted;
  }

  EngineEvent event() const { return event_; }

 private:
  EngineSide* side_;
  EngineEvent event_ = EngineEvent::kTimedOut;  // nothing to report
};

absl::StatusOr<EngineSide> EngineSide::Create(absl::string_view name,
                                              const RegionSpec& spec,
                                              const Options& options) {
  assert(spec.workers == 0);
  TANDEM_ASSIGN_OR_RETURN(auto region,
                          OwnedRegion::Create(name, spec, options.region));
  auto state = std::make_unique<State>(std::move(region), options.wait);
  if (options.wakes_early) {
    state->waiter.WakeEarly(&state->header->early_wakes,
                            &state->header->early_hits);
  }
  return EngineSide(std::move(state));
}

EngineSide::EngineSide(std::unique_ptr<State> state)
    : OwnerSide(std::move(state)) {}

absl::Status EngineSide::Open() {
  SetPhase(state_->idle, MonotonicNanos());
  return state_->region.Link();
}

// Not inline: the usual case is an exchange.
[[gnu::noinline]] bool EngineSide::HasRequest() const {
  const State& s = *state_;
  // SYNC(attach.hello): acquire; the request, then the mode it asks for.
  return s.header->attach_request.load(std::memory_order_acquire) !=
             s.acknowledged ||
         HasCalls();
}

bool EngineSide::HasExchange() const {
  const State& s = *state_;
  // SYNC(lockstep.action): acquire; the number, then what it publishes.
  return !s.holds && s.header->action_seq.load(std::memory_order_acquire) ==
                         s.frame_seq + 1;
}

EngineEvent EngineSide::Next(Deadline deadline) {
  for (;;) {
    State& s = *state_;
    Watch watch(this);
    const ErrorCode code =
        s.waiter.Until([this] { return Ready(); }, deadline, watch);
    EngineEvent event = EngineEvent::kTimedOut;
    if (code == ErrorCode::kOk) {
      event = Take(s.waiter.CameAtNs());
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
  return Deliver(Ready() ? Take(state_->waiter.NowNs()) : PollPeerNowAndThen());
}

EngineEvent EngineSide::PollPeerNowAndThen() {
  State& s = *state_;
  const int64_t now = s.waiter.NowNs();
  if (now - s.polled_peer_ns < State::kPollPeerNs) {
    return EngineEvent::kTimedOut;
  }
  s.polled_peer_ns = now;
  const EngineEvent event = PollPeer(now);
  // A client's last message is handled before its leave.
  return Ready() ? Take(now) : event;
}

EngineEvent EngineSide::Take(int64_t seen_at_ns) {
  State& s = *state_;
  if (StopRequested()) return EngineEvent::kStopRequested;
  // An exchange is handled before a new client: it is the old client's last.
  // The attach request is read first, so that no exchange sent before it is
  // missed. Only one exchange: otherwise a client that keeps stepping would
  // delay another client's request forever.
  // SYNC(attach.hello): acquire; the request, then the mode it asks for.
  const uint32_t request =
      s.header->attach_request.load(std::memory_order_acquire);
  const bool put_off = request != s.acknowledged && request == put_off_;
  if (!put_off && HasExchange()) {
    put_off_ = request;
    s.count_grace.Clear();
    s.taken_at_ns = seen_at_ns;
    // relaxed: action_seq published it.
    kind_ = static_cast<ExchangeKind>(
        s.header->exchange_kind.load(std::memory_order_relaxed));
    if (kind_ != ExchangeKind::kStep && kind_ != ExchangeKind::kResetOnly) {
      Fail(
          ErrorCode::kUnsupported,
          "exchange_kind: expected 0 or 1, found another; nothing was stepped");
      return EngineEvent::kTimedOut;
    }
    SetPhase(
        kind_ == ExchangeKind::kStep ? Phase::kStepping : Phase::kResetting,
        s.taken_at_ns);
    return EngineEvent::kExchange;
  }
  if (request == s.acknowledged) return TakeRequest<EngineEvent>();
  s.arriving = request;
  DropHeldExchange();
  if (const absl::Status unknown = TakeAutoresetMode(); !unknown.ok()) {
    const bool left = s.has_client;
    AcknowledgeAttach(unknown);
    return left ? EngineEvent::kClientLeft : EngineEvent::kTimedOut;
  }
  SetPhase(Phase::kResetting, MonotonicNanos());
  return EngineEvent::kClientArrived;
}

// Detects events without a request; kTimedOut if there are none. Changes
// nothing that a caller can see: an exchange may still be handled before the
// event.
EngineEvent EngineSide::PollPeer(int64_t now_ns) {
  State& s = *state_;
  CheckNameAndAttendants(now_ns);
  if (s.has_client && !s.region.PeerAlive(kClientLockByte)) {
    return EngineEvent::kClientLeft;
  }
  // relaxed: only compared; an exchange is taken by Take's acquire.
  const uint64_t action_seq =
      s.header->action_seq.load(std::memory_order_relaxed);
  if (action_seq - s.frame_seq <= 1) {
    s.count_grace.Clear();
  } else if (s.count_grace.Expired()) {
    return EngineEvent::kBrokenClient;
  }
  return EngineEvent::kTimedOut;
}

EngineEvent EngineSide::Deliver(EngineEvent event) {
  if (event == EngineEvent::kClientLeft) ForgetClient();
  if (event == EngineEvent::kBrokenClient) Resynchronise();
  return event;
}

void EngineSide::DropHeldExchange() {
  State& s = *state_;
  if (!s.holds) return;
  s.holds = false;
  s.taken_at_ns = s.waiter.NowNs();  // it was held, not stepped
  Fail(ErrorCode::kUnsupported,
       "the held exchange was dropped: its client left");
}

void EngineSide::HoldExchange() {
  state_->holds = true;
  SetPhase(state_->idle, state_->taken_at_ns);
}

void EngineSide::Complete(ErrorCode code, absl::string_view text) {
  State& s = *state_;
  StoreStatus(s.header, code, text);
  // A header-only client after this one finds the defaults.
  ClearRequests();
  ++s.frame_seq;
  // SYNC(lockstep.frame): release; results and cleared flags before the number.
  s.header->frame_seq.store(s.frame_seq, std::memory_order_release);
  // Before the bell: the wake of the client is not part of the step's time.
  const int64_t now = s.waiter.NowNs();
  s.client_bell.NotifyIfWaiting();
  // The client runs already; the statistics are updated in parallel.
  SetPhase(s.idle, now);
  RecordStepTime(&s.header->engine_step_times,
                 static_cast<uint64_t>(now - s.taken_at_ns));
  CheckNameAndAttendants(now);
}

void EngineSide::AcknowledgeAttach(const absl::Status& status) {
  const State& s = *state_;
  // relaxed: only compared; nothing that it publishes is read here.
  const uint64_t action_seq =
      s.header->action_seq.load(std::memory_order_relaxed);
  // The last client may have written an invalid number, or overwritten
  // frame_seq.
  Answer(status, action_seq - s.frame_seq > 1 ? action_seq : s.frame_seq);
}

}  // namespace tandem
