// ClientSide: the trainer's end of the lock-step protocol.
//
// Length: each call of a trainer, with all its outcomes.
//
// Data flow: actions -> Step -> arrays().obs, rewards, ... Step does Send, then
// Recv. A caller of Send and Recv can compute while the engine steps.
// Ownership: one process owns a ClientSide. One thread at a time may call it: a
// call during another thread's call returns kConcurrentUse. Two exceptions:
//  - Any thread may call pending, closed, Stats, EnginePhase and EngineAlive,
//    except during a Reconnect.
//  - One other thread may use the RPC rings (RpcRingReader, RpcRingWriter).
//
// Specification: docs/protocol.md. Each step or reset is one *exchange*: a
// request of the client, and the engine's answer.
//
//   absl::StatusOr<ClientSide> client = ClientSide::Attach("demo", {});
//   ErrorCode code = client->Step(actions, 10);  // [num_envs * act_size]
//   if (code != ErrorCode::kOk) return client->Explain(code);
//   Use(client->arrays().obs);

#ifndef TANDEM_TRANSPORT_SESSION_CLIENT_SIDE_H_
#define TANDEM_TRANSPORT_SESSION_CLIENT_SIDE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/lrbc.h"
#include "schema/layout/worker_slot.h"
#include "transport/memory/attached_region.h"
#include "transport/ring/ring.h"
#include "transport/session/open_region.h"
#include "transport/session/rpc_side.h"
#include "transport/session/step_arrays.h"
#include "transport/session/step_times.h"
#include "transport/wait/doorbell.h"
#include "transport/wait/wait_strategy.h"
#include "transport/wait/waiter.h"

namespace tandem {

// Where a client's time went since its attach.
struct ClientStats {
  uint64_t exchanges = 0;
  uint64_t policy_ns = 0;  // from the end of a Recv to the next Send
  // From a Send to the end of its Recv. Send first publishes the request, then
  // reads the clock. So a round trip may be slightly shorter than the engine's
  // time for the same exchange.
  StepTimesSnapshot round_trips;
  StepTimesSnapshot engine_steps;  // the engine's time for these exchanges
};

// Move-only. An illegal call returns an error and has no effect. In this table
// Send* stands for Send and SendReset:
//
//  state     entered by                       legal calls
//  idle      Attach, Reconnect; a Recv that   Send*, Step, SendLanes,
//            completed the exchange; a        AwaitFrame, Reconnect, Close
//            RecvLanes that closed all lanes
//  pending   Send* with kOk; a Recv with      Recv, Reconnect, Close
//            kStepTimeout or kInterrupted
//  lanes     SendLanes with kOk               SendLanes, LanesReady, RecvLanes,
//                                             Reconnect, Close
//  lost      a call with kPeerGone or         Reconnect, Close
//            kBrokenPeer; a failed Reconnect
//  closed    Close                            Close
//
// A Step whose Send fails does not change the state. After any other Step, the
// state is that after its Recv.
//
// arrays() may be read in every state. The region stays mapped while the client
// or a copy of mapping() exists. In a forked child, Reconnect and all functions
// that return an ErrorCode return kForkedChild. The destructor in the child
// does not end the parent's session.
class ClientSide final : public RpcSide {
 public:
  struct Options {
    double timeout_secs = 10.0;  // until the engine acknowledges the attach
    WaitStrategy wait = WaitStrategy::kAdaptive;
    AutoresetMode autoreset = AutoresetMode::kSameStep;
    InterruptHook interrupted = nullptr;
  };

  // Waits until an engine serves the region, and takes the client slot: the
  // region's one place for a client, held by a lock. Blocks. Errors:
  //  - kNotReady: no engine served the region before the timeout.
  //  - kStepTimeout: the engine did not acknowledge before the timeout.
  //  - kAlreadyAttached: another client has the slot. The text has its pid.
  //  - kLayoutMismatch: the file is not a valid region.
  //  - kInvalidArgument: the name is invalid.
  //  - kAccessDenied, kInterrupted.
  //  - kEngineFailed, kUnsupported: the engine refused the client.
  static absl::StatusOr<ClientSide> Attach(absl::string_view name,
                                           const Options& options);
  ClientSide(ClientSide&&) noexcept;
  ClientSide& operator=(ClientSide&&) = delete;
  ~ClientSide() override;

  // Copies `actions` ([num_envs * act_size], all finite) into the region and
  // requests a step. Copies nothing if `actions` is arrays().actions. Fields of
  // actions must be written before; without float32 rows `actions` is empty.
  //  - kOk: sent.
  //  - kInvalidAction: wrong size, or a value that is not finite.
  //  - kStepPending: the results of the last exchange were not received; call
  //    Recv first.
  //  - kPeerGone, kBrokenPeer: an earlier call returned this error, so the
  //    client is lost.
  //  - kClientClosed: the client is closed, or the last Reconnect failed.
  //  - kForkedChild, kConcurrentUse.
  // In case of an error, nothing is sent. Never blocks or allocates. Makes a
  // system call only to wake an engine that sleeps.
  ErrorCode Send(std::span<const float> actions);

