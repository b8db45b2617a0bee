// SupervisorSide: the owner of a region whose environments are simulated by
// worker processes (WorkerSide).
//
// Data flow: a cause (a new client, a client that left, an invalid count, a
// pause, a message) -> the workers are held -> what the cause requires -> they
// go on. The workers do the exchanges and all resets.
// Ownership: one thread of the supervisor's process. Methods that any thread
// may call say so (owner_side.h). docs/protocol.md, "Workers", is the
// specification.
//
//   auto side = SupervisorSide::Create("demo", spec, {});
//   ... start the workers, with side->region().memory().handle() ...
//   side->ResetWorkers(seed);
//   ... side->Next(...) until kWorkersReady ...
//   absl::Status open = side->Open();
//   for (;;) switch (side->Next(Deadline::After(1))) {
//     case SupervisorEvent::kClientArrived:
//       side->AcknowledgeAttach(absl::OkStatus());
//       break;
//     case SupervisorEvent::kWorkerDied:
//       side->End(ErrorCode::kEngineFailed,
//                 side->WorkerText(side->dead_worker()));
//       return;
//     ...
//   }

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "schema/layout/error_codes.h"
#include "transport/memory/owned_region.h"
#include "transport/memory/region_plan.h"
#include "transport/session/owner_side.h"
#include "transport/worker_side.h"

namespace tandem {

// Move-only. States and legal calls, beside those of OwnerSide:
//
//  state      entered by                legal calls
//  prepared   Create                    ResetWorkers once, Next until
//                                       kWorkersReady, then Open
//  waiting    Open, AcknowledgeAttach,  all but ResetWorkers, Open,
//             other events              AcknowledgeAttach
//  arrival    kClientArrived            the same, and AcknowledgeAttach
//  stopped    StopWorkers               Next, WorkerText, End
//
// No call hands results to the client, and arrays() belong to the workers.
// Images are not supported.
class SupervisorSide final : public OwnerSide {
 public:
  // `spec` has workers. Errors: those of OwnedRegion::Create.
  static absl::StatusOr<SupervisorSide> Create(absl::string_view name,
                                               const RegionSpec& spec,
                                               const RegionOptions& options);
  SupervisorSide(SupervisorSide&&) noexcept;
  SupervisorSide& operator=(SupervisorSide&&) = delete;
  ~SupervisorSide() override;

  // Orders all workers to reset their environments; environment i gets the seed
  // `*first_seed + i`.
  void ResetWorkers(std::optional<uint64_t> first_seed);

  // Gives the region its name: clients may come. Errors: OwnedRegion::Link.
  absl::Status Open();

  // Waits for the next event. Allocates for kBrokenClient, and for a client
  // that requests an unknown mode; otherwise not.
  SupervisorEvent Next(Deadline deadline);

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
  // "worker 2 (pid 4711, environments 4 to 7), stepping environment 5 for 1.20
  // s", for people.
  std::string WorkerText(uint32_t worker) const;
  // Tells the client why the region will end: its error then has this text. The
  // destructor removes the region.
  void End(ErrorCode code, absl::string_view text);

  // Steps of environments since birth, for display: an exchange counts for all
  // environments, also those that it resets or skips.
  uint64_t worker_steps() const;

  // Makes Next return kInput while `fd`, such as an epoll(7) descriptor, is
  // readable; -1: none. The caller closes it, after another WatchInput. Next
  // looks at least every 10 ms, at once within 20 ms after an exchange, and
  // when a process rings the engine's doorbell: ClientSide::WakeEngine.
  void WatchInput(int fd);

  void AcknowledgeAttach(const absl::Status& status) override;
  // Holds the workers, or lets them go.
  void ShowPaused(bool paused, bool by_attendant = false) override;
  bool HasExchange() const override { return false; }

 private:
  class Watch;
  enum class Stage : uint8_t;
  enum class Cause : uint8_t;
  struct Workers;  // what it knows of them

  explicit SupervisorSide(std::unique_ptr<State> state);
  bool Ready() const;
  bool HasNews() const;
  SupervisorEvent Take();
  bool IsHot(int64_t now_ns) const;
  bool InputIsReadable() const;
  void Poll(int64_t now_ns);
  SupervisorEvent PollNowAndThen();
  void TestLocksNowAndThen(int64_t now_ns);
  bool CountIsBroken();
  void Advance();
  bool BeginStage();
  void EndStage();
  void WorkersAreHeld();
  void WorkersAreReset();
  void LetWorkersGo();

  std::unique_ptr<Workers> workers_;
};

}  // namespace tandem
