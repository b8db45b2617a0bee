// ClientCore: what ClientSide and its LaneSide share: the session with an
// engine, the refusal of a second thread, and how both wait.
//
// Length: what two classes share, with their watch of the engine.
//
// Data flow: a call -> InUse refuses it during another call -> Waiter::Until
// with a ClientWatch -> AwaitPause, if an attendant has paused the engine.
// Ownership: a ClientSide has one, at one address, also after a move.
//
//   const ClientCore::InUse in_use(core);
//   if (in_use.refused()) return core.Refusal();
//   ClientWatch watch(core.session.region, core.options.interrupted,
//                     core.session.seq, true);
//   ErrorCode code = core.session.waiter.Until(ready, deadline, watch);
//   if (code == ErrorCode::kStepTimeout) {
//     code = core.AwaitPause(ready, deadline, watch);
//   }

#pragma once

#include <algorithm>
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
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/grace_period.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/lrbc.h"
#include "schema/layout/phase_word.h"
#include "schema/layout/worker_slot.h"
#include "transport/client_side.h"
#include "transport/lane_side.h"
#include "transport/memory/attached_region.h"
#include "transport/step_arrays.h"
#include "transport/step_times.h"
#include "transport/wait/doorbell.h"
#include "transport/wait/waiter.h"
#include "transport/wait_strategy.h"

namespace tandem {

// Ends a long wait for reasons that the condition does not show.
class ClientWatch final : public WaitWatch {
 public:
  ClientWatch(
      const AttachedRegion& region, InterruptHook interrupted,
      uint64_t settled_seq, bool judges_frames,
      absl::FunctionRef<void()> on_long_wait = [] {})
      : region_(region),
        interrupted_(interrupted),
        settled_seq_(settled_seq),
        judges_frames_(judges_frames),
        on_long_wait_(on_long_wait) {}

  void OnLongWait() override {
    if (long_wait_ns_ != 0) return;  // the wait goes on after Extend
    long_wait_ns_ = MonotonicNanos();
    paused_before_ns_ = PausedNs(long_wait_ns_);
    extended_ns_ = 0;
    on_long_wait_();
  }

  // An attendant's pause does not count: moves the passed deadline by its
  // length. False: there was none since the last call.
  bool Extend(Deadline* deadline) {
    // While the pause goes on, this is called again after at least this time.
    constexpr int64_t kLeastNs = 5'000'000;
    if (long_wait_ns_ == 0) return false;  // a shorter wait than a pause
    const int64_t now = MonotonicNanos();
    const int64_t paused =
        std::min(PausedNs(now) - paused_before_ns_, now - long_wait_ns_);
    if (paused <= extended_ns_) return false;
    *deadline = Deadline::At(
        std::max(deadline->at_ns() + paused - extended_ns_, now + kLeastNs));
    extended_ns_ = paused;
    return true;
  }

  ErrorCode Check(int64_t now_ns, bool interrupted) override {
    if (!region_.EngineAlive()) return ErrorCode::kPeerGone;
    if (judges_frames_) {
      // relaxed: only compared; results are read after the wait's acquire.
      const uint64_t frame_seq = region_.mapping()->header()->frame_seq.load(
          std::memory_order_relaxed);
      if (frame_seq - settled_seq_ <= 1) {
        count_grace_.Clear();
      } else if (count_grace_.Expired()) {
        return ErrorCode::kBrokenPeer;
      }
    }
    if (hook_called_ns_ == 0) hook_called_ns_ = now_ns;
    const bool due = now_ns - hook_called_ns_ >= kHookEveryNs;
    if (interrupted_ != nullptr && (interrupted || due)) {
      hook_called_ns_ = now_ns;
      if (interrupted_()) return ErrorCode::kInterrupted;
    }
    return ErrorCode::kOk;
  }

 private:
  // How long a writer may show invalid values before they count.
  static constexpr int64_t kGraceNs = 100'000'000;
  static constexpr int64_t kHookEveryNs = 50'000'000;
  // Ten of the engine's tests of the attendants' locks.
  static constexpr int64_t kLeftGraceNs = 1'000'000'000;

