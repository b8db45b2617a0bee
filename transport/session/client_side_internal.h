// What client_side.cc and client_side_workers.cc share: how a ClientSide waits,
// and how it refuses a second thread.
//
// Data flow: a call -> InUse refuses it during another call -> Waiter::Until
// with a Watch -> AwaitPause, if an attendant has paused the engine.
// Ownership: each call of a ClientSide makes its own objects, on its stack.
//
//   const InUse in_use(this);
//   if (in_use.refused()) return Refusal();
//   Watch watch(session_.region, options_.interrupted, session_.seq, true);
//   ErrorCode code = session_.waiter.Until(ready, deadline, watch);
//   if (code == ErrorCode::kStepTimeout) {
//     code = AwaitPause(ready, deadline, watch);
//   }

#ifndef TANDEM_TRANSPORT_SESSION_CLIENT_SIDE_INTERNAL_H_
#define TANDEM_TRANSPORT_SESSION_CLIENT_SIDE_INTERNAL_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "base/clock.h"
#include "base/grace_period.h"
#include "transport/session/client_side.h"
#include "transport/session/phase_word.h"
#include "transport/wait/waiter.h"

namespace tandem {

// Ends a long wait for reasons that the condition does not show.
class ClientSide::Watch final : public WaitWatch {
 public:
  Watch(const AttachedRegion& region, InterruptHook interrupted,
        uint64_t settled_seq, bool judges_frames,
        absl::FunctionRef<void()> on_long_wait = DoNothing)
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

// The deadline has passed: waits on if an attendant paused the engine
// meanwhile. Not inline: the wait before it then is.
template <typename Ready>
[[gnu::noinline]] ErrorCode ClientSide::AwaitPause(Ready ready,
                                                   Deadline deadline,
                                                   Watch& watch) {
  ErrorCode code = ErrorCode::kStepTimeout;
  while (code == ErrorCode::kStepTimeout && watch.Extend(&deadline)) {
    code = session_.waiter.Until(ready, deadline, watch);
  }
  return code;
}

// Refuses a second thread.
class ClientSide::InUse {
 public:
  explicit InUse(ClientSide* client)
      // SYNC(client.use): acquire; the last caller's effects before this call.
      : flag_(client->in_use_->exchange(true, std::memory_order_acquire)
                  ? nullptr
                  : client->in_use_.get()) {}
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

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_SESSION_CLIENT_SIDE_INTERNAL_H_
