// OwnerSide: what the owners of a region have in common: an engine
// (EngineSide), and the supervisor of workers (SupervisorSide).
//
// Data flow: requests of the client and of attendants -> Next of the side ->
// its caller; the owner's state -> the words that clients and observers read.
// Ownership: one thread of the owner's process. Methods that any thread may
// call say so; a signal handler may call RequestStop. docs/protocol.md is the
// specification.
//
//   case EngineEvent::kAttendants:
//     (void)owner->PollAttendants();
//     for (size_t slot = 0; slot < kAttendantSlots; ++slot) {
//       if (owner->PollAttendant(slot) != AttendantChange::kArrived) continue;
//       ... AttendantRingReader(slot), AttendantRingWriter(slot) ...
//       owner->WelcomeAttendant(slot);
//     }

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/lrbc.h"
#include "schema/layout/shared_word.h"
#include "transport/memory/owned_region.h"
#include "transport/run_snapshot.h"
#include "transport/step_arrays.h"

namespace tandem {

class RingReader;
class RingWriter;

// What has happened to a slot of an attendant.
enum class [[nodiscard]] AttendantChange : uint8_t{
    kNone,
    kArrived,  // an older attendant of this slot has left: its rings are void
    kLeft,
};

// Movable in its derived classes only, whose headers have the states. The calls
// below are legal in each state after the side's Open.
class OwnerSide {
 public:
  // Marks the engine as stopped, wakes the client, unlinks the region.
  virtual ~OwnerSide();

  // Admits the new client; an error refuses it, with that error.
  virtual void AcknowledgeAttach(const absl::Status& status) = 0;

  // Whether an exchange has come that is not held: Next will return it. A
  // supervisor has none.
  virtual bool HasExchange() const = 0;
  bool holds_exchange() const;
  void ReleaseExchange();

  // For observers: the services that answer (bits of service.h), and the number
  // of this client's messages that were dropped.
  void ShowServices(uint32_t services);
  void ShowDroppedMessages(uint64_t dropped);

  // For observers and header-only clients: the mode of simulated time; a pause,
  // from the end of a step in progress; and, while waiting, a real-time step
  // without an exchange. While an attendant pauses, the client's deadlines do
  // not run. A pause holds the workers.
  void SetMode(RegionMode mode);
  virtual void ShowPaused(bool paused, bool by_attendant = false);
  void ShowRealTimeStep(bool under_way);

  // Tags arrays().images with the exchange whose state they show. Call it
  // before Publish with frame_seq() + 1, and before Open or AcknowledgeAttach
  // with frame_seq().
  void TagImages(uint64_t frame_seq);

  // The statistics of the rewards that the client computes itself; as read
  // before, while it writes them. nullopt: the rewards are the engine's.
  std::optional<RunSnapshot> OwnRun();

  // Makes Next return kStopRequested; wakes a waiting one. Thread-safe and
  // async-signal-safe.
  void RequestStop();
  // Whether RequestStop was called. Thread-safe.
  bool StopRequested() const;

  // Makes Next return kFrameWanted; wakes a waiting one. Thread-safe; a system
  // call only if Next sleeps.
  void WakeStepThread();

  // Answers the client's request of that number: its frame is in the frame
  // ring. For one thread, which may be another one; a system call only if the
  // client sleeps.
  void AnswerFrame(uint32_t request);

  // The owner's ends of the RPC rings, for the client that attached last. Call
  // each once after each AcknowledgeAttach. After RpcRingReader, kRpcs reports
  // messages of the client, until it leaves. kBrokenPeer: the ring's positions
  // are invalid.
  absl::StatusOr<RingReader> RpcRingReader();
  absl::StatusOr<RingWriter> RpcRingWriter();
  // Whether kRpcs is due. One load.
  bool HasRpcs() const {
    // relaxed: a number that is only compared; RingReader's acquire has the
    // entries.
    return polls_rpcs_ &&
           (!polled_all_ ||
            rpcs_written_->load(std::memory_order_relaxed) != polled_rpcs_);
  }
  // The same; Next will then not return it. For use right after an exchange.
  bool PollRpcs();
  // Messages are left in the ring: makes Next and Poll return kRpcs once more,
  // after an exchange that has come meanwhile.
  void PollRpcsAgain();

