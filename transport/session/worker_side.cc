#include "transport/worker_side.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/os/process_handle.h"
#include "base/os/side_locks.h"
#include "schema/layout/phase_word.h"
#include "transport/memory/attached_region.h"
#include "transport/session/make_step_arrays.h"
#include "transport/session/worker_election.h"
#include "transport/session/worker_error.h"
#include "transport/step_times.h"
#include "transport/wait/doorbell.h"
#include "transport/wait/waiter.h"

namespace tandem {

struct WorkerSide::Core {
  class Watch;

  Core(RegionParts parts, SideLocks lock,
       std::shared_ptr<const RegionMapping> mapping, uint32_t worker,
       WaitStrategy wait);
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  ~Core();

  WorkerEvent Next(Deadline deadline);
  void Fail(uint32_t env, absl::string_view text);
  void Finish();
  void Acknowledge();
  bool Ready() const;
  bool HasExchange() const;
  bool HasLane() const;
  WorkerEvent Take(int64_t seen_at_ns);
  WorkerEvent TakeOrder(uint32_t order, int64_t seen_at_ns);
  void ContinueOrder();
  void BeginOrder(WorkerOrder kind, uint64_t value);
  WorkerEvent TakeExchange(int64_t seen_at_ns);
  void FinishExchange(int64_t now_ns);
  void FinishLane();
  void NoteFailure(uint64_t number, SharedWord<uint64_t>* word) const;
  void EndWork(int64_t now_ns);
  void CheckSupervisorNowAndThen(int64_t now_ns);
  void SetPhase(Phase phase, int64_t now_ns);

  static constexpr int64_t kCheckSupervisorNs = 100'000'000;

  SideLocks lock_;
  std::shared_ptr<const RegionMapping> mapping_;
  LrbcHeader* header_;
  WorkersHeader* head_;
  WorkerSlot* slot_;
  const uint32_t worker_;
  const WorkerRows rows_;
  StepArrays arrays_;
  WorkerElection election_;
  Waiter waiter_;
  Doorbell engine_bell_;
  Doorbell client_bell_;

  // Private truth: the region's copies can be scribbled over.
  uint64_t count_;      // exchanges completed
  uint64_t lane_;       // lanes completed
  uint32_t took_;       // the last order that was carried out
  uint32_t order_ = 0;  // the one in work
  bool going_ = false;  // whether it takes exchanges
  bool restarted_;
  bool resets_ = false;    // in a kReset or kSeededReset order
  bool finishes_ = false;  // the exchange is that of a kFinish order
  bool in_lane_ = false;
  bool failed_ = false;
  bool supervisor_gone_ = false;
  ExchangeKind kind_ = ExchangeKind::kStep;
  AutoresetMode autoreset_mode_ = AutoresetMode::kSameStep;
  std::optional<uint64_t> first_seed_;
  int64_t taken_at_ns_ = 0;
  int64_t supervisor_checked_ns_ = 0;
};

// Ends a long wait if the supervisor is gone, or after a signal.
class WorkerSide::Core::Watch final : public WaitWatch {
 public:
  explicit Watch(Core* side) : side_(side) {}

  ErrorCode Check(int64_t, bool interrupted) override {
    if (!side_->lock_.HeldByOther(kEngineLockByte)) {
      side_->supervisor_gone_ = true;
      return ErrorCode::kPeerGone;
    }
    return interrupted ? ErrorCode::kInterrupted : ErrorCode::kOk;
  }

