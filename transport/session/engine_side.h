// EngineSide: the engine's end of the lock-step protocol.
//
// Length: each event and each call of the engine's loop, with its contract.
//
// Data flow: client's actions -> Next() returns kExchange -> the caller resets
// and steps -> Publish() -> the client's recv returns.
// Ownership: one thread of the engine process. Methods that any thread may call
// say so; a signal handler may call RequestStop. docs/protocol.md is the
// specification.
//
//   absl::StatusOr<EngineSide> side = EngineSide::Create("demo", spec, {});
//   ... write first observations to side->arrays() ...
//   absl::Status open = side->Open();
//   for (;;) switch (side->Next(Deadline::Infinite())) {
//     case EngineEvent::kExchange: Advance(*side); side->Publish(); break;
//     case EngineEvent::kClientArrived:
//       side->AcknowledgeAttach(ResetAll());
//       break;
//     case EngineEvent::kClientLeft: ResetAll(); break;
//     case EngineEvent::kStopRequested: return;
//     ...
//   }
//
// In a region with workers (WorkerSide), the caller is the supervisor, and the
// workers do the exchanges and all resets:
//
//   ... start the workers, with side->region().fd() ...
//   side->ResetWorkers(seed);
//   ... side->Next(...) until kWorkersReady ...
//   absl::Status open = side->Open();
//   for (;;) switch (side->Next(Deadline::After(1))) {
//     case EngineEvent::kClientArrived:
//       side->AcknowledgeAttach(absl::OkStatus());
//       break;
//     case EngineEvent::kWorkerDied:
//       side->End(ErrorCode::kEngineFailed,
//                 side->WorkerText(side->dead_worker()));
//       return;
//     ...
//   }

#ifndef TANDEM_TRANSPORT_SESSION_ENGINE_SIDE_H_
#define TANDEM_TRANSPORT_SESSION_ENGINE_SIDE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/grace_period.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/lrbc.h"
#include "transport/memory/owned_region.h"
#include "transport/memory/region_mapping.h"
#include "transport/memory/region_plan.h"
#include "transport/ring/ring.h"
#include "transport/session/engine_attendants.h"
#include "transport/session/step_arrays.h"
#include "transport/wait/doorbell.h"
#include "transport/wait/wait_strategy.h"
#include "transport/wait/waiter.h"

namespace tandem {

enum class [[nodiscard]] EngineEvent : uint8_t{
    kExchange,       // act on kind(), arrays(), then Publish
    kClientArrived,  // reset everything, then AcknowledgeAttach
    kClientLeft,     // reset everything. Also if the next client was refused
    kFrameWanted,    // a client or WakeStepThread asks: read frame_request()
    kRpcs,           // the client has written into its RPC ring; or, after
                     // PollRpcsAgain, something may be left in it
    kAttendants,     // an attendant has written, or may have left: call
                     // PollAttendant for each slot, then read its ring
    kBrokenClient,   // action_seq was invalid; it was resynchronised, and the
                     // client gets an error. BrokenClientText() has the values
    kTimedOut,       // the deadline passed
    kInterrupted,    // a signal handler ran; check your flags, call again
    kStopRequested,  // each later Next returns it, too
    // Only with workers:
    kWorkersReady,     // each has carried out ResetWorkers
    kWorkersAnswered,  // each has acknowledged MessageWorkers
    kWorkerDied,       // dead_worker(): End, or ReplaceWorker and start another
    kInput,            // the descriptor of WatchInput is readable
};

// Move-only. States and legal calls:
//
//  state      entered by                legal calls
//  prepared   Create                    arrays, Open
//  waiting    Open, Publish,            Next, Poll
//             AcknowledgeAttach, others
//  exchange   kExchange                 kind, arrays, Publish, Fail,
//                                       HoldExchange
//  arrival    kClientArrived            autoreset_mode, arrays,
//                                       AcknowledgeAttach
//
// With workers: Next is legal while prepared, too; there is no exchange, no
// other call hands results to the client, and arrays() belong to the workers.
// In arrival, and at kClientLeft, the workers have reset already. Images are
// not supported.
class EngineSide {
 public:
  struct Options {
    RegionOptions region;
    WaitStrategy wait = WaitStrategy::kAdaptive;
  };

  // Errors: those of OwnedRegion::Create.
  static absl::StatusOr<EngineSide> Create(absl::string_view name,
                                           const RegionSpec& spec,
                                           const Options& options);
  EngineSide(EngineSide&&) noexcept;
  EngineSide& operator=(EngineSide&&) = delete;
  // Marks the engine as stopped, wakes the client, unlinks the region.
  ~EngineSide();

  // Gives the region its name: clients may come. Errors: OwnedRegion::Link.
  absl::Status Open();

  // Waits for the next event. Allocates for kBrokenClient, and for a client
  // that requests an unknown mode; otherwise not.
  EngineEvent Next(Deadline deadline);