  // Whether kAttendants is due. One load.
  bool AttendantsRang() const {
    // SYNC(attendant.bell): acquire; the count, then what was written before.
    return header_->attendant_bell.load(std::memory_order_acquire) !=
           attendant_bell_;
  }
  // The same, and makes it not due until an attendant writes again.
  bool PollAttendants();
  void PollAttendantsAgain();
  // What has happened to this slot. After kArrived, call
  // AttendantRingReader and -Writer once, then WelcomeAttendant.
  AttendantChange PollAttendant(size_t slot);
  absl::StatusOr<RingReader> AttendantRingReader(size_t slot);
  absl::StatusOr<RingWriter> AttendantRingWriter(size_t slot);
  void WelcomeAttendant(size_t slot);
  std::string AttendantText(size_t slot) const;
  // The client, for an attendant's error text: "the client of pid 12". Empty:
  // there is none. A client without a lock counts for kLocklessNs after its
  // last exchange.
  std::string ClientText(int64_t now_ns) const;
  static constexpr int64_t kLocklessNs = 10'000'000'000;

  // Of the client that attached last; kSameStep before the first.
  AutoresetMode autoreset_mode() const { return autoreset_mode_; }
  const StepArrays& arrays() const { return arrays_; }
  // The number of the client's last request; wraps, compare for equality only.
  uint32_t frame_request() const;
  // Exchanges completed since birth; with workers, as of the last Next or Poll.
  uint64_t frame_seq() const;
  // Its RemoveName and FramesWatched: from any thread. Its fd is for workers.
  const OwnedRegion& region() const;
  const std::shared_ptr<const RegionMapping>& mapping() const {
    return region().mapping();
  }
  // After kBrokenClient: the expected and the found values.
  const std::string& BrokenClientText() const;

 protected:
  struct State;  // owner_side_internal.h

  explicit OwnerSide(std::unique_ptr<State> state);
  OwnerSide(OwnerSide&&) noexcept;

  // The client of a held exchange has left, or another one has attached.
  virtual void DropHeldExchange() {}
  // Clears what a client wrote but did not send before it left.
  void ClearRequests();
  // After this the region is in the state that a header-only client expects.
  void ForgetClient();
  // Answers an invalid action_seq, and continues with it.
  void Resynchronise();
  // Takes the new client's autoreset mode. kUnsupported: an unknown one.
  absl::Status TakeAutoresetMode();
  // Answers the attach request. The client's exchanges follow `frame_seq`.
  void Answer(const absl::Status& status, uint64_t frame_seq);
  void SetPhase(Phase phase, int64_t now_ns);
  void CheckNameAndAttendants(int64_t now_ns);
  // A request of either kind of peers, beside steps: kAttendants, kRpcs or
  // kFrameWanted; kTimedOut: none.
  template <typename Event>
  Event TakeRequest();
  // Whether TakeRequest, or a stop, has something to return.
  bool HasCalls() const;

  std::unique_ptr<State> state_;  // nullptr: moved from
  // What a host reads in each exchange.
  LrbcHeader* header_;
  StepArrays arrays_;
  AutoresetMode autoreset_mode_ = AutoresetMode::kSameStep;
  const SharedWord<uint32_t>* rpcs_written_;  // write_pos of the client's ring
  bool polls_rpcs_ = false;
  bool polled_all_ = true;
  uint32_t polled_rpcs_ = 0;     // of write_pos, when kRpcs was said last
  uint32_t attendant_bell_ = 0;  // as seen last
};

}  // namespace tandem