  // The length of all pauses by attendants so far.
  int64_t PausedNs(int64_t now_ns) {
    const LrbcHeader& header = *region_.mapping()->header();
    // SYNC(attendant.pause): acquire; the phase, then the pauses before it.
    const PhaseSince phase =
        UnpackPhase(header.engine_phase.load(std::memory_order_acquire));
    // relaxed: the phase published it.
    const auto ended = static_cast<int64_t>(
        header.attendant_pause_ns.load(std::memory_order_relaxed));
    if (phase.phase != Phase::kPausedByAttendant) return ended;
    // The engine takes a while to end the pause of an attendant that has left.
    if (region_.AnyAttendantAlive()) {
      left_grace_.Clear();
    } else if (left_grace_.Expired()) {
      return ended;
    }
    return ended + now_ns - phase.since_ns;
  }

  const AttachedRegion& region_;
  InterruptHook interrupted_;
  uint64_t settled_seq_;
  bool judges_frames_;
  absl::FunctionRef<void()> on_long_wait_;
  GracePeriod count_grace_{kGraceNs};
  GracePeriod left_grace_{kLeftGraceNs};  // a pause of no attendant
  int64_t hook_called_ns_ = 0;
  int64_t long_wait_ns_ = 0;  // its beginning; 0: none yet
  // From the long wait on:
  int64_t paused_before_ns_;
  int64_t extended_ns_;
};

struct ClientCore {
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

    bool shares_core = false;
    int shared_core = -1;  // by the engine, in the exchange in progress
    int64_t sent_at_ns = 0;
    int64_t received_at_ns = 0;
    StepTimesSnapshot engine_steps_at_attach = {};
    // Writer: the thread inside a call. Readers: any thread. No word publishes
    // another.
    SharedWord<uint64_t> exchanges{};
    SharedWord<uint64_t> policy_ns{};
    SharedWord<uint64_t> shared_core_exchanges{};
  };
  // A call, which refuses those of other threads.
  class InUse {
   public:
    explicit InUse(ClientCore& client)
        // SYNC(client.use): acquire; the last caller's effects before this.
        : flag_(client.in_use.exchange(true, std::memory_order_acquire)
                    ? nullptr
                    : &client.in_use) {}
    InUse(const InUse&) = delete;
    InUse& operator=(const InUse&) = delete;
    ~InUse() {
      // SYNC(client.use): release; the call's effects before the next caller.
      if (flag_ != nullptr) flag_->store(false, std::memory_order_release);
    }
    bool refused() const { return flag_ == nullptr; }

   private:
    std::atomic<bool>* flag_;
  };

  ClientCore(absl::string_view region_name, const ClientSide::Options& given,
             AttachedRegion region);
  ClientCore(const ClientCore&) = delete;
  ClientCore& operator=(const ClientCore&) = delete;

  State state() const {
    // relaxed: read by the thread that set it, or only to display it.
    return static_cast<State>(state_word.load(std::memory_order_relaxed));
  }
  void Become(State state) {
    // relaxed: as above.
    state_word.store(static_cast<uint32_t>(state), std::memory_order_relaxed);
  }
  const std::shared_ptr<const RegionMapping>& mapping() const {
    return session.region.mapping();
  }
  const LrbcHeader& plan() const { return session.region.plan(); }
  LrbcHeader* header() const { return mapping()->header(); }
  WorkerSlot* SlotOf(size_t worker) const {
    return mapping()->At<WorkerSlot>(WorkerSlotOffset(plan(), worker));
  }
  void SetPhase(Phase phase, int64_t now_ns) {
    // relaxed: for display; no decision depends on it.
    header()->client_phase.store(PackPhase(phase, now_ns),
                                 std::memory_order_relaxed);
  }

  absl::Status RequestAttach(Deadline deadline);
  void Leave();
  ErrorCode Refusal() const;
  ErrorCode MayUse() const;
  ErrorCode MaySend() const;
  ErrorCode Lost(ErrorCode code);
  ErrorCode Unsupported(const char* what) {
    unsupported = what;
    return ErrorCode::kUnsupported;
  }