  // The non-blocking form, for an engine that owns its loop: polls once and
  // returns kTimedOut if there is nothing. A system call every few milliseconds
  // at most.
  EngineEvent Poll();

  // The supervisor's calls, of regions with workers.
  //
  // Orders all workers to reset their environments; environment i gets the seed
  // `*first_seed + i`. Legal once, while prepared.
  void ResetWorkers(std::optional<uint64_t> first_seed);
  // Orders all workers to read a message of the caller's, between two
  // exchanges.
  void MessageWorkers();
  // Legal after kWorkersAnswered. Returns the number of exchanges and lanes
  // that had ended when the workers read that message. Without lanes this is
  // frame_seq.
  uint64_t answered_at() const;
  // Orders all workers to end. No other order follows. The caller awaits the
  // ends of their processes. Without effect while an order is not acknowledged;
  // then the workers end with this object.
  void StopWorkers();
  uint32_t dead_worker() const;
  // The process of this worker has ended: makes its slot free for another,
  // which continues where it stopped. Call it before the other process starts.
  // False: a process still has the slot.
  bool ReplaceWorker(uint32_t worker);
  // Steps of environments since birth, for display: an exchange counts for all
  // environments, also those that it resets or skips.
  uint64_t worker_steps() const;
  // "worker 2 (pid 4711, environments 4 to 7), stepping environment 5 for 1.20
  // s", for people.
  std::string WorkerText(uint32_t worker) const;
  // Makes Next return kInput while `fd`, such as an epoll(7) descriptor, is
  // readable; -1: none. The caller closes it, after another WatchInput. Next
  // looks at least every 10 ms, at once within 20 ms after an exchange, and
  // when a process rings the engine's doorbell: ClientSide::WakeEngine.
  void WatchInput(int fd);
  // Tells the client why the region will end: its error then has this text. The
  // destructor removes the region.
  void End(ErrorCode code, absl::string_view text);

  // Hands the exchange's results, in arrays(), to the client. Clears the reset
  // flags. One system call if the client sleeps, none otherwise.
  void Publish() { Complete(ErrorCode::kOk, ""); }

  // As Publish, but the client's recv gets `code` and `text`, of which it sees
  // the first 239 bytes.
  void Fail(ErrorCode code, absl::string_view text) { Complete(code, text); }

  // Puts the exchange off: Next returns kExchange again only after
  // ReleaseExchange. Legal in exchange; leads to waiting. If the client leaves
  // meanwhile, the exchange is answered with kUnsupported, without a step.
  void HoldExchange();
  void ReleaseExchange() { holds_ = false; }
  bool holds_exchange() const { return holds_; }
  // Whether an exchange has come that is not held: Next will return it.
  bool HasExchange() const;

  // For observers: the services that answer (bits of service.h), and the number
  // of this client's messages that were dropped.
  void ShowServices(uint32_t services);
  void ShowDroppedMessages(uint64_t dropped);

  // For observers and header-only clients: the mode of simulated time; a pause,
  // from the end of a step in progress; and, while waiting, a real-time step
  // without an exchange. While an attendant pauses, the client's deadlines do
  // not run. A pause holds the workers.
  void SetMode(RegionMode mode);
  void ShowPaused(bool paused, bool by_attendant = false);
  void ShowRealTimeStep(bool under_way);

  // Tags arrays().images with the exchange whose state they show. Call it
  // before Publish with frame_seq() + 1, and before Open or AcknowledgeAttach
  // with frame_seq().
  void TagImages(uint64_t frame_seq);

  // Admits the new client; an error refuses it, with that error.
  void AcknowledgeAttach(const absl::Status& status);

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

  // The engine's ends of the RPC rings, for the client that attached last. Call
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
           (!polled_all_ || to_engine_->write_pos.load(
                                std::memory_order_relaxed) != polled_pos_);
  }
  // The same; Next will then not return it. For use right after an exchange.
  bool PollRpcs();
  // Messages are left in the ring: makes Next and Poll return kRpcs once more,
  // after an exchange that has come meanwhile.
  void PollRpcsAgain() { polled_all_ = false; }

  // Whether kAttendants is due. One load.
  bool AttendantsRang() const { return attendants_.Rang(); }
  // The same, and makes it not due until an attendant writes again.
  bool PollAttendants();
  void PollAttendantsAgain() { attendants_.LookAgain(); }
  // What has happened to this slot. After kArrived, call
  // AttendantRingReader and -Writer once, then WelcomeAttendant.
  AttendantChange PollAttendant(size_t slot);
  absl::StatusOr<RingReader> AttendantRingReader(size_t slot) {
    return attendants_.RpcReader(slot);
  }
  absl::StatusOr<RingWriter> AttendantRingWriter(size_t slot) {
    return attendants_.RpcWriter(slot);
  }
  void WelcomeAttendant(size_t slot) { attendants_.Welcome(slot); }
  std::string AttendantText(size_t slot) const {
    return attendants_.TextOf(slot);
  }
  // The client, for an attendant's error text: "the client of pid 12". Empty:
  // there is none. A client without a lock counts for kLocklessNs after its
  // last exchange.
  std::string ClientText(int64_t now_ns) const;
  static constexpr int64_t kLocklessNs = 10'000'000'000;

