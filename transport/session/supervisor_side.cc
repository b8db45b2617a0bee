// Length: one class, whose stages follow one another.
#include "transport/session/supervisor_side.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/error.h"
#include "base/os/process_handle.h"
#include "transport/session/engine_workers.h"
#include "transport/session/owner_side_internal.h"
#include "transport/wait/waiter.h"

namespace tandem {
namespace {

// After an exchange, the supervisor sleeps beside the doorbell for this time: a
// client that sees no sleeper makes no system call.
constexpr int64_t kHotNs = 20'000'000;
constexpr int64_t kNapNs = 1'000'000;
constexpr int64_t kTestLocksNs = 100'000'000;

// Sleeps beside the doorbell.
InputWait Nap(int fd, int64_t nap_ns) {
  return WaitForInput(fd, std::clamp<int64_t>(nap_ns, 0, kNapNs));
}

}  // namespace

// One stage follows another when all workers have acknowledged its order:
//
//  stage       order    then
//  kGoing      -        kHolding, for a cause
//  kHolding    kHold    kFinishing, if an exchange has begun; else held
//  kFinishing  kFinish  held
//  kResetting  kReset   kArrived for a new client; else as LetWorkersGo
//  kArrived    -        as LetWorkersGo, at AcknowledgeAttach
//  kMessaging  kMessage as LetWorkersGo
//  kCounting   kCount   as LetWorkersGo
//  kStarting   kGo      kGoing
//  kHeld       -        kHolding, for a cause; kStarting, when a pause ends
//  kStopping   kStop    -
//
// A new client that is refused skips kArrived. LetWorkersGo leads to kCounting
// if a worker has another count than frame_seq, to kHeld during a pause, and
// otherwise to kStarting.
enum class SupervisorSide::Stage : uint8_t {
  kGoing,
  kHolding,
  kFinishing,
  kResetting,
  kArrived,
  kMessaging,
  kCounting,
  kStarting,
  kHeld,
  kStopping,
};

enum class SupervisorSide::Cause : uint8_t {
  kNone,
  kOpening,
  kArrival,
  kDeparture,
  kBrokenCount,
  kPause,
  kMessage,
};

struct SupervisorSide::Workers {
  explicit Workers(const OwnedRegion& region) : all(region) {}

  bool IsResting() const {
    return stage == Stage::kGoing || stage == Stage::kHeld;
  }
  // Whether the stage ends with the workers' acknowledgements.
  bool AwaitsWorkers() const {
    return !IsResting() && stage != Stage::kArrived &&
           stage != Stage::kStopping;
  }

  // While an order to go is carried out, no other can follow: a pause could not
  // hold the workers before its answer.
  bool TakesRequests() const { return stage != Stage::kStarting; }

  EngineWorkers all;
  Stage stage = Stage::kHeld;
  Cause cause = Cause::kNone;
  SupervisorEvent news = SupervisorEvent::kTimedOut;  // that Next returns
  std::optional<uint32_t> dead = {};                  // for kWorkerDied
  uint32_t dead_worker = 0;
  bool opened = false;
  bool client_left = false;
  bool count_broken = false;
  bool pauses = false;
  bool messages = false;
  int input = -1;                           // of WatchInput
  bool just_took_input = false;             // by the last event
  uint64_t answered_at = 0;                 // Activity at kWorkersAnswered
  absl::Status refusal = absl::OkStatus();  // of the new client; Ok: none
  // Whether all environments are as their last reset left them, if Activity is
  // still `fresh_at`.
  bool fresh = false;
  uint64_t fresh_at = 0;
  uint64_t activity = 0;  // at the last poll
  int64_t active_at_ns = INT64_MIN / 2;
  int64_t locks_tested_ns = 0;
};

// Looks for deaths and departures in a long wait.
class SupervisorSide::Watch final : public WaitWatch {
 public:
  explicit Watch(SupervisorSide* side) : side_(side) {}

