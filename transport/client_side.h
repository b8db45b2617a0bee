// ClientSide: the trainer's end of the lock-step protocol.
//
// Data flow: actions -> Step -> arrays().obs, rewards, ... Step does Send, then
// Recv. A caller of Send and Recv can compute while the engine steps.
// Ownership: one process owns a ClientSide. One thread at a time may call it: a
// call during another thread's call returns kConcurrentUse. Two exceptions:
//  - Any thread may call pending, closed, Stats, EnginePhase and EngineAlive,
//    except during a Reconnect.
//  - One other thread may use the RPC rings, by an RpcClient.
//
// Specification: docs/protocol.md. Each step or reset is one *exchange*: a
// request of the client, and the engine's answer.
//
//   absl::StatusOr<ClientSide> client = ClientSide::Attach("demo", {});
//   ErrorCode code = client->Step(actions, 10);  // [num_envs * act_size]
//   if (code != ErrorCode::kOk) return client->Explain(code);
//   Use(client->arrays().obs);

#pragma once

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
#include "transport/lane_side.h"
#include "transport/region.h"
#include "transport/rpc_side.h"
#include "transport/run_snapshot.h"
#include "transport/step_arrays.h"
#include "transport/step_times.h"
#include "transport/wait_strategy.h"

namespace tandem {

class AttachedRegion;
struct ClientCore;  // client_core.h

// What a client does after a Send: an engine may sleep on the core of one that
// waits, and use it while the client sleeps (docs/waiting.md).
enum class AfterSend : uint8_t { kComputes, kWaits };

// Where a client's time went since its attach.
struct ClientStats {
  uint64_t exchanges = 0;
  uint64_t shared_core_exchanges = 0;  // of these, by an engine on our core
  // The engine has polled before a request that it forecast; the request came
  // meanwhile. Both since the engine's start.
  uint64_t early_wakes = 0;
  uint64_t early_hits = 0;
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
//  idle      Attach, Reconnect; a Recv that   Send*, Step, AwaitFrame, those of
//            completed the exchange; no lane  lanes(), Reconnect, Close
//            is open any more
//  pending   Send* with kOk; a Recv with      Recv, Reconnect, Close
//            kStepTimeout or kInterrupted
//  lanes     a lane is open (LaneSide)        those of lanes(), Reconnect,
//                                             Close
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
    bool share_core = true;  // with an engine, unless it spins (AfterSend)
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
  ErrorCode Send(std::span<const float> actions,
                 AfterSend after = AfterSend::kComputes);

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

  // The workers' rows; empty: the engine has no workers, and no lanes.
  std::span<const WorkerRows> workers() const;
  // Steps of single workers' environments.
  LaneSide& lanes();

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
  ErrorCode MayRead() const;

  // Whether the engine has a frame ring.
  bool has_frames() const { return plan().flan_offset != 0; }

  // The exchange number of arrays().images, as of the last Recv or Attach; 0 if
  // the engine renders no images.
  uint64_t image_step() const {
    // relaxed: frame_seq or attach_ack published it.
    return mapping()->header()->image_step.load(std::memory_order_relaxed);
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

  std::string EnginePhase() const override;
  bool EngineAlive() const override;

  // Wakes the engine's process if it sleeps, after the caller has sent
  // something to it by other means: a supervisor looks at its descriptors.
  // Illegal beside Reconnect. A system call only if a process of the engine
  // sleeps.
  void WakeEngine();

  // Shows observers and the engine the statistics of rewards that the caller
  // computes itself, in place of the engine's, until the next call or attach.
  // No effect on an engine from before kFeatureOwnRun. Neither blocks nor
  // allocates; makes no system call.
  //  - kOk.
  //  - kPeerGone, kBrokenPeer, kClientClosed, kForkedChild, kConcurrentUse: as
  //    for Send.
  ErrorCode ShowOwnRun(const RunSnapshot& run);

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
  void ServeEnvironments();
  // After ServeEnvironments, Explain recommends this when the client is lost.
  static constexpr char kNextOfEnvironments[] =
      "close() these environments and make new ones";

  bool pending() const;
  bool closed() const;
  ClientStats Stats() const;

  const StepArrays& arrays() const;
  const std::string& name() const override;
  const LrbcHeader& plan() const;
  const std::shared_ptr<const RegionMapping>& mapping() const;

 private:
  // The reader and the writer are valid until the next Reconnect.
  absl::StatusOr<RingReader> RpcRingReader() override;
  absl::StatusOr<RingWriter> RpcRingWriter() override;
  ImagePlace image_place() const override;
  Waiter RpcWaiter() const override;
  void AnnounceRpcs() override {}  // nothing to do: the engine polls this ring

  friend class ImportedArrays;  // opens the region's arrays on a GPU
  explicit ClientSide(std::unique_ptr<ClientCore> core);
  const AttachedRegion& region() const;
  static void DoNothing() {}

  std::unique_ptr<ClientCore> core_;  // nullptr: moved from
};

}  // namespace tandem