  // Whether these are the arrays' actions, which need no copy.
  bool IsInPlace(std::span<const float> actions) const {
    return actions.data() == session.arrays.actions.data() &&
           actions.size() == session.arrays.actions.size();
  }
  // Whether these are the finite actions of `envs` environments.
  ErrorCode CheckActions(std::span<const float> actions, size_t envs);
  // Checks the actions in place of some environments; those of others may be
  // anything.
  ErrorCode CheckRows(size_t first_env, size_t envs);
  // Sets no flag in case of an error.
  ErrorCode FlagResets(std::span<const int64_t> env_ids,
                       std::span<const std::optional<uint64_t>> seeds);
  ErrorCode PostActions(std::span<const float> actions, AfterSend after);
  void Post(ExchangeKind kind, AfterSend after);
  void NotifyEngine(AfterSend after);
  // The engine finds no core to share.
  void NameNoCore() {
    if (session.shares_core) StoreIfOther(&header()->client_core, 0);
  }

  bool HasResults() const;
  // Whether the worker has the results of its open lane.
  bool LaneIsDone(size_t worker) const {
    // SYNC(lanes.done): acquire; the number, then the worker's rows.
    return session.lanes[worker].open &&
           SlotOf(worker)->lane_done.load(std::memory_order_acquire) ==
               session.lanes[worker].number;
  }
  // Whether the engine has acknowledged another client, and therefore reset the
  // environments.
  bool IsAnotherSession() const {
    // relaxed: only compared; the wait's acquire orders what came before it.
    return header()->attach_ack.load(std::memory_order_relaxed) !=
           session.attach_number;
  }
  ErrorCode AwaitResults(Deadline deadline,
                         absl::FunctionRef<void()> on_long_wait);
  // The deadline has passed: waits on if an attendant paused the engine
  // meanwhile. Not inline: the wait before it then is.
  template <typename Ready>
  [[gnu::noinline]] ErrorCode AwaitPause(Ready ready, Deadline deadline,
                                         ClientWatch& watch) {
    ErrorCode code = ErrorCode::kStepTimeout;
    while (code == ErrorCode::kStepTimeout && watch.Extend(&deadline)) {
      code = session.waiter.Until(ready, deadline, watch);
    }
    return code;
  }

  // client_errors.cc
  absl::Status Explain(ErrorCode code) const;
  std::string Explanation(ErrorCode code) const;
  // Of regions with workers: those that the client waits for; the exception of
  // the last kEnvFailed. "": nothing to add.
  std::string AwaitedText(int64_t now_ns) const;
  std::string FailureText() const;
  std::vector<uint32_t> AwaitedWorkers() const;
  std::optional<uint32_t> FailedWorker() const;
  std::optional<ClientSide::Failure> LastFailure() const;
  // The status of the engine's last answer.
  absl::Status EngineStatus() const;
  std::string EnginePhase() const;
  // An engine may answer with kUnsupported, kEngineFailed or kEnvFailed; any
  // other code counts as kEngineFailed. For kBrokenPeer, the engine's answer to
  // an invalid action_seq, Recv does not call this function.
  static ErrorCode EngineCode(ErrorCode status) {
    return status == ErrorCode::kUnsupported || status == ErrorCode::kEnvFailed
               ? status
               : ErrorCode::kEngineFailed;
  }

  const std::string name;
  const ClientSide::Options options;
  const uint32_t born_in;  // ForkCount() of the process that made this client

  // Writer: the thread inside a call. Readers: any thread. Publishes nothing.
  SharedWord<uint32_t> state_word{};
  ErrorCode lost_to = ErrorCode::kPeerGone;
  bool serves_environments = false;

  Session session;
  LaneSide lanes{this};

  // Of the last error, for Explain.
  int64_t bad_action = -1;
  float bad_value = 0;
  size_t envs_of_actions = 0;         // that the call was to send
  const char* unsupported = nullptr;  // if the kUnsupported is ours

  // True while a thread is inside a call. Writers: threads of this process.
  std::atomic<bool> in_use{false};
};

}  // namespace tandem