  ErrorCode Check(int64_t now_ns, bool interrupted) override {
    side_->Poll(now_ns);  // Take returns what it finds
    interrupted_ = interrupted;
    // While it is hot, the supervisor waits in another way.
    return interrupted || side_->IsHot(now_ns) ? ErrorCode::kInterrupted
                                               : ErrorCode::kOk;
  }

  SupervisorEvent event() const {
    return interrupted_ ? SupervisorEvent::kInterrupted
                        : SupervisorEvent::kTimedOut;
  }

 private:
  SupervisorSide* side_;
  bool interrupted_ = false;
};

absl::StatusOr<SupervisorSide> SupervisorSide::Create(
    absl::string_view name, const RegionSpec& spec,
    const RegionOptions& options) {
  assert(spec.workers != 0);
  TANDEM_ASSIGN_OR_RETURN(auto region,
                          OwnedRegion::Create(name, spec, options));
  // It takes no core from its workers.
  return SupervisorSide(
      std::make_unique<State>(std::move(region), WaitStrategy::kBlock));
}

SupervisorSide::SupervisorSide(std::unique_ptr<State> state)
    : OwnerSide(std::move(state)),
      workers_(std::make_unique<Workers>(region())) {}

SupervisorSide::SupervisorSide(SupervisorSide&&) noexcept = default;
SupervisorSide::~SupervisorSide() = default;

absl::Status SupervisorSide::Open() {
  SetPhase(state_->idle, MonotonicNanos());
  workers_->opened = true;
  LetWorkersGo();
  return state_->region.Link();
}

void SupervisorSide::AcknowledgeAttach(const absl::Status& status) {
  // No exchange of an earlier client is pending here.
  // relaxed: only compared; nothing that it publishes is read here.
  Answer(status, state_->header->action_seq.load(std::memory_order_relaxed));
  workers_->client_left = false;  // the last client's
  workers_->fresh_at = workers_->all.Activity();
  LetWorkersGo();
}

void SupervisorSide::ShowPaused(bool paused, bool by_attendant) {
  OwnerSide::ShowPaused(paused, by_attendant);
  workers_->pauses = paused;
  // At once: who reads the answer of a pause has the workers' order, too.
  Advance();
}

void SupervisorSide::ResetWorkers(std::optional<uint64_t> first_seed) {
  assert(!workers_->opened);
  workers_->cause = Cause::kOpening;
  workers_->stage = Stage::kResetting;
  workers_->all.Order(
      first_seed ? WorkerOrder::kSeededReset : WorkerOrder::kReset,
      first_seed.value_or(0));
}

void SupervisorSide::MessageWorkers() { workers_->messages = true; }

uint64_t SupervisorSide::answered_at() const { return workers_->answered_at; }

void SupervisorSide::StopWorkers() {
  if (!workers_->all.AllAcknowledged()) return;
  workers_->stage = Stage::kStopping;
  workers_->all.Order(WorkerOrder::kStop);
}

uint32_t SupervisorSide::dead_worker() const { return workers_->dead_worker; }

bool SupervisorSide::ReplaceWorker(uint32_t worker) {
  State& s = *state_;
  workers_->fresh = false;
  return workers_->all.Replace(
      worker, s.region,
      /*takes_over=*/workers_->stage != Stage::kCounting, s.waiter.NowNs());
}

std::string SupervisorSide::WorkerText(uint32_t worker) const {
  return workers_->all.TextOf(worker, MonotonicNanos());
}

uint64_t SupervisorSide::worker_steps() const { return workers_->all.Steps(); }

void SupervisorSide::End(ErrorCode code, absl::string_view text) {
  workers_->all.ShowEnd(code, text);
}

void SupervisorSide::WatchInput(int fd) { workers_->input = fd; }

// One system call.
bool SupervisorSide::InputIsReadable() const {
  return workers_->input >= 0 &&
         Nap(workers_->input, 0) == InputWait::kReadable;
}

// While an order is carried out, the workers wait for the supervisor: it then
// sleeps on the doorbell, which they ring.
bool SupervisorSide::IsHot(int64_t now_ns) const {
  return !workers_->AwaitsWorkers() && now_ns - workers_->active_at_ns < kHotNs;
}

// Whether Take has something to do, beside requests.
bool SupervisorSide::HasNews() const {
  const State& s = *state_;
  const Workers& w = *workers_;
  if (w.news != SupervisorEvent::kTimedOut || w.dead) return true;
  if (w.AwaitsWorkers()) return w.all.AllAcknowledged();
  if (!w.opened || !w.IsResting()) return false;
  const bool paused = w.stage == Stage::kHeld;
  // SYNC(attach.hello): acquire; the request, then the mode it asks for.
  return w.client_left || w.count_broken || w.messages || w.pauses != paused ||
         s.header->attach_request.load(std::memory_order_acquire) !=
             s.acknowledged;
}

bool SupervisorSide::Ready() const {
  if (HasNews() || InputIsReadable()) return true;
  return workers_->TakesRequests() ? HasCalls() : StopRequested();
}

SupervisorEvent SupervisorSide::Next(Deadline deadline) {
  State& s = *state_;
  for (;;) {
    SupervisorEvent event = SupervisorEvent::kTimedOut;
    const int64_t now = s.waiter.NowNs();
    if (Ready()) {
      if (now - s.polled_peer_ns >= State::kPollPeerNs) {
        // Deaths are found also while one event follows another.
        s.polled_peer_ns = now;
        Poll(now);  // Take returns what it finds
      }
      event = Take();
    } else if (IsHot(now)) {
      event = Nap(workers_->input, deadline.at_ns() - now) == InputWait::kSignal
                  ? SupervisorEvent::kInterrupted
                  : PollNowAndThen();
    } else {
      Watch watch(this);
      const ErrorCode code =
          s.waiter.Until([this] { return Ready(); }, deadline, watch);
      event = code == ErrorCode::kOk            ? Take()
              : code == ErrorCode::kStepTimeout ? PollNowAndThen()
                                                : watch.event();
    }
    if (event != SupervisorEvent::kTimedOut ||
        deadline.PassedAt(MonotonicNanos())) {
      return event;
    }
  }
}

SupervisorEvent SupervisorSide::PollNowAndThen() {
  State& s = *state_;
  const int64_t now = s.waiter.NowNs();
  if (now - s.polled_peer_ns < State::kPollPeerNs) {
    return SupervisorEvent::kTimedOut;
  }
  s.polled_peer_ns = now;
  Poll(now);
  return Ready() ? Take() : SupervisorEvent::kTimedOut;
}

SupervisorEvent SupervisorSide::Take() {
  if (StopRequested()) return SupervisorEvent::kStopRequested;
  Workers& w = *workers_;
  Advance();
  if (w.dead) {
    w.dead_worker = *std::exchange(w.dead, std::nullopt);
    return SupervisorEvent::kWorkerDied;
  }
  if (w.news != SupervisorEvent::kTimedOut) {
    return std::exchange(w.news, SupervisorEvent::kTimedOut);
  }
  // Alternates with requests: neither delays the other.
  if (!std::exchange(w.just_took_input, false) && InputIsReadable()) {
    w.just_took_input = true;
    return SupervisorEvent::kInput;
  }
  return w.TakesRequests() ? TakeRequest<SupervisorEvent>()
                           : SupervisorEvent::kTimedOut;
}

// Finds causes and deaths, and publishes what a dead worker has not published.
void SupervisorSide::Poll(int64_t now_ns) {
  Workers& w = *workers_;
  State& s = *state_;
  if (w.opened) CheckNameAndAttendants(now_ns);
  // While counts change, the old ones may look like those of the next exchange.
  if (w.stage != Stage::kCounting) {
    (void)w.all.TakeOver(s.region, now_ns);
  }
  const uint64_t activity = w.all.Activity();
  if (std::exchange(w.activity, activity) != activity) {
    w.active_at_ns = now_ns;
    s.taken_at_ns = now_ns;
  }
  if (w.IsResting()) {
    // SYNC(lockstep.frame): acquire; the number, then the end of its exchange.
    s.frame_seq = s.header->frame_seq.load(std::memory_order_acquire);
  }
  w.client_left =
      w.opened && s.has_client && !s.region.PeerAlive(kClientLockByte);
  w.count_broken = w.opened && w.IsResting() && CountIsBroken();
  TestLocksNowAndThen(now_ns);
  Advance();
}

// Begins a round over all workers every kTestLocksNs; a poll tests some of
// them.
void SupervisorSide::TestLocksNowAndThen(int64_t now_ns) {
  Workers& w = *workers_;
  // After kStop each worker ends.
  if (w.dead || w.stage == Stage::kStopping) return;
  if (w.all.TestedAll()) {
    if (now_ns - w.locks_tested_ns < kTestLocksNs) return;
    w.locks_tested_ns = now_ns;
  }
  w.dead = w.all.FindDead(state_->region);
}

// Whether action_seq has been invalid for the whole grace period.
bool SupervisorSide::CountIsBroken() {
  State& s = *state_;
  // relaxed: only compared.
  const uint64_t before = s.header->frame_seq.load(std::memory_order_relaxed);
  const uint64_t action_seq =
      s.header->action_seq.load(std::memory_order_relaxed);
  // relaxed: as above. Workers that publish meanwhile have valid numbers.
  const uint64_t after = s.header->frame_seq.load(std::memory_order_relaxed);
  if (before != after || action_seq - before <= 1) {
    s.count_grace.Clear();
    return false;
  }
  return s.count_grace.Expired();
}

void SupervisorSide::Advance() {
  for (;;) {
    if (workers_->IsResting()) {
      if (!BeginStage()) return;
    } else {
      if (!workers_->AwaitsWorkers()) return;
      if (!workers_->all.AllAcknowledged()) return;
      EndStage();
    }
  }
}

// Begins the next stage while the workers go, or are held. False: there is no
// cause, or the caller has not taken the last event.
bool SupervisorSide::BeginStage() {
  State& s = *state_;
  Workers& w = *workers_;
  if (!w.opened || w.news != SupervisorEvent::kTimedOut) return false;
  // SYNC(attach.hello): acquire; the request, then the mode it asks for.
  const uint32_t request =
      s.header->attach_request.load(std::memory_order_acquire);
  if (request != s.acknowledged) {
    s.arriving = request;
    w.cause = Cause::kArrival;
  } else if (w.client_left) {
    w.cause = Cause::kDeparture;
  } else if (w.count_broken) {
    w.cause = Cause::kBrokenCount;
  } else if (w.messages) {
    w.cause = Cause::kMessage;
  } else if (w.pauses && w.stage == Stage::kGoing) {
    w.cause = Cause::kPause;
  } else if (!w.pauses && w.stage == Stage::kHeld) {
    LetWorkersGo();
    return true;
  } else {
    return false;
  }
  if (w.cause == Cause::kArrival || w.cause == Cause::kDeparture) {
    SetPhase(Phase::kResetting, MonotonicNanos());
  }
  w.stage = Stage::kHolding;
  w.all.Order(WorkerOrder::kHold);
  return true;
}

// All workers have acknowledged the stage's order.
void SupervisorSide::EndStage() {
  State& s = *state_;
  Workers& w = *workers_;
  switch (w.stage) {
    case Stage::kHolding:
    case Stage::kFinishing: {
      // SYNC(lockstep.frame): acquire; the number, then its exchange's end.
      s.frame_seq = s.header->frame_seq.load(std::memory_order_acquire);
      const EngineWorkers::Progress progress = w.all.ProgressAt(s.frame_seq);
      // SYNC(lockstep.action): acquire; the number, then what it publishes.
      const bool pending = s.header->action_seq.load(
                               std::memory_order_acquire) == s.frame_seq + 1;
      if (!progress.valid) {
        // Another process has written a number. A reset makes it irrelevant.
        if (w.cause != Cause::kArrival && w.cause != Cause::kDeparture) {
          w.cause = Cause::kBrokenCount;
        }
      } else if (progress.done) {
        // No worker publishes it: none is in an exchange.
        w.all.Publish(++s.frame_seq);
      } else if (w.stage == Stage::kHolding &&
                 (progress.begun || (pending && w.cause == Cause::kArrival))) {
        w.stage = Stage::kFinishing;
        w.all.Order(WorkerOrder::kFinish, s.frame_seq + 1);
        return;
      }
      WorkersAreHeld();
      return;
    }
    case Stage::kResetting:
      WorkersAreReset();
      return;
    case Stage::kMessaging:
      w.fresh = false;  // the message may have changed environments
      w.answered_at = w.all.Activity();
      w.news = SupervisorEvent::kWorkersAnswered;
      LetWorkersGo();
      return;
    case Stage::kCounting:
      LetWorkersGo();
      return;
    case Stage::kStarting:
      w.stage = Stage::kGoing;
      return;
    case Stage::kGoing:
    case Stage::kArrived:
    case Stage::kHeld:
    case Stage::kStopping:
      return;
  }
}

// No exchange is in progress, and none begins.
void SupervisorSide::WorkersAreHeld() {
  Workers& w = *workers_;
  switch (w.cause) {
    case Cause::kArrival:
      w.refusal = TakeAutoresetMode();
      break;
    case Cause::kDeparture:
      w.client_left = false;
      ForgetClient();
      break;
    case Cause::kBrokenCount:
      w.count_broken = false;
      w.fresh = false;
      Resynchronise();
      w.news = SupervisorEvent::kBrokenClient;
      LetWorkersGo();
      return;
    case Cause::kMessage:
      w.messages = false;
      w.stage = Stage::kMessaging;
      w.all.Order(WorkerOrder::kMessage);
      return;
    case Cause::kPause:
    case Cause::kOpening:
    case Cause::kNone:
      w.cause = Cause::kNone;
      w.stage = Stage::kHeld;
      return;
  }
  w.all.DropLanes();
  if (w.fresh && w.all.Activity() == w.fresh_at) {
    WorkersAreReset();
    return;
  }
  w.stage = Stage::kResetting;
  w.all.Order(WorkerOrder::kReset);
}

void SupervisorSide::WorkersAreReset() {
  State& s = *state_;
  Workers& w = *workers_;
  w.fresh = true;
  w.fresh_at = w.all.Activity();
  if (w.cause == Cause::kArrival) {
    w.stage = Stage::kArrived;
    if (w.refusal.ok()) {
      w.news = SupervisorEvent::kClientArrived;
      return;
    }
    const bool left = s.has_client;
    if (left) ForgetClient();
    AcknowledgeAttach(w.refusal);
    if (left) w.news = SupervisorEvent::kClientLeft;
    return;
  }
  if (w.cause == Cause::kOpening) {
    w.cause = Cause::kNone;
    w.stage = Stage::kHeld;
    w.news = SupervisorEvent::kWorkersReady;
    return;
  }
  w.news = SupervisorEvent::kClientLeft;
  SetPhase(s.idle, MonotonicNanos());
  LetWorkersGo();
}

// Legal while the workers are held. Without effect after kStop.
void SupervisorSide::LetWorkersGo() {
  State& s = *state_;
  Workers& w = *workers_;
  if (w.stage == Stage::kStopping) return;
  w.cause = Cause::kNone;
  // Not by one order with kGo: a worker that goes already would compare its new
  // count with another worker's old one.
  if (!w.all.AllHave(s.frame_seq)) {
    w.all.SetCount(s.frame_seq);
    w.stage = Stage::kCounting;
    w.all.Order(WorkerOrder::kCount, s.frame_seq);
    return;
  }
  if (w.pauses) {
    w.stage = Stage::kHeld;
    return;
  }
  w.stage = Stage::kStarting;
  w.all.Order(WorkerOrder::kGo, static_cast<uint64_t>(autoreset_mode_));
}

}  // namespace tandem