 private:
  Core* side_;
};

absl::StatusOr<WorkerSide> WorkerSide::Attach(int fd, uint32_t worker,
                                              const Options& options) {
  TANDEM_ASSIGN_OR_RETURN(const SharedRegion memory,
                          SharedRegion::OfHandle(fd));
  TANDEM_ASSIGN_OR_RETURN(RegionParts parts, ReadRegionParts(memory));
  if (parts.workers.empty()) {
    return MakeError(ErrorCode::kUnsupported,
                     "expected a region with workers, found one whose engine "
                     "simulates the environments itself");
  }
  if (worker >= parts.workers.size()) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("worker: expected 0 to ", parts.workers.size() - 1,
                     ", found ", worker));
  }
  TANDEM_ASSIGN_OR_RETURN(SideLocks lock, SideLocks::On(memory));
  TANDEM_ASSIGN_OR_RETURN(auto mapping,
                          RegionMapping::Map(memory, parts.plan.region_size));
  if (!lock.HeldByOther(kEngineLockByte)) {
    return MakeError(ErrorCode::kPeerGone,
                     "expected a supervisor that holds the engine lock, found "
                     "none: it has stopped, or died");
  }
  if (!lock.TryAcquire(WorkerLockByte(parts.plan, worker))) {
    const auto* const slot =
        mapping->At<WorkerSlot>(WorkerSlotOffset(parts.plan, worker));
    return MakeError(
        ErrorCode::kAlreadyAttached,
        absl::StrCat("worker ", worker, ": expected a free slot, found pid ",
                     // relaxed: a label for people.
                     slot->pid.load(std::memory_order_relaxed),
                     " in it; start one process for each worker"));
  }
  // Before the constructor reads the predecessor's words. If it was killed, the
  // kernel released its lock after its last write.
  // SYNC(workers.leave): acquire; the phase, then what a predecessor left.
  (void)mapping->At<WorkerSlot>(WorkerSlotOffset(parts.plan, worker))
      ->phase.load(std::memory_order_acquire);
  return WorkerSide(std::make_unique<Core>(std::move(parts), std::move(lock),
                                           std::move(mapping), worker,
                                           options.wait));
}

WorkerSide::Core::Core(RegionParts parts, SideLocks lock,
                       std::shared_ptr<const RegionMapping> mapping,
                       uint32_t worker, WaitStrategy wait)
    : lock_(std::move(lock)),
      mapping_(std::move(mapping)),
      header_(mapping_->header()),
      head_(mapping_->At<WorkersHeader>(parts.plan.workers_offset)),
      slot_(mapping_->At<WorkerSlot>(WorkerSlotOffset(parts.plan, worker))),
      worker_(worker),
      rows_(parts.workers[worker]),
      arrays_(MakeStepArrays(*mapping_, parts.plan, parts.fields)),
      election_(*mapping_, parts.plan, worker),
      waiter_(Doorbell(&header_->engine_doorbell, &header_->engine_sleepers),
              wait),
      engine_bell_(&header_->engine_doorbell, &header_->engine_sleepers),
      client_bell_(&header_->client_doorbell, &header_->client_sleepers),
      // A predecessor's.
      // relaxed: Attach has acquired them.
      count_(slot_->done.load(std::memory_order_relaxed)),
      // relaxed: as above.
      lane_(slot_->lane_done.load(std::memory_order_relaxed)),
      // relaxed: as above.
      took_(slot_->ack.load(std::memory_order_relaxed)),
      restarted_(took_ != 0 || count_ != 0) {
  // One of the workers can share the client's core.
  if (worker == 0) {
    waiter_.ShareCore(&header_->client_core, &header_->engine_core);
  }
  // If the predecessor had carried out the last order, so has this worker.
  // SYNC(workers.order): acquire; the order, then its kind and value.
  if (head_->order.load(std::memory_order_acquire) == took_) ContinueOrder();
  SetPhase(Phase::kIdle, waiter_.NowNs());
  // SYNC(workers.hello): release; our lock before the label.
  slot_->pid.store(ProcessId(), std::memory_order_release);
  engine_bell_.NotifyIfWaiting();
}

WorkerSide::Core::~Core() {
  if (!lock_.IsOurs()) return;
  // SYNC(workers.leave): release; our last writes before a replacement's.
  slot_->phase.store(PackPhase(Phase::kStopped, MonotonicNanos()),
                     std::memory_order_release);
  lock_.Release();
  engine_bell_.NotifyIfWaiting();
}

