// EngineSide: the engine's end of the lock-step protocol.
//
// Data flow: client's actions -> Next() returns kExchange -> the caller resets
// and steps -> Publish() -> the client's recv returns.
// Ownership: one thread of the engine process. Methods that any thread may call
// say so (owner_side.h). docs/protocol.md is the specification.
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

#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/lrbc.h"
#include "transport/memory/owned_region.h"
#include "transport/session/owner_side.h"
#include "transport/wait_strategy.h"

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
};

// Move-only. States and legal calls, beside those of OwnerSide:
//
//  state      entered by                legal calls
//  prepared   Create                    arrays, Open
//  waiting    Open, Publish,            Next, Poll
//             AcknowledgeAttach, others
//  exchange   kExchange                 kind, arrays, Publish, Fail,
//                                       HoldExchange
//  arrival    kClientArrived            autoreset_mode, arrays,
//                                       AcknowledgeAttach
class EngineSide final : public OwnerSide {
 public:
  struct Options {
    RegionOptions region;
    WaitStrategy wait = WaitStrategy::kAdaptive;
    bool wakes_early = false;  // before a request that it forecasts
  };

  // `spec` has no workers. Errors: those of OwnedRegion::Create.
  static absl::StatusOr<EngineSide> Create(absl::string_view name,
                                           const RegionSpec& spec,
                                           const Options& options);
  EngineSide(EngineSide&&) noexcept = default;
  EngineSide& operator=(EngineSide&&) = delete;

  // Gives the region its name: clients may come. Errors: OwnedRegion::Link.
  absl::Status Open();

  // Waits for the next event. Allocates for kBrokenClient, and for a client
  // that requests an unknown mode; otherwise not.
  EngineEvent Next(Deadline deadline);

  // The non-blocking form, for an engine that owns its loop: polls once and
  // returns kTimedOut if there is nothing. A system call every few milliseconds
  // at most.
  EngineEvent Poll();

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
  bool HasExchange() const override;

  void AcknowledgeAttach(const absl::Status& status) override;

  // The kind of the exchange.
  ExchangeKind kind() const { return kind_; }

 private:
  class Watch;

  explicit EngineSide(std::unique_ptr<State> state);
  bool Ready() const { return HasExchange() || HasRequest(); }
  bool HasRequest() const;
  void DropHeldExchange() override;
  EngineEvent Take(int64_t seen_at_ns);
  EngineEvent PollPeer(int64_t now_ns);
  EngineEvent PollPeerNowAndThen();
  EngineEvent Deliver(EngineEvent event);
  void Complete(ErrorCode code, absl::string_view text);

  ExchangeKind kind_ = ExchangeKind::kStep;
  uint32_t put_off_ = 0;  // attach_request when the last exchange was taken
};

}  // namespace tandem