  // The kind of the exchange.
  ExchangeKind kind() const { return kind_; }
  // Of the client that attached last; kSameStep before the first.
  AutoresetMode autoreset_mode() const { return autoreset_mode_; }
  const StepArrays& arrays() const { return arrays_; }
  // The number of the client's last request; wraps, compare for equality only.
  uint32_t frame_request() const { return frame_request_; }
  // Exchanges completed since birth; with workers, as of the last Next or Poll.
  uint64_t frame_seq() const { return frame_seq_; }
  // Its RemoveName and FramesWatched: from any thread. Its fd is for workers.
  const OwnedRegion& region() const { return region_; }
  const std::shared_ptr<const RegionMapping>& mapping() const {
    return region_.mapping();
  }
  const std::string& BrokenClientText() const { return broken_text_; }

 private:
  class Watch;
  struct Supervision;  // engine_side_internal.h

  EngineSide(OwnedRegion region, WaitStrategy wait);
  bool Ready() const;
  bool HasRequest() const;
  void DropHeldExchange();
  EngineEvent Take(int64_t seen_at_ns);
  EngineEvent TakeRequest();
  EngineEvent PollPeer(int64_t now_ns);
  EngineEvent PollPeerNowAndThen();
  EngineEvent Deliver(EngineEvent event);
  void Complete(ErrorCode code, absl::string_view text);
  void ClearRequests();
  void ForgetClient();
  void Resynchronise();
  static absl::Status UnknownMode(AutoresetMode mode);
  void RestoreNameNowAndThen(int64_t now_ns);
  void SetStatus(ErrorCode code, absl::string_view text);
  void SetPhase(Phase phase, int64_t now_ns);
  // Adds an attendant's pause that ends now.
  void CountAttendantPause(int64_t now_ns);

  // With workers.
  bool SupervisorReady() const;
  EngineEvent NextOfSupervisor(Deadline deadline);
  EngineEvent TakeOfSupervisor();
  bool IsHot(int64_t now_ns) const;
  bool InputIsReadable() const;
  void PollWorkers(int64_t now_ns);
  void TestLocksNowAndThen(int64_t now_ns);
  bool CountIsBroken();
  void AdvanceWorkers();
  bool BeginStage();
  void EndStage();
  void WorkersAreHeld();
  void WorkersAreReset();
  void LetWorkersGo();

  static constexpr int64_t kPollPeerNs = 5'000'000;
  static constexpr int64_t kRestoreNameNs = 100'000'000;
  // How long a writer may show invalid values before they count.
  static constexpr int64_t kGraceNs = 100'000'000;

  OwnedRegion region_;
  LrbcHeader* header_;
  StepArrays arrays_;
  Waiter waiter_;
  Doorbell own_bell_;
  Doorbell client_bell_;

  // The RPC rings, as planned; the peer can change the region's copy.
  RingHeader* const to_client_;
  RingHeader* const to_engine_;
  const uint32_t ring_bytes_;
  const bool has_frames_;

  // Private truth: the region's copies can be scribbled over by the peer.
  uint64_t frame_seq_ = 0;
  uint32_t acknowledged_ = 0;  // the attach_request answered last
  uint32_t put_off_ = 0;       // as it was when the last exchange was taken
  uint32_t arriving_ = 0;      // the one being answered
  ExchangeKind kind_ = ExchangeKind::kStep;
  AutoresetMode autoreset_mode_ = AutoresetMode::kSameStep;
  uint32_t frame_request_ = 0;
  Phase phase_ = Phase::kResetting;
  bool has_client_ = false;
  bool holds_ = false;         // there is a held exchange
  Phase idle_ = Phase::kIdle;  // between steps
  int64_t phase_since_ns_ = 0;
  uint64_t attendant_pause_ns_ = 0;  // as the region's
  EngineAttendants attendants_;
  bool just_polled_attendants_ = false;
  bool polls_rpcs_ = false;
  bool polled_all_ = true;
  uint32_t polled_pos_ = 0;  // of write_pos, when kRpcs was said last
  std::string broken_text_;
  std::unique_ptr<Supervision> supervision_;  // nullptr: no workers

  int64_t taken_at_ns_ = 0;
  int64_t polled_peer_ns_ = 0;
  int64_t name_checked_ns_ = 0;
  GracePeriod count_grace_{kGraceNs};  // whether action_seq makes sense

  // Of kAsked*. Writers: any thread or signal handler set bits, the engine's
  // thread clears that of WakeStepThread; reader: the engine's thread. On the
  // heap, so that a handler's pointer outlives a move.
  std::unique_ptr<std::atomic<uint32_t>> asked_;
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_SESSION_ENGINE_SIDE_H_