// The predecessor has carried out the last order. So the supervisor may be
// writing the next one; `order` has its number only afterwards.
void WorkerSide::Core::ContinueOrder() {
  // SYNC(workers.kind): acquire; the kind, then its value.
  const uint32_t kind = head_->order_kind.load(std::memory_order_acquire);
  // relaxed: valid only if the kind is the same before and after it.
  const uint64_t value = head_->order_value.load(std::memory_order_relaxed);
  // SYNC(workers.kind): fence; the value, then the kind again.
  std::atomic_thread_fence(std::memory_order_acquire);
  // relaxed: the fence orders it.
  if (head_->order_kind.load(std::memory_order_relaxed) == kind) {
    BeginOrder(static_cast<WorkerOrder>(kind), value);
  }
}

// Whether this worker takes exchanges from now on, and in which mode.
void WorkerSide::Core::BeginOrder(WorkerOrder kind, uint64_t value) {
  going_ = kind == WorkerOrder::kGo;
  if (going_ && value <= static_cast<uint64_t>(AutoresetMode::kDisabled)) {
    autoreset_mode_ = static_cast<AutoresetMode>(value);
  }
}

bool WorkerSide::Core::HasExchange() const {
  // SYNC(lockstep.action): acquire; the number, then what it publishes.
  return header_->action_seq.load(std::memory_order_acquire) == count_ + 1;
}

bool WorkerSide::Core::HasLane() const {
  // SYNC(lanes.go): acquire; the number, then the actions of our rows.
  return slot_->lane_go.load(std::memory_order_acquire) == lane_ + 1;
}

bool WorkerSide::Core::Ready() const {
  // SYNC(workers.order): acquire; the order, then its kind and value.
  if (head_->order.load(std::memory_order_acquire) != took_) return true;
  return going_ && (HasExchange() || HasLane());
}

WorkerEvent WorkerSide::Core::Next(Deadline deadline) {
  for (;;) {
    if (supervisor_gone_) return WorkerEvent::kSupervisorGone;
    Watch watch(this);
    switch (waiter_.Until([this] { return Ready(); }, deadline, watch)) {
      case ErrorCode::kOk: {
        const WorkerEvent event = Take(waiter_.CameAtNs());
        if (event != WorkerEvent::kTimedOut) return event;
        break;  // an order that needs no caller
      }
      case ErrorCode::kStepTimeout:
        CheckSupervisorNowAndThen(waiter_.NowNs());
        return supervisor_gone_ ? WorkerEvent::kSupervisorGone
                                : WorkerEvent::kTimedOut;
      case ErrorCode::kInterrupted:
        return WorkerEvent::kInterrupted;
      default:  // kPeerGone
        return WorkerEvent::kSupervisorGone;
    }
    if (deadline.PassedAt(MonotonicNanos())) return WorkerEvent::kTimedOut;
  }
}

// kTimedOut: an order was carried out, or nothing has come after all.
WorkerEvent WorkerSide::Core::Take(int64_t seen_at_ns) {
  // Before the order: what is sent after the answer of a pause comes after the
  // pause's order. An order that comes first is carried out first.
  const bool exchange = HasExchange();
  const bool lane = HasLane();
  // SYNC(workers.order): acquire; the order, then its kind and value.
  const uint32_t order = head_->order.load(std::memory_order_acquire);
  if (order != took_) return TakeOrder(order, seen_at_ns);
  if (!going_) return WorkerEvent::kTimedOut;
  if (exchange) return TakeExchange(seen_at_ns);
  if (!lane) return WorkerEvent::kTimedOut;
  in_lane_ = true;
  failed_ = false;
  kind_ = ExchangeKind::kStep;
  taken_at_ns_ = seen_at_ns;
  SetPhase(Phase::kStepping, seen_at_ns);
  return WorkerEvent::kLane;
}

