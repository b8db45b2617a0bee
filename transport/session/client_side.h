// ClientSide: the trainer's end of the lock-step protocol.
//
// Data flow: actions -> Step -> arrays().obs, rewards, ...; or in two halves,
// Send -> engine -> Recv, to compute meanwhile.
// Ownership: one trainer process; one thread at a time, a second is refused.
// docs/protocol.md is the specification.
//
//   absl::StatusOr<ClientSide> client = ClientSide::Attach("demo", {});
//   ErrorCode code = client->Step(actions, 10);  // [num_envs * act_size]
//   if (code != ErrorCode::kOk) return client->Explain(code);
//   Use(client->arrays().obs);

#ifndef TANDEM_TRANSPORT_SESSION_CLIENT_SIDE_H_
#define TANDEM_TRANSPORT_SESSION_CLIENT_SIDE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/lrbc.h"
#include "transport/base/clock.h"
#include "transport/memory/attached_region.h"
#include "transport/ring/ring.h"
#include "transport/session/step_arrays.h"
#include "transport/session/step_times.h"
#include "transport/wait/doorbell.h"
#include "transport/wait/wait_strategy.h"
#include "transport/wait/waiter.h"

namespace tandem {

// What a long wait asks now and then, and after every signal: true ends it with
// kInterrupted. Called by the waiting thread.
using InterruptHook = bool (*)();

// Where a client's time went since it attached.
struct ClientStats {
  uint64_t exchanges = 0;
  uint64_t policy_ns = 0;  // from a recv's end to the next send
  // From a send to its recv's end. The clock is read just after the number
  // went out, so that the engine's part of one may be the longer by a little.
  StepTimesSnapshot round_trips;
  StepTimesSnapshot engine_steps;  // the engine's own part of those
};

// Move-only. States and legal calls; all others are refused without effect:
//
//  state     entered by                     legal calls
//  idle      Attach, Reconnect, Recv kOk    Send*, Step, Reconnect, Close
//  pending   Send* kOk; Recv kStepTimeout   Recv, Reconnect, Close
//            or kInterrupted
//  lost      Recv kPeerGone or kBrokenPeer, Reconnect, Close
//            a Reconnect that failed
//  closed    Close                          -
//
// arrays() may be read in every state: the mapping lives as long as the client
// or anyone who shares mapping(). In a forked child all calls give
// kForkedChild, and destruction leaves the parent's session alone.
class ClientSide {
 public:
  struct Options {
    double timeout_secs = 10.0;  // for a region to appear and acknowledge
    WaitStrategy wait = WaitStrategy::kAdaptive;
    AutoresetMode autoreset = AutoresetMode::kSameStep;
    InterruptHook interrupted = nullptr;
  };

  // Waits for an engine to serve the region and takes the client's place.
  // Errors: kNotReady (none did in time), kStepTimeout (it did, but did not
  // answer in time), kAlreadyAttached (another client has the place; its label
  // pid is named), kLayoutMismatch, kAccessDenied, kInvalidArgument (name),
  // kUnsupported (inference mode), kInterrupted, and what the engine refused
  // us with.
  static absl::StatusOr<ClientSide> Attach(absl::string_view name,
                                           const Options& options);
  ClientSide(ClientSide&&) noexcept;
  ClientSide& operator=(ClientSide&&) = delete;
  ~ClientSide();

  // Copies `actions` ([num_envs * act_size], all finite) into the region and
  // asks for a step. If they already are arrays().actions nothing is copied.
  // kOk; kInvalidAction (nothing was sent); kStepPending; kPeerGone,
  // kBrokenPeer and kClientClosed (sticky); kForkedChild; kConcurrentUse.
  // Neither blocks nor allocates; a system call only if the engine sleeps.
  ErrorCode Send(std::span<const float> actions);

  // Flags these environments for a reset, each with its seed if it has one
  // (`seeds` is as long as `env_ids`, or empty for none), and asks for an
  // exchange that steps no environment. Errors as Send; kInvalidArgument for an
  // index out of range or another number of seeds.
  ErrorCode SendReset(std::span<const int64_t> env_ids,
                      std::span<const std::optional<uint64_t>> seeds);

  // Waits for the results. kOk: arrays() holds them. kStepTimeout,
  // kInterrupted: still pending. kPeerGone, kBrokenPeer: lost. kEngineFailed,
  // kUnsupported: the engine's own words; received, but its arrays are not
  // results. kNoStepPending, kClientClosed, kForkedChild, kConcurrentUse.
  // Allocates nothing. `on_long_wait` is called once, if it is about to sleep
  // or has spun for 20 us, and before any Options::interrupted.
  ErrorCode Recv(Deadline deadline,
                 absl::FunctionRef<void()> on_long_wait = DoNothing);

  // Send, then Recv until `timeout_secs` after it: their errors and states, in
  // less time.
  ErrorCode Step(std::span<const float> actions, double timeout_secs,
                 absl::FunctionRef<void()> on_long_wait = DoNothing);

  // Whether the engine has a frame ring.
  bool has_frames() const { return plan().flan_offset != 0; }

  // The number of the exchange whose state arrays().images show; 0 without
  // images. As recent as the last Recv, or Attach.
  uint64_t image_step() const {
    // relaxed: frame_seq or attach_ack published it.
    return header()->image_step.load(std::memory_order_relaxed);
  }

