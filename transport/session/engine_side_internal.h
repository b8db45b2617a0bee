// What engine_side.cc and engine_side_workers.cc share: how an EngineSide
// waits, and what it knows of its workers.
//
// Data flow of Supervision: a cause (a new client, a client that left, an
// invalid count, a pause, a message) -> the workers are held -> what the cause
// requires -> they go on.
// Ownership: an EngineSide with workers has one Supervision; only its thread
// uses it. Each wait of an EngineSide makes a Watch on its stack.
//
//   supervision_->messages = true;  // a cause
//   AdvanceWorkers();               // orders kHold
//   ... until all have acknowledged ...
//   AdvanceWorkers();               // orders kMessage, and so on

#ifndef TANDEM_TRANSPORT_SESSION_ENGINE_SIDE_INTERNAL_H_
#define TANDEM_TRANSPORT_SESSION_ENGINE_SIDE_INTERNAL_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "transport/memory/owned_region.h"
#include "transport/session/engine_side.h"
#include "transport/session/engine_workers.h"
#include "transport/session/phase_word.h"
#include "transport/wait/waiter.h"

namespace tandem {

// Ends a long wait for reasons that the condition does not show: a client that
// died, or a client with an invalid action_seq.
class EngineSide::Watch final : public WaitWatch {
 public:
  explicit Watch(EngineSide* side) : side_(side) {}

  ErrorCode Check(int64_t now_ns, bool interrupted) override {
    event_ = side_->PollPeer(now_ns);
    if (event_ == EngineEvent::kTimedOut && interrupted) {
      event_ = EngineEvent::kInterrupted;
    }
    // The supervisor then waits in another way.
    if (side_->IsHot(now_ns)) return ErrorCode::kInterrupted;
    return event_ == EngineEvent::kTimedOut ? ErrorCode::kOk
                                            : ErrorCode::kInterrupted;
  }

  EngineEvent event() const { return event_; }

 private:
  EngineSide* side_;
  EngineEvent event_ = EngineEvent::kTimedOut;  // nothing to report
};

// Inline: each exchange calls it twice.
[[gnu::always_inline]] inline void EngineSide::SetPhase(Phase phase,
                                                        int64_t now_ns) {
  if (phase_ == Phase::kPausedByAttendant) CountAttendantPause(now_ns);
  phase_ = phase;
  phase_since_ns_ = now_ns;
  // SYNC(attendant.pause): release; the pauses before this phase. Otherwise it
  // is for display only.
  header_->engine_phase.store(PackPhase(phase, now_ns),
                              std::memory_order_release);
}

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
struct EngineSide::Supervision {
  enum class Stage : uint8_t {
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
  enum class Cause : uint8_t {
    kNone,
    kOpening,
    kArrival,
    kDeparture,
    kBrokenCount,
    kPause,
    kMessage,
  };

  explicit Supervision(const OwnedRegion& region) : workers(region) {}

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

  EngineWorkers workers;
  Stage stage = Stage::kHeld;
  Cause cause = Cause::kNone;
  EngineEvent news = EngineEvent::kTimedOut;  // that Next returns
  std::optional<uint32_t> dead = {};          // for kWorkerDied
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

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_SESSION_ENGINE_SIDE_INTERNAL_H_