WorkerEvent WorkerSide::Core::TakeExchange(int64_t seen_at_ns) {
  in_lane_ = false;
  failed_ = false;
  taken_at_ns_ = seen_at_ns;
  // relaxed: action_seq published it.
  kind_ = static_cast<ExchangeKind>(
      header_->exchange_kind.load(std::memory_order_relaxed));
  if (kind_ != ExchangeKind::kStep && kind_ != ExchangeKind::kResetOnly) {
    Finish();  // without a step; the publisher reports the kind
    return WorkerEvent::kTimedOut;
  }
  SetPhase(kind_ == ExchangeKind::kStep ? Phase::kStepping : Phase::kResetting,
           seen_at_ns);
  return WorkerEvent::kExchange;
}

WorkerEvent WorkerSide::Core::TakeOrder(uint32_t order, int64_t seen_at_ns) {
  order_ = order;
  // relaxed: order published both; they do not change before Acknowledge.
  const auto kind = static_cast<WorkerOrder>(
      head_->order_kind.load(std::memory_order_relaxed));
  const uint64_t value = head_->order_value.load(std::memory_order_relaxed);
  BeginOrder(kind, value);
  switch (kind) {
    case WorkerOrder::kReset:
    case WorkerOrder::kSeededReset:
      first_seed_.reset();
      if (kind == WorkerOrder::kSeededReset) first_seed_ = value;
      resets_ = true;
      taken_at_ns_ = seen_at_ns;
      SetPhase(Phase::kResetting, seen_at_ns);
      return WorkerEvent::kReset;
    case WorkerOrder::kFinish:
      if (value != count_ + 1) break;  // it is done already
      finishes_ = true;
      return TakeExchange(seen_at_ns);
    case WorkerOrder::kCount:
      count_ = value;
      // Its exchange may come again, with this number.
      // relaxed: done publishes it.
      slot_->failed_exchange.store(0, std::memory_order_relaxed);
      // SYNC(workers.done): release; as in Finish.
      slot_->done.store(count_, std::memory_order_release);
      break;
    case WorkerOrder::kMessage:
      taken_at_ns_ = seen_at_ns;
      SetPhase(Phase::kCalling, seen_at_ns);
      return WorkerEvent::kMessage;
    case WorkerOrder::kStop:
      return WorkerEvent::kStop;
    case WorkerOrder::kHold:
    case WorkerOrder::kGo:
      break;
  }
  Acknowledge();  // also of an order that this version does not know
  return WorkerEvent::kTimedOut;
}

void WorkerSide::Core::Acknowledge() {
  if (std::exchange(resets_, false)) restarted_ = false;
  // Of a reset, or of a message.
  if (taken_at_ns_ != 0) EndWork(waiter_.NowNs());
  took_ = order_;
  // SYNC(workers.ack): release; the order's effects before its number.
  slot_->ack.store(took_, std::memory_order_release);
  engine_bell_.NotifyIfWaiting();
}

void WorkerSide::Core::Fail(uint32_t env, absl::string_view text) {
  if (std::exchange(failed_, true)) return;
  StoreWorkerError(env, text, slot_);
}

void WorkerSide::Core::Finish() {
  const auto flags = arrays_.resets.subspan(rows_.first_env, rows_.num_envs);
  std::ranges::fill(flags, uint8_t{0});
  restarted_ = false;
  const int64_t now = waiter_.NowNs();
  if (in_lane_) {
    FinishLane();
  } else {
    FinishExchange(now);
  }
  // The client, or the other workers, run already.
  EndWork(now);
  if (std::exchange(finishes_, false)) Acknowledge();
  CheckSupervisorNowAndThen(now);
}