  // Requests a step of the environments `env_ids` only; the rows of all others
  // stay as they are, and their reset flags are dropped. `actions` has a row
  // for each of `env_ids`, in this order, or is arrays().actions. Errors: those
  // of the other Send, and:
  //  - kInvalidArgument: an index is out of range, or is there twice.
  //  - kUnsupported: the engine knows no subsets.
  ErrorCode Send(std::span<const float> actions,
                 std::span<const int64_t> env_ids);

  // Requests a reset of the environments `env_ids`; the exchange steps no
  // environment. `seeds` is empty, or has one item for each of `env_ids`: a
  // seed, or nullopt for none. Errors: those of Send, without kInvalidAction,
  // and:
  //  - kInvalidArgument: an index is out of range, or `seeds` has a wrong size.
  ErrorCode SendReset(std::span<const int64_t> env_ids,
                      std::span<const std::optional<uint64_t>> seeds);

  // Waits for the results.
  //  - kOk: arrays() has the results.
  //  - kStepTimeout, kInterrupted: the exchange is still pending. A pause by an
  //    attendant extends the deadline.
  //  - kPeerGone, kBrokenPeer: the client is lost.
  //  - kEngineFailed, kUnsupported: the engine reports an error, which Explain
  //    returns. The exchange is complete; arrays() has no valid results.
  //  - kEnvFailed: an environment raised an exception in its worker process.
  //    The exchange is complete; the rows of all other environments are valid.
  //  - kNoStepPending, kClientClosed, kForkedChild, kConcurrentUse.
  // Allocates nothing. Calls `on_long_wait` at most once: before the first
  // sleep, or after a spin of 20 us. Calls Options::interrupted only later.
  ErrorCode Recv(Deadline deadline,
                 absl::FunctionRef<void()> on_long_wait = DoNothing);

  // Does Send, then Recv with a deadline `timeout_secs` after the Send. The
  // errors are those of Send and of Recv. Step takes less time than these two
  // calls.
  ErrorCode Step(std::span<const float> actions, double timeout_secs,
                 absl::FunctionRef<void()> on_long_wait = DoNothing);

  // The workers' rows; empty: the engine has no workers, and lanes are
  // kUnsupported. A worker's environments can step without those of the others,
  // in a *lane*. While a lane is open, the rows of its worker belong to the
  // worker.
  std::span<const WorkerRows> workers() const {
    return session_.region.workers();
  }

  // Opens lanes: requests a step of all environments of these workers. A reset
  // flag in arrays().resets resets the environment instead; kSkip does neither.
  // `actions` has the rows of these workers, in this order, or is
  // arrays().actions.
  //  - kOk: sent.
  //  - kStepPending: an exchange is pending, or one of these lanes is open.
  //  - kInvalidArgument: no such worker, or a worker is there twice.
  //  - kInvalidAction, kUnsupported, kPeerGone, kBrokenPeer, kClientClosed,
  //    kForkedChild, kConcurrentUse: as for Send.
  // Makes a system call only to wake workers that sleep: one for all.
  ErrorCode SendLanes(std::span<const uint32_t> workers,
                      std::span<const float> actions);
  // Opens lanes as SendLanes, which only reset `env_ids`, environments of these
  // workers. `seeds`, and errors about both: as for SendReset.
  ErrorCode SendLaneResets(std::span<const uint32_t> workers,
                           std::span<const int64_t> env_ids,
                           std::span<const std::optional<uint64_t>> seeds);
  // The workers whose lanes are open.
  std::vector<uint32_t> OpenLanes() const;
  // The number of open lanes whose results are there.
  size_t LanesReady() const;
  // Waits until at least `min_count` open lanes (all, if fewer are open) have
  // results. Closes these lanes, and writes their workers into `workers`.
  // Errors and outcomes as for Recv, and:
  //  - kOk, kEnvFailed: arrays() has the results of `workers`. kEnvFailed: an
  //    environment of one of them raised an exception.
  //  - kStepTimeout, kInterrupted: no lane was closed.
  //  - kNoStepPending: no lane is open.
  // Allocates only to grow `workers`.
  ErrorCode RecvLanes(size_t min_count, Deadline deadline,
                      std::vector<uint32_t>* workers,
                      absl::FunctionRef<void()> on_long_wait = DoNothing);

  // kEnvFailed: an environment of one of these workers raised an exception in
  // the worker's last lane, which RecvLanes has closed; Explain has the first.
  // Otherwise kOk. Illegal beside another call.
  ErrorCode LaneFailure(std::span<const uint32_t> workers);

