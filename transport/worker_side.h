// WorkerSide: a worker's end of the protocol: a process that simulates some of
// a region's environments. SupervisorEvent: what the workers' supervisor waits
// for.
//
// Data flow: client's actions -> Next() returns kExchange -> the caller resets
// and steps its own rows -> Finish() -> the last worker publishes. Supervisor's
// order -> Next() returns kReset -> the caller resets -> Acknowledge().
// Clients, attendants and workers -> Next() of a SupervisorHost.
// Ownership: one thread of the worker's process calls WorkerSide; the
// supervisor's thread gets SupervisorEvent. docs/protocol.md, "Workers", is the
// specification.
//
//   absl::StatusOr<WorkerSide> side = WorkerSide::Attach(region_fd, 2, {});
//   for (;;) switch (side->Next(Deadline::Infinite())) {
//     case WorkerEvent::kExchange: Advance(*side); side->Finish(); break;
//     case WorkerEvent::kReset: ResetAll(*side); side->Acknowledge(); break;
//     case WorkerEvent::kStop: side->Acknowledge(); return;
//     case WorkerEvent::kSupervisorGone: return;
//     ...
//   }

#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "schema/layout/lrbc.h"
#include "schema/layout/worker_slot.h"
#include "transport/region.h"
#include "transport/step_arrays.h"
#include "transport/wait_strategy.h"

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

// Results of SupervisorHost::Next (engine_adapter/supervisor_host.h), whose
// calls they name.
enum class [[nodiscard]] SupervisorEvent : uint8_t{
    kWorkersReady,     // each has carried out ResetWorkers
    kClientArrived,    // AcknowledgeAttach; the workers have reset already
    kClientLeft,       // the same. Also if the next client was refused
    kWorkersAnswered,  // each has acknowledged MessageWorkers
    kWorkerDied,       // dead_worker(): End, or ReplaceWorker and start another
    kInput,            // the descriptor of WatchInput is readable
    kFrameWanted,      // a client asks for a frame
    kRpcs,             // a client has written into its RPC ring
    kAttendants,       // an attendant has written, or may have left
    kBrokenClient,     // action_seq was invalid; the client gets an error
    kTimedOut,         // the deadline passed
    kInterrupted,      // a signal handler ran; check your flags, call again
    kStopRequested,    // each later Next returns it, too
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
  //  - kSystemCallFailed: `fd` leads to no memory.
  static absl::StatusOr<WorkerSide> Attach(int fd, uint32_t worker,
                                           const Options& options);
  WorkerSide(WorkerSide&&) noexcept;
  WorkerSide& operator=(WorkerSide&&) = delete;
  // Leaves the slot, and wakes the supervisor.
  ~WorkerSide();

  // Waits for the next event. An order comes before an exchange, and an
  // exchange before a lane. Allocates nothing.
  WorkerEvent Next(Deadline deadline);

  // Shows the environment in work, for display.
  void ShowEnv(uint32_t env);
  // The word of ShowEnv.
  SharedWord<uint32_t>* shown_env();
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
  ExchangeKind kind() const;
  // Of the client that attached last; kSameStep before the first.
  AutoresetMode autoreset_mode() const;
  // Of kReset: environment i gets the seed `*first_seed + i`; nullopt: none.
  std::optional<uint64_t> first_seed() const;
  // Whether this worker has replaced one that died, and has not reset its
  // environments since. Its first exchange, lane or kReset resets them all,
  // instead of a step.
  bool restarted() const;

  uint32_t worker() const;
  uint32_t first_env() const;
  uint32_t num_envs() const;
  // Of all environments; only the rows of this worker's are its own.
  const StepArrays& arrays() const;
  const std::shared_ptr<const RegionMapping>& mapping() const;

 private:
  struct Core;

  explicit WorkerSide(std::unique_ptr<Core> core);

  std::unique_ptr<Core> core_;  // nullptr: moved from
};

}  // namespace tandem