  // Asks for a frame of the state as it is, and waits until the frame ring's
  // newest is one. Legal while idle and has_frames(); idle afterwards, too,
  // unless lost. kOk; kStepTimeout, kInterrupted: ask again; kPeerGone;
  // otherwise as Send, and kUnsupported without frames. Allocates nothing.
  ErrorCode AwaitFrame(Deadline deadline);

  // This session's RPC rings, each to be taken once; of no use after a
  // Reconnect. One thread may use them while another steps. kBrokenPeer: the
  // engine has scribbled over them.
  absl::StatusOr<RingReader> RpcRingReader();
  absl::StatusOr<RingWriter> RpcRingWriter();
  // To wait on for what comes through them, in a thread of one's own.
  Waiter RpcWaiter() const;
  // What the engine is at, for error texts: "stepping for 9.98 s". Any thread
  // may ask. Allocates.
  std::string EnginePhase() const;
  // Whether the engine lives: a system call. Any thread may ask.
  bool EngineAlive() const { return region_.EngineAlive(); }

  // Leaves the session, if there is one, and attaches to the engine that now
  // has the name. On success the arrays are others (the old mapping stays
  // as long as it is shared). Errors: as Attach; kLayoutMismatch also if task,
  // sizes or layout differ from before. After an error the state is lost.
  absl::Status Reconnect(double timeout_secs);

  // Releases the client slot. Safe twice. kConcurrentUse if another thread is
  // inside a call.
  ErrorCode Close();

  // What a call gets that finds another under way: kConcurrentUse, or
  // kForkedChild if that one's thread is the parent's.
  ErrorCode Refusal() const;

  // The last failure in words: expected, found, where, what to do. Allocates.
  absl::Status Explain(ErrorCode code) const;
  // From now on Explain advises users of environments, whose class has reset()
  // and close() but no reconnect().
  void ServeEnvironments() { serves_environments_ = true; }
  // The advice when their session is over.
  static constexpr char kNextOfEnvironments[] =
      "close() these environments and make new ones";

  // These three may be asked by any thread, but not during a Reconnect.
  bool pending() const { return state() == State::kPending; }
  bool closed() const { return state() == State::kClosed; }
  ClientStats Stats() const;
  const StepArrays& arrays() const { return arrays_; }
  const std::string& name() const { return name_; }
  const LrbcHeader& plan() const { return region_.plan(); }
  const std::shared_ptr<const RegionMapping>& mapping() const {
    return region_.mapping();
  }

 private:
  enum class State : uint32_t { kLost, kIdle, kPending, kClosed };
  class Watch;
  class InUse;

  ClientSide(absl::string_view name, const Options& options,
             AttachedRegion region);
  static absl::StatusOr<AttachedRegion> OpenByDeadline(absl::string_view name,
                                                       const Options& options,
                                                       Deadline deadline);
  absl::Status RequestAttach(Deadline deadline);
  std::string Explanation(ErrorCode code) const;
  // What the engine said with its last answer.
  absl::Status EngineStatus() const;
  // The codes that an engine may answer with; any other is its failure, never a
  // verdict of this side's.
  static ErrorCode EngineCode(ErrorCode status) {
    return status == ErrorCode::kUnsupported ? status
                                             : ErrorCode::kEngineFailed;
  }
  void Leave();
  std::span<std::byte> RpcRingData(uint64_t ring_offset) const;
  State state() const {
    // relaxed: asked by the thread that set it, or by one that only shows it.
    return static_cast<State>(state_.load(std::memory_order_relaxed));
  }
  void Become(State state) {
    // relaxed: as above.
    state_.store(static_cast<uint32_t>(state), std::memory_order_relaxed);
  }
  static void DoNothing() {}
  ErrorCode PostActions(std::span<const float> actions);
  ErrorCode AwaitResults(Deadline deadline,
                         absl::FunctionRef<void()> on_long_wait);
  ErrorCode MaySend() const;
  ErrorCode MayUse() const;
  void Post(ExchangeKind kind);
  ErrorCode Lost(ErrorCode code);
  void SetPhase(Phase phase, int64_t now_ns);
  LrbcHeader* header() const { return region_.mapping()->header(); }

  static constexpr int64_t kGraceNs = 100'000'000;

  std::string name_;
  Options options_;
  AttachedRegion region_;
  StepArrays arrays_;
  Waiter waiter_;
  Doorbell own_bell_;
  Doorbell engine_bell_;
  uint32_t born_in_;  // ForkCount() of the owner

  // Writer: the thread inside a call; readers: any. Publish nothing.
  SharedWord<uint32_t> state_{};
  SharedWord<uint64_t> exchanges_{};
  SharedWord<uint64_t> policy_ns_{};
  ErrorCode lost_to_ = ErrorCode::kPeerGone;
  uint64_t seq_ = 0;               // exchanges completed, as the region counts
  uint32_t attach_number_ = 0;     // our attach_request
  int64_t frame_asked_at_ns_ = 0;  // 0: never
  int64_t bad_action_ = -1;
  float bad_value_ = 0;
  bool serves_environments_ = false;

  int64_t sent_at_ns_ = 0;
  int64_t received_at_ns_ = 0;
  StepTimesSnapshot engine_steps_at_attach_;

  // Writer and readers: threads of this process; 1 while one is inside a call.
  std::unique_ptr<std::atomic<bool>> in_use_;
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_SESSION_CLIENT_SIDE_H_
