// The supervisor's part of EngineSide: docs/protocol.md, "Workers".

#include <poll.h>
#include <time.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "transport/session/engine_side.h"
#include "transport/session/engine_side_internal.h"

namespace tandem {
namespace {

// After an exchange, the supervisor sleeps beside the doorbell for this time: a
// client that sees no sleeper makes no system call.
constexpr int64_t kHotNs = 20'000'000;
constexpr int64_t kNapNs = 1'000'000;
constexpr int64_t kTestLocksNs = 100'000'000;

// How a sleep beside the doorbell ended.
enum class NapEnd : uint8_t { kOver, kReadable, kSignal };

// Sleeps until `fd` is readable, if it is not negative.
NapEnd Nap(int fd, int64_t nap_ns) {
  const timespec nap = {.tv_sec = 0,
                        .tv_nsec = std::clamp<int64_t>(nap_ns, 0, kNapNs)};
  pollfd input = {.fd = fd, .events = POLLIN, .revents = 0};
  const int found = ppoll(&input, 1, &nap, nullptr);
  return found < 0   ? NapEnd::kSignal
         : found > 0 ? NapEnd::kReadable
                     : NapEnd::kOver;
}

}  // namespace

void EngineSide::ResetWorkers(std::optional<uint64_t> first_seed) {
  assert(supervision_ != nullptr && !supervision_->opened);
  supervision_->cause = Supervision::Cause::kOpening;
  supervision_->stage = Supervision::Stage::kResetting;
  supervision_->workers.Order(
      first_seed ? WorkerOrder::kSeededReset : WorkerOrder::kReset,
      first_seed.value_or(0));
}

void EngineSide::MessageWorkers() { supervision_->messages = true; }

uint64_t EngineSide::answered_at() const { return supervision_->answered_at; }

void EngineSide::StopWorkers() {
  if (!supervision_->workers.AllAcknowledged()) return;
  supervision_->stage = Supervision::Stage::kStopping;
  supervision_->workers.Order(WorkerOrder::kStop);
}

uint32_t EngineSide::dead_worker() const { return supervision_->dead_worker; }

bool EngineSide::ReplaceWorker(uint32_t worker) {
  supervision_->fresh = false;
  return supervision_->workers.Replace(
      worker, region_,
      /*takes_over=*/supervision_->stage != Supervision::Stage::kCounting,
      waiter_.NowNs());
}

std::string EngineSide::WorkerText(uint32_t worker) const {
  return supervision_->workers.TextOf(worker, MonotonicNanos());
}

uint64_t EngineSide::worker_steps() const {
  return supervision_->workers.Steps();
}

void EngineSide::End(ErrorCode code, absl::string_view text) {
  supervision_->workers.ShowEnd(code, text);
}

void EngineSide::WatchInput(int fd) { supervision_->input = fd; }

// One system call.
bool EngineSide::InputIsReadable() const {
  return supervision_->input >= 0 &&
         Nap(supervision_->input, 0) == NapEnd::kReadable;
}

// While an order is carried out, the workers wait for the supervisor: it then
// sleeps on the doorbell, which they ring.
bool EngineSide::IsHot(int64_t now_ns) const {
  return supervision_ != nullptr && !supervision_->AwaitsWorkers() &&
         now_ns - supervision_->active_at_ns < kHotNs;
}

// Whether Take has something to do, beside requests.
bool EngineSide::SupervisorReady() const {
  const Supervision& s = *supervision_;
  if (s.news != EngineEvent::kTimedOut || s.dead) return true;
  if (s.AwaitsWorkers()) return s.workers.AllAcknowledged();
  if (!s.opened || !s.IsResting()) return false;
  const bool paused = s.stage == Supervision::Stage::kHeld;
  // SYNC(attach.hello): acquire; the request, then the mode it asks for.
  return s.client_left || s.count_broken || s.messages || s.pauses != paused ||
         header_->attach_request.load(std::memory_order_acquire) !=
             acknowledged_;
}

EngineEvent EngineSide::NextOfSupervisor(Deadline deadline) {
  for (;;) {
    EngineEvent event = EngineEvent::kTimedOut;
    const int64_t now = waiter_.NowNs();
    if (Ready()) {
      if (now - polled_peer_ns_ >= kPollPeerNs) {
        // Deaths are found also while one event follows another.
        polled_peer_ns_ = now;
        (void)PollPeer(now);  // Take returns what it finds
      }
      event = Take(now);
    } else if (IsHot(now)) {
      event =
          Nap(supervision_->input, deadline.at_ns() - now) == NapEnd::kSignal
              ? EngineEvent::kInterrupted
              : PollPeerNowAndThen();
    } else {
      Watch watch(this);
      const ErrorCode code =
          waiter_.Until([this] { return Ready(); }, deadline, watch);
      event = code == ErrorCode::kOk            ? Take(waiter_.CameAtNs())
              : code == ErrorCode::kStepTimeout ? PollPeerNowAndThen()
                                                : watch.event();
    }
    if (event != EngineEvent::kTimedOut ||
        deadline.PassedAt(MonotonicNanos())) {
      return event;
    }
  }
}

EngineEvent EngineSide::TakeOfSupervisor() {
  Supervision& s = *supervision_;
  AdvanceWorkers();
  if (s.dead) {
    s.dead_worker = *std::exchange(s.dead, std::nullopt);
    return EngineEvent::kWorkerDied;
  }
  if (s.news != EngineEvent::kTimedOut) {
    return std::exchange(s.news, EngineEvent::kTimedOut);
  }
  // Alternates with requests: neither delays the other.
  if (!std::exchange(s.just_took_input, false) && InputIsReadable()) {
    s.just_took_input = true;
    return EngineEvent::kInput;
  }
  return s.TakesRequests() ? TakeRequest() : EngineEvent::kTimedOut;
}

// Finds causes and deaths, and publishes what a dead worker has not published.
void EngineSide::PollWorkers(int64_t now_ns) {
  Supervision& s = *supervision_;
  // While counts change, the old ones may look like those of the next exchange.
  if (s.stage != Supervision::Stage::kCounting) {
    (void)s.workers.TakeOver(region_, now_ns);
  }
  const uint64_t activity = s.workers.Activity();
  if (std::exchange(s.activity, activity) != activity) {
    s.active_at_ns = now_ns;
    taken_at_ns_ = now_ns;
  }
  if (s.IsResting()) {
    // SYNC(lockstep.frame): acquire; the number, then the end of its exchange.
    frame_seq_ = header_->frame_seq.load(std::memory_order_acquire);
  }
  s.client_left =
      s.opened && has_client_ && !region_.PeerAlive(kClientLockByte);
  s.count_broken = s.opened && s.IsResting() && CountIsBroken();
  TestLocksNowAndThen(now_ns);
  AdvanceWorkers();
}

// Begins a round over all workers every kTestLocksNs; a poll tests some of
// them.
void EngineSide::TestLocksNowAndThen(int64_t now_ns) {
  Supervision& s = *supervision_;
  // After kStop each worker ends.
  if (s.dead || s.stage == Supervision::Stage::kStopping) return;
  if (s.workers.TestedAll()) {
    if (now_ns - s.locks_tested_ns < kTestLocksNs) return;
    s.locks_tested_ns = now_ns;
  }
  s.dead = s.workers.FindDead(region_);
}

// Whether action_seq has been invalid for the whole grace period.
bool EngineSide::CountIsBroken() {
  // relaxed: only compared.
  const uint64_t before = header_->frame_seq.load(std::memory_order_relaxed);
  const uint64_t action_seq =
      header_->action_seq.load(std::memory_order_relaxed);
  // relaxed: as above. Workers that publish meanwhile have valid numbers.
  const uint64_t after = header_->frame_seq.load(std::memory_order_relaxed);
  if (before != after || action_seq - before <= 1) {
    count_grace_.Clear();
    return false;
  }
  return count_grace_.Expired();
}

void EngineSide::AdvanceWorkers() {
  for (;;) {
    if (supervision_->IsResting()) {
      if (!BeginStage()) return;
    } else {
      if (!supervision_->AwaitsWorkers()) return;
      if (!supervision_->workers.AllAcknowledged()) return;
      EndStage();
    }
  }
}

// Begins the next stage while the workers go, or are held. False: there is no
// cause, or the caller has not taken the last event.
bool EngineSide::BeginStage() {
  Supervision& s = *supervision_;
  if (!s.opened || s.news != EngineEvent::kTimedOut) return false;
  // SYNC(attach.hello): acquire; the request, then the mode it asks for.
  const uint32_t request =
      header_->attach_request.load(std::memory_order_acquire);
  if (request != acknowledged_) {
    arriving_ = request;
    s.cause = Supervision::Cause::kArrival;
  } else if (s.client_left) {
    s.cause = Supervision::Cause::kDeparture;
  } else if (s.count_broken) {
    s.cause = Supervision::Cause::kBrokenCount;
  } else if (s.messages) {
    s.cause = Supervision::Cause::kMessage;
  } else if (s.pauses && s.stage == Supervision::Stage::kGoing) {
    s.cause = Supervision::Cause::kPause;
  } else if (!s.pauses && s.stage == Supervision::Stage::kHeld) {
    LetWorkersGo();
    return true;
  } else {
    return false;
  }
  if (s.cause == Supervision::Cause::kArrival ||
      s.cause == Supervision::Cause::kDeparture) {
    SetPhase(Phase::kResetting, MonotonicNanos());
  }
  s.stage = Supervision::Stage::kHolding;
  s.workers.Order(WorkerOrder::kHold);
  return true;
}

// All workers have acknowledged the stage's order.
void EngineSide::EndStage() {
  Supervision& s = *supervision_;
  switch (s.stage) {
    case Supervision::Stage::kHolding:
    case Supervision::Stage::kFinishing: {
      // SYNC(lockstep.frame): acquire; the number, then its exchange's end.
      frame_seq_ = header_->frame_seq.load(std::memory_order_acquire);
      const EngineWorkers::Progress progress = s.workers.ProgressAt(frame_seq_);
      // SYNC(lockstep.action): acquire; the number, then what it publishes.
      const bool pending =
          header_->action_seq.load(std::memory_order_acquire) == frame_seq_ + 1;
      if (!progress.valid) {
        // Another process has written a number. A reset makes it irrelevant.
        if (s.cause != Supervision::Cause::kArrival &&
            s.cause != Supervision::Cause::kDeparture) {
          s.cause = Supervision::Cause::kBrokenCount;
        }
      } else if (progress.done) {
        // No worker publishes it: none is in an exchange.
        s.workers.Publish(++frame_seq_);
      } else if (s.stage == Supervision::Stage::kHolding &&
                 (progress.begun ||
                  (pending && s.cause == Supervision::Cause::kArrival))) {
        s.stage = Supervision::Stage::kFinishing;
        s.workers.Order(WorkerOrder::kFinish, frame_seq_ + 1);
        return;
      }
      WorkersAreHeld();
      return;
    }
    case Supervision::Stage::kResetting:
      WorkersAreReset();
      return;
    case Supervision::Stage::kMessaging:
      s.fresh = false;  // the message may have changed environments
      s.answered_at = s.workers.Activity();
      s.news = EngineEvent::kWorkersAnswered;
      LetWorkersGo();
      return;
    case Supervision::Stage::kCounting:
      LetWorkersGo();
      return;
    case Supervision::Stage::kStarting:
      s.stage = Supervision::Stage::kGoing;
      return;
    case Supervision::Stage::kGoing:
    case Supervision::Stage::kArrived:
    case Supervision::Stage::kHeld:
    case Supervision::Stage::kStopping:
      return;
  }
}

// No exchange is in progress, and none begins.
void EngineSide::WorkersAreHeld() {
  Supervision& s = *supervision_;
  switch (s.cause) {
    case Supervision::Cause::kArrival:
      // relaxed: attach_request published it.
      autoreset_mode_ = static_cast<AutoresetMode>(
          header_->autoreset_mode.load(std::memory_order_relaxed));
      s.refusal = absl::OkStatus();
      if (autoreset_mode_ > AutoresetMode::kDisabled) {
        s.refusal = UnknownMode(
            std::exchange(autoreset_mode_, AutoresetMode::kSameStep));
      }
      break;
    case Supervision::Cause::kDeparture:
      s.client_left = false;
      ForgetClient();
      break;
    case Supervision::Cause::kBrokenCount:
      s.count_broken = false;
      s.fresh = false;
      Resynchronise();
      s.news = EngineEvent::kBrokenClient;
      LetWorkersGo();
      return;
    case Supervision::Cause::kMessage:
      s.messages = false;
      s.stage = Supervision::Stage::kMessaging;
      s.workers.Order(WorkerOrder::kMessage);
      return;
    case Supervision::Cause::kPause:
    case Supervision::Cause::kOpening:
    case Supervision::Cause::kNone:
      s.cause = Supervision::Cause::kNone;
      s.stage = Supervision::Stage::kHeld;
      return;
  }
  s.workers.DropLanes();
  if (s.fresh && s.workers.Activity() == s.fresh_at) {
    WorkersAreReset();
    return;
  }
  s.stage = Supervision::Stage::kResetting;
  s.workers.Order(WorkerOrder::kReset);
}

void EngineSide::WorkersAreReset() {
  Supervision& s = *supervision_;
  s.fresh = true;
  s.fresh_at = s.workers.Activity();
  if (s.cause == Supervision::Cause::kArrival) {
    s.stage = Supervision::Stage::kArrived;
    if (s.refusal.ok()) {
      s.news = EngineEvent::kClientArrived;
      return;
    }
    const bool left = has_client_;
    if (left) ForgetClient();
    AcknowledgeAttach(s.refusal);
    if (left) s.news = EngineEvent::kClientLeft;
    return;
  }
  if (s.cause == Supervision::Cause::kOpening) {
    s.cause = Supervision::Cause::kNone;
    s.stage = Supervision::Stage::kHeld;
    s.news = EngineEvent::kWorkersReady;
    return;
  }
  s.news = EngineEvent::kClientLeft;
  SetPhase(idle_, MonotonicNanos());
  LetWorkersGo();
}

// Legal while the workers are held. Without effect after kStop.
void EngineSide::LetWorkersGo() {
  Supervision& s = *supervision_;
  if (s.stage == Supervision::Stage::kStopping) return;
  s.cause = Supervision::Cause::kNone;
  // Not by one order with kGo: a worker that goes already would compare its new
  // count with another worker's old one.
  if (!s.workers.AllHave(frame_seq_)) {
    s.workers.SetCount(frame_seq_);
    s.stage = Supervision::Stage::kCounting;
    s.workers.Order(WorkerOrder::kCount, frame_seq_);
    return;
  }
  if (s.pauses) {
    s.stage = Supervision::Stage::kHeld;
    return;
  }
  s.stage = Supervision::Stage::kStarting;
  s.workers.Order(WorkerOrder::kGo, static_cast<uint64_t>(autoreset_mode_));
}

}  // namespace tandem