  // Facts of errors, for callers that the text of Explain does not help: the
  // workers that have not answered, while a step is pending; the first
  // environment of the last kEnvFailed, and its worker.
  struct Failure {
    uint32_t worker;
    uint32_t env;
  };
  std::vector<uint32_t> AwaitedWorkers() const;
  std::optional<Failure> LastFailure() const;

  // Whether arrays() have the results of the last exchange. kOk, or the error
  // that a Send would return.
  ErrorCode MayRead() const { return MaySend(); }
  const AttachedRegion& region() const { return session_.region; }

  // Whether the engine has a frame ring.
  bool has_frames() const { return plan().flan_offset != 0; }

  // The exchange number of arrays().images, as of the last Recv or Attach; 0 if
  // the engine renders no images.
  uint64_t image_step() const {
    // relaxed: frame_seq or attach_ack published it.
    return header()->image_step.load(std::memory_order_relaxed);
  }

  // Requests a frame of the current state, and waits until this frame is the
  // newest in the frame ring. Only kPeerGone changes the client's state.
  //  - kOk: the newest frame shows the current state.
  //  - kStepTimeout, kInterrupted: no frame came; the caller may call again.
  //  - kPeerGone: the client is lost.
  //  - kUnsupported: the engine has no frame ring.
  //  - kStepPending, kBrokenPeer, kClientClosed, kForkedChild, kConcurrentUse:
  //    as for Send.
  // Allocates nothing.
  ErrorCode AwaitFrame(Deadline deadline);

  // The reader and the writer are valid until the next Reconnect.
  absl::StatusOr<RingReader> RpcRingReader() override;
  absl::StatusOr<RingWriter> RpcRingWriter() override;
  ImagePlace image_place() const override;
  Waiter RpcWaiter() const override {
    return Waiter(session_.own_bell, options_.wait);
  }
  void AnnounceRpcs() override {}  // nothing to do: the engine polls this ring
  std::string EnginePhase() const override;
  bool EngineAlive() const override { return session_.region.EngineAlive(); }

  // Wakes the engine's process if it sleeps, after the caller has sent
  // something to it by other means: a supervisor looks at its descriptors.
  // Illegal beside Reconnect. A system call only if a process of the engine
  // sleeps.
  void WakeEngine() { session_.engine_bell.NotifyIfWaiting(); }

  // Ends the session, if there is one, and attaches to the engine that now has
  // the name. Blocks. On success arrays() is in the new region's mapping. The
  // old mapping stays while a copy of mapping() exists. Errors:
  //  - kConcurrentUse, kForkedChild, kClientClosed: the state is unchanged.
  //  - kLayoutMismatch: task, sizes or layout differ from those before, or as
  //    for Attach. The client is lost.
  //  - the other errors of Attach: the client is lost.
  absl::Status Reconnect(double timeout_secs);

  // Ends the session and releases the client slot. A second call has no effect.
  // Errors: kConcurrentUse (another thread is inside a call), kForkedChild.
  ErrorCode Close();

  // Returns the error for a call that begins during another thread's call:
  // kConcurrentUse. In a forked child the error is kForkedChild: the other
  // thread exists only in the parent. Bindings call Refusal if they detect such
  // calls by a flag of their own.
  ErrorCode Refusal() const;

  // Returns `code`, which the last call returned, as a status. The text says
  // what was expected, what was found, where, and the next action. Allocates.
  absl::Status Explain(ErrorCode code) const;
  // Makes Explain recommend methods of SharedMemoryVectorEnv as next actions.
  // SharedMemoryVectorEnv has reset() and close(), but no reconnect().
  void ServeEnvironments() { serves_environments_ = true; }
  // After ServeEnvironments, Explain recommends this when the client is lost.
  static constexpr char kNextOfEnvironments[] =
      "close() these environments and make new ones";

  bool pending() const { return state() == State::kPending; }
  bool closed() const { return state() == State::kClosed; }
  ClientStats Stats() const;

  const StepArrays& arrays() const { return session_.arrays; }
  const std::string& name() const override { return name_; }
  const LrbcHeader& plan() const { return session_.region.plan(); }
  const std::shared_ptr<const RegionMapping>& mapping() const {
    return session_.region.mapping();
  }

 private:
  enum class State : uint32_t { kLost, kIdle, kPending, kClosed, kLanes };
  // A worker's lane.
  struct Lane {
    uint64_t number = 0;  // of the last one
    bool open = false;
    bool chosen = false;  // by the call in progress
  };
  // All that belongs to one attach; Reconnect replaces it as a whole.
  struct Session {
    Session(AttachedRegion attached, WaitStrategy wait);

    AttachedRegion region;
    StepArrays arrays;
    Doorbell own_bell;
    Doorbell engine_bell;
    Waiter waiter;
    uint64_t seq = 0;               // exchanges completed in this region
    uint32_t attach_number = 0;     // this client's attach_request
    int64_t frame_asked_at_ns = 0;  // the last AwaitFrame; 0: none