void WorkerSide::Core::FinishExchange(int64_t now_ns) {
  ++count_;
  NoteFailure(count_, &slot_->failed_exchange);
  // SYNC(workers.done): release; our rows and our error before the number.
  slot_->done.store(count_, std::memory_order_release);
  // SYNC(workers.finish): fence; our number, then the loads of the others'. If
  // two workers finish at the same time, at least one sees both.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!election_.AllDone(count_) || !election_.Win(count_)) return;
  // Before frame_seq: the next exchange may have another publisher.
  RecordStepTime(&header_->engine_step_times,
                 static_cast<uint64_t>(now_ns - taken_at_ns_));
  election_.Publish(count_);
  client_bell_.NotifyIfWaiting();
}

// `number` is in `word` already if a predecessor failed in it, and died before
// it stored the number in `done` or `lane_done`, which publish the word.
void WorkerSide::Core::NoteFailure(uint64_t number,
                                   SharedWord<uint64_t>* word) const {
  // relaxed: as said, and a word of our own.
  if (failed_ || word->load(std::memory_order_relaxed) == number) {
    word->store(failed_ ? number : 0, std::memory_order_relaxed);
  }
}

void WorkerSide::Core::FinishLane() {
  ++lane_;
  NoteFailure(lane_, &slot_->failed_lane);
  // SYNC(lanes.done): release; our rows and our error before the number.
  slot_->lane_done.store(lane_, std::memory_order_release);
  client_bell_.NotifyIfWaiting();
}

void WorkerSide::Core::EndWork(int64_t now_ns) {
  SetPhase(Phase::kIdle, now_ns);
  AddTo(&slot_->busy_ns, static_cast<uint64_t>(now_ns - taken_at_ns_));
  taken_at_ns_ = 0;
}

void WorkerSide::Core::CheckSupervisorNowAndThen(int64_t now_ns) {
  if (now_ns - supervisor_checked_ns_ < kCheckSupervisorNs) return;
  supervisor_checked_ns_ = now_ns;
  if (!lock_.HeldByOther(kEngineLockByte)) supervisor_gone_ = true;
}

void WorkerSide::Core::SetPhase(Phase phase, int64_t now_ns) {
  // relaxed: for display; no decision depends on it.
  slot_->phase.store(PackPhase(phase, now_ns), std::memory_order_relaxed);
}

WorkerSide::WorkerSide(std::unique_ptr<Core> core) : core_(std::move(core)) {}
WorkerSide::WorkerSide(WorkerSide&&) noexcept = default;
WorkerSide::~WorkerSide() = default;

WorkerEvent WorkerSide::Next(Deadline deadline) {
  return core_->Next(deadline);
}
void WorkerSide::ShowEnv(uint32_t env) {
  // relaxed: for display.
  core_->slot_->env.store(env, std::memory_order_relaxed);
}
SharedWord<uint32_t>* WorkerSide::shown_env() { return &core_->slot_->env; }
void WorkerSide::CountSteps(uint64_t steps) {
  AddTo(&core_->slot_->steps, steps);
}
void WorkerSide::Fail(uint32_t env, absl::string_view text) {
  core_->Fail(env, text);
}
void WorkerSide::Finish() { core_->Finish(); }
void WorkerSide::Acknowledge() { core_->Acknowledge(); }
ExchangeKind WorkerSide::kind() const { return core_->kind_; }
AutoresetMode WorkerSide::autoreset_mode() const {
  return core_->autoreset_mode_;
}
std::optional<uint64_t> WorkerSide::first_seed() const {
  return core_->first_seed_;
}
bool WorkerSide::restarted() const { return core_->restarted_; }
uint32_t WorkerSide::worker() const { return core_->worker_; }
uint32_t WorkerSide::first_env() const { return core_->rows_.first_env; }
uint32_t WorkerSide::num_envs() const { return core_->rows_.num_envs; }
const StepArrays& WorkerSide::arrays() const { return core_->arrays_; }
const std::shared_ptr<const RegionMapping>& WorkerSide::mapping() const {
  return core_->mapping_;
}

}  // namespace tandem
