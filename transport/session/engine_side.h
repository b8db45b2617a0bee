// EngineSide: the engine's end of the lock-step protocol.
//
// Data flow: client's actions -> Next() says kExchange -> the caller resets and
// steps -> Publish() -> the client's recv returns.
// Ownership: one thread of the engine process calls, but for what says that any
// thread may; RequestStop may also come from a signal handler. docs/protocol.md
// is the specification.
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

#ifndef TANDEM_TRANSPORT_SESSION_ENGINE_SIDE_H_
#define TANDEM_TRANSPORT_SESSION_ENGINE_SIDE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/lrbc.h"
#include "transport/base/clock.h"
#include "transport/base/grace_period.h"
#include "transport/memory/owned_region.h"
#include "transport/memory/region_mapping.h"
#include "transport/memory/region_plan.h"
#include "transport/ring/ring.h"
#include "transport/session/step_arrays.h"
#include "transport/wait/doorbell.h"
#include "transport/wait/wait_strategy.h"
#include "transport/wait/waiter.h"

namespace tandem {

enum class [[nodiscard]] EngineEvent : uint8_t{
    kExchange,       // act on kind(), arrays(), then Publish
    kClientArrived,  // reset everything, then AcknowledgeAttach
    kClientLeft,     // reset everything
    kFrameWanted,    // a client or WakeStepThread asks: read frame_request()
    kRpcs,           // the client has written into its RPC ring; or, after
                     // PollRpcsAgain, something may be left in it
    kBrokenClient,   // action_seq was invalid; it was resynchronised, and the
                     // client gets an error. BrokenClientText() has the values
    kTimedOut,       // the deadline passed
    kInterrupted,    // a signal handler ran; check your flags, call again
    kStopRequested,  // from now on every Next says so
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
  // Says that the engine stopped, wakes the client, unlinks the region.
  ~EngineSide();

  // Gives the region its name: clients may come. Errors: OwnedRegion::Link.
  absl::Status Open();

  // Waits for the next thing to do. Does not allocate, but for
  // kBrokenClient and a client that asks for what there is not.
  EngineEvent Next(Deadline deadline);

  // The non-blocking form, for an engine that owns its loop: polls once and
  // returns kTimedOut if there is nothing. A system call every few milliseconds
  // at most.
  EngineEvent Poll();

  // The exchange's results are in arrays(): hands them to the client. Clears
  // the reset flags. One system call if the client sleeps, none otherwise.
  void Publish() { Complete(ErrorCode::kOk, ""); }

  // As Publish, but the client's recv gets `code` and `text`, of which it sees
  // the first 239 bytes.
  void Fail(ErrorCode code, absl::string_view text) { Complete(code, text); }

  // Puts the exchange off: Next says nothing of it before ReleaseExchange, then
  // says kExchange again. Legal in exchange; back to waiting. One that is held
  // when its client leaves is answered with kUnsupported, and nothing of it is
  // done.
  void HoldExchange();
  void ReleaseExchange() { holds_ = false; }
  bool holds_exchange() const { return holds_; }
  // Whether one has come that is not held, and Next is about to say so.
  bool HasExchange() const;

  // Shows which services answer (bits of service.h), and how many messages of
  // this client were dropped; to observers.
  void ShowServices(uint32_t services);
  void ShowDroppedMessages(uint64_t dropped);

  // Shows how simulated time goes, to observers and to header-only clients;
  // and, while waiting, that it stands still, or that a step is made which no
  // exchange asked for.
  void SetMode(RegionMode mode);
  void ShowPaused(bool paused);
  void ShowRealTimeStep(bool under_way);

  // Says in the region that arrays().images show the state of exchange
  // `frame_seq`; before what hands them to the client: Publish, with
  // frame_seq() + 1, or Open or AcknowledgeAttach, with frame_seq().
  void TagImages(uint64_t frame_seq);

  // Lets the new client in. With an error it is refused with that error.
  void AcknowledgeAttach(const absl::Status& status);

  // Makes Next return kStopRequested, soon also one that waits. Thread-safe and
  // async-signal-safe.
  void RequestStop();

  // Makes Next return kFrameWanted, soon also one that waits. Thread-safe; a
  // system call only if Next sleeps.
  void WakeStepThread();

  // The client's request of that number is met: the frame that it asked for is
  // in the ring. For one thread, whichever; a system call only if the client
  // sleeps.
  void AnswerFrame(uint32_t request);

  // The RPC rings of the client that was welcomed last; it writes into one
  // and reads the other. Call each once after each AcknowledgeAttach: from
  // RpcRingReader on, kRpcs reports what the client writes, until it leaves.
  // kBrokenPeer: the client has corrupted the ring already.
  absl::StatusOr<RingReader> RpcRingReader();
  absl::StatusOr<RingWriter> RpcRingWriter();
  // Whether kRpcs is due, which is then not said: for between an exchange
  // and the next. One load.
  bool PollRpcs();
  // Not all commands were read: makes Next and Poll say kRpcs once more,
  // behind an exchange that has come meanwhile.
  void PollRpcsAgain() { polled_all_ = false; }

  // Of the exchange: what is asked for.
  ExchangeKind kind() const { return kind_; }
  // Of the client that arrived last; kSameStep when none has.
  AutoresetMode autoreset_mode() const { return autoreset_mode_; }
  const StepArrays& arrays() const { return arrays_; }
  // Which frame the client asked for last; wraps, compared for equality only.
  uint32_t frame_request() const { return frame_request_; }
  // Exchanges completed since birth.
  uint64_t frame_seq() const { return frame_seq_; }
  // Its RemoveName and FramesWatched: from any thread.
  const OwnedRegion& region() const { return region_; }
  const std::shared_ptr<const RegionMapping>& mapping() const {
    return region_.mapping();
  }
  const std::string& BrokenClientText() const { return broken_text_; }

 private:
  class Watch;

  EngineSide(OwnedRegion region, WaitStrategy wait);
  bool Ready() const;
  void DropHeldExchange();
  bool HasRpcs() const;
  std::span<std::byte> RpcRingData(uint64_t ring_offset);
  EngineEvent Take(int64_t seen_at_ns);
  EngineEvent TakeRequest();
  EngineEvent PollPeer(int64_t now_ns);
  EngineEvent PollPeerNowAndThen();
  EngineEvent Deliver(EngineEvent event);
  void Complete(ErrorCode code, absl::string_view text);
  void ClearRequests();
  void ForgetClient();
  void Resynchronise();
  void RestoreNameNowAndThen(int64_t now_ns);
  void SetStatus(ErrorCode code, absl::string_view text);
  void SetPhase(Phase phase, int64_t now_ns);
  // While no step is made.
  Phase Idle() const { return paused_ ? Phase::kPaused : Phase::kIdle; }

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

  // Of both RPC rings; the engine's own copies.
  const uint64_t to_client_offset_;
  const uint64_t to_engine_offset_;
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
  bool has_client_ = false;
  bool holds_ = false;  // an exchange that was taken and put off
  bool paused_ = false;
  bool polls_rpcs_ = false;
  bool polled_all_ = true;
  uint32_t polled_pos_ = 0;  // of write_pos, when kRpcs was said last
  std::string broken_text_;

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