    std::vector<uint8_t> chosen;   // of each environment; with subsets only
    std::vector<Lane> lanes = {};  // of each worker
    size_t open_lanes = 0;
    int64_t failed_lane_of = -1;  // the worker of the last kEnvFailed; -1: none

    int64_t sent_at_ns = 0;
    int64_t received_at_ns = 0;
    StepTimesSnapshot engine_steps_at_attach = {};
    // Writer: the thread inside a call. Readers: any thread. No word publishes
    // another.
    SharedWord<uint64_t> exchanges{};
    SharedWord<uint64_t> policy_ns{};
  };
  class Watch;
  class InUse;

  ClientSide(absl::string_view name, const Options& options,
             AttachedRegion region);
  absl::Status RequestAttach(Deadline deadline);
  std::string Explanation(ErrorCode code) const;
  // Of regions with workers: those that the client waits for; the exception of
  // the last kEnvFailed. "": nothing to add.
  std::string AwaitedText(int64_t now_ns) const;
  std::string FailureText() const;
  std::optional<uint32_t> FailedWorker() const;
  // The status of the engine's last answer.
  absl::Status EngineStatus() const;
  // An engine may answer with kUnsupported, kEngineFailed or kEnvFailed; any
  // other code counts as kEngineFailed. For kBrokenPeer, the engine's answer to
  // an invalid action_seq, Recv does not call this function.
  static ErrorCode EngineCode(ErrorCode status) {
    return status == ErrorCode::kUnsupported || status == ErrorCode::kEnvFailed
               ? status
               : ErrorCode::kEngineFailed;
  }
  void Leave();
  State state() const {
    // relaxed: read by the thread that set it, or only to display it.
    return static_cast<State>(state_.load(std::memory_order_relaxed));
  }
  void Become(State state) {
    // relaxed: as above.
    state_.store(static_cast<uint32_t>(state), std::memory_order_relaxed);
  }
  static void DoNothing() {}
  ErrorCode PostActions(std::span<const float> actions);
  ErrorCode CheckActions(std::span<const float> actions, size_t envs);
  ErrorCode CheckRows(size_t first_env, size_t envs);
  // Whether these are arrays().actions, which need no copy.
  bool IsInPlace(std::span<const float> actions) const {
    return actions.data() == session_.arrays.actions.data() &&
           actions.size() == session_.arrays.actions.size();
  }
  ErrorCode Unsupported(const char* what) {
    unsupported_ = what;
    return ErrorCode::kUnsupported;
  }
  WorkerSlot* SlotOf(size_t worker) const {
    return mapping()->At<WorkerSlot>(WorkerSlotOffset(plan(), worker));
  }
  bool LaneIsDone(size_t worker) const;
  ErrorCode CheckLanes(std::span<const uint32_t> workers);
  void PostLanes(std::span<const uint32_t> workers);
  ErrorCode FlagResets(std::span<const int64_t> env_ids,
                       std::span<const std::optional<uint64_t>> seeds);
  void CloseLanes();
  ErrorCode AwaitResults(Deadline deadline,
                         absl::FunctionRef<void()> on_long_wait);
  template <typename Ready>
  ErrorCode AwaitPause(Ready ready, Deadline deadline, Watch& watch);
  bool HasResults() const;
  // Whether the engine has acknowledged another client, and therefore reset the
  // environments.
  bool IsAnotherSession() const {
    // relaxed: only compared; the wait's acquire orders what came before it.
    return header()->attach_ack.load(std::memory_order_relaxed) !=
           session_.attach_number;
  }
  ErrorCode MaySend() const;
  ErrorCode MayUse() const;
  void Post(ExchangeKind kind);
  ErrorCode Lost(ErrorCode code);
  void SetPhase(Phase phase, int64_t now_ns);
  LrbcHeader* header() const { return mapping()->header(); }

  static constexpr int64_t kGraceNs = 100'000'000;

  std::string name_;
  Options options_;
  uint32_t born_in_;  // ForkCount() of the process that made this client

  // Writer: the thread inside a call. Readers: any thread. Publishes nothing.
  SharedWord<uint32_t> state_{};
  ErrorCode lost_to_ = ErrorCode::kPeerGone;
  bool serves_environments_ = false;

  Session session_;

  // Of the last error, for Explain.
  int64_t bad_action_ = -1;
  float bad_value_ = 0;
  size_t envs_of_actions_ = 0;         // that the call was to send
  const char* unsupported_ = nullptr;  // if the kUnsupported is ours

  // True while a thread is inside a call. Writers: threads of this process.
  std::unique_ptr<std::atomic<bool>> in_use_;
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_SESSION_CLIENT_SIDE_H_
