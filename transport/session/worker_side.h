// WorkerSide: a worker's end of the protocol: a process that simulates some of
// a region's environments.
//
// Data flow: client's actions -> Next() returns kExchange -> the caller resets
// and steps its own rows -> Finish() -> the last worker publishes. Supervisor's
// order -> Next() returns kReset -> the caller resets -> Acknowledge().
// Ownership: one thread of the worker's process. docs/protocol.md, "Workers",
// is the specification.
//
//   absl::StatusOr<WorkerSide> side = WorkerSide::Attach(region_fd, 2, {});
//   for (;;) switch (side->Next(Deadline::Infinite())) {
//     case WorkerEvent::kExchange: Advance(*side); side->Finish(); break;
//     case WorkerEvent::kReset: ResetAll(*side); side->Acknowledge(); break;
//     case WorkerEvent::kStop: side->Acknowledge(); return;
//     case WorkerEvent::kSupervisorGone: return;
//     ...
//   }

#ifndef TANDEM_TRANSPORT_SESSION_WORKER_SIDE_H_
#define TANDEM_TRANSPORT_SESSION_WORKER_SIDE_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "schema/layout/lrbc.h"
#include "schema/layout/worker_slot.h"
#include "transport/memory/attached_region.h"
#include "transport/memory/region_lock.h"
#include "transport/memory/region_mapping.h"
#include "transport/session/step_arrays.h"
#include "transport/session/worker_election.h"
#include "transport/wait/doorbell.h"
#include "transport/wait/wait_strategy.h"
#include "transport/wait/waiter.h"

namespace tandem {

enum class [[nodiscard]] WorkerEvent : uint8_t{
    kExchange,  // act on kind(), and on the flags and actions of the own rows;
                // then Finish
    kLane,      // the same; kind() is kStep
    kReset,     // reset all own environments, with first_seed(), and write
                // their rows; then Acknowledge
    kMessage,   // the supervisor has sent something by other means: handle it,
                // then Acknowledge; the phase shows calls of environments
    kStop,      // Acknowledge, then end
    kSupervisorGone,  // it has stopped or died: end. Each later Next returns it
    kTimedOut,        // the deadline passed
    kInterrupted,     // a signal handler ran; check your flags, call again
};

// Move-only. States and legal calls:
//
//  state     entered by                    legal calls
//  waiting   Attach, Finish, Acknowledge   Next
//  stepping  kExchange, kLane              kind, arrays, ShowEnv, Fail, Finish
//  ordered   kReset, kMessage, kStop       first_seed, arrays, ShowEnv,
//                                          Acknowledge
//
// In a forked child the destructor has no effect.
class WorkerSide {
 public:
  struct Options {
    WaitStrategy wait = WaitStrategy::kAdaptive;
  };

  // Maps the region of `fd`, which the caller may close afterwards, and takes
  // the worker's slot. Makes system calls; does not wait. Errors:
  //  - kLayoutMismatch: not a region of this version.
  //  - kUnsupported: a region without workers.
  //  - kInvalidArgument: no such worker.
  //  - kAlreadyAttached: another process has the slot. The text has its pid.
  //  - kPeerGone: the supervisor is gone.
  static absl::StatusOr<WorkerSide> Attach(int fd, uint32_t worker,
                                           const Options& options);
  WorkerSide(WorkerSide&&) noexcept = default;
  WorkerSide& operator=(WorkerSide&&) = delete;
  // Leaves the slot, and wakes the supervisor.
  ~WorkerSide();

  // Waits for the next event. An order comes before an exchange, and an
  // exchange before a lane. Allocates nothing.
  WorkerEvent Next(Deadline deadline);

  // Shows the environment in work, for display.
  void ShowEnv(uint32_t env) {
    // relaxed: for display.
    slot_->env.store(env, std::memory_order_relaxed);
  }
  // The word of ShowEnv.
  SharedWord<uint32_t>* shown_env() { return &slot_->env; }
  // Adds steps of environments, for display.
  void CountSteps(uint64_t steps);

  // An environment has raised an exception. The client gets kEnvFailed with the
  // first call's `text` of an exchange or lane: the exception's last line, and
  // as much of the lines before as the slot has room for. The caller completes
  // its other rows, then calls Finish.
  void Fail(uint32_t env, absl::string_view text);

  // Ends this worker's part of the exchange or lane: clears the reset flags of
  // its rows, and stores its number. If it is the last, publishes the exchange
  // and wakes the client. At most one system call, plus one each 100 ms.
  void Finish();

  // The order is carried out. One system call if the supervisor, or another
  // worker, sleeps.
  void Acknowledge();

  // The kind of the exchange.
  ExchangeKind kind() const { return kind_; }
  // Of the client that attached last; kSameStep before the first.
  AutoresetMode autoreset_mode() const { return autoreset_mode_; }
  // Of kReset: environment i gets the seed `*first_seed + i`; nullopt: none.
  std::optional<uint64_t> first_seed() const { return first_seed_; }
  // Whether this worker has replaced one that died, and has not reset its
  // environments since. Its first exchange, lane or kReset resets them all,
  // instead of a step.
  bool restarted() const { return restarted_; }

  uint32_t worker() const { return worker_; }
  uint32_t first_env() const { return rows_.first_env; }
  uint32_t num_envs() const { return rows_.num_envs; }
  // Of all environments; only the rows of this worker's are its own.
  const StepArrays& arrays() const { return arrays_; }
  const std::shared_ptr<const RegionMapping>& mapping() const {
    return mapping_;
  }

 private:
  class Watch;

  WorkerSide(RegionParts parts, RegionLock lock,
             std::shared_ptr<const RegionMapping> mapping, uint32_t worker,
             WaitStrategy wait);
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

  RegionLock lock_;
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

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_SESSION_WORKER_SIDE_H_
