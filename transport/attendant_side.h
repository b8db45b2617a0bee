// AttendantSide: the end of an attendant, a process such as a control GUI or a
// gateway that calls an engine's RPCs in addition to the client.
//
// Data flow: RpcClient -> the slot's rings -> the engine's services.
// Ownership: one process owns it. Any thread may call it, except Close and the
// destructor. docs/protocol.md, "Attendants", is the specification.
//
//   absl::StatusOr<std::unique_ptr<AttendantSide>> panel =
//       AttendantSide::Attach("demo", {.label = "panel"});
//   absl::StatusOr<std::unique_ptr<RpcClient>> calls =
//       RpcClient::Create(panel->get(), {});

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "schema/layout/attendant_slot.h"
#include "schema/layout/lrbc.h"
#include "transport/region.h"
#include "transport/rpc_side.h"
#include "transport/wait_strategy.h"

namespace tandem {

class AttachedRegion;

// States: attached, closed. In a forked child Close and the destructor have no
// effect.
class AttendantSide final : public RpcSide {
 public:
  struct Options {
    // Shown to people: in the engine's log, and by tandem-inspect. At most
    // kMaxLabelBytes of UTF-8.
    std::string label = {};
    double timeout_secs = 10.0;  // until the engine acknowledges
    WaitStrategy wait = WaitStrategy::kBlock;
    InterruptHook interrupted = nullptr;
  };

  // Waits until an engine serves the region, and takes a free slot. Blocks.
  // Errors:
  //  - kNotReady: no engine served the region before the timeout.
  //  - kStepTimeout: the engine did not acknowledge before the timeout.
  //  - kAlreadyAttached: all slots are taken. The text names their attendants.
  //  - kUnsupported: the engine has no slots.
  //  - kInvalidArgument: the name is invalid, or the label is too long.
  //  - kLayoutMismatch, kAccessDenied, kInterrupted.
  static absl::StatusOr<std::unique_ptr<AttendantSide>> Attach(
      absl::string_view name, const Options& options);
  AttendantSide(const AttendantSide&) = delete;
  AttendantSide& operator=(const AttendantSide&) = delete;
  ~AttendantSide() override;

  // Leaves the slot: the engine ends this attendant's streams, and a pause that
  // it made. A second call has no effect.
  void Close();

  const std::string& name() const override { return name_; }
  std::string EnginePhase() const override;
  bool EngineAlive() const override;

  const LrbcHeader& plan() const;
  // The complete region; the attendant may read its constant parts.
  const std::shared_ptr<const RegionMapping>& mapping() const;

 private:
  absl::StatusOr<RingReader> RpcRingReader() override;
  absl::StatusOr<RingWriter> RpcRingWriter() override;
  ImagePlace image_place() const override;
  Waiter RpcWaiter() const override;
  void AnnounceRpcs() override;

  AttendantSide(absl::string_view name, const Options& options,
                AttachedRegion region);
  absl::Status TakeSlot();
  absl::Status Request(Deadline deadline);
  AttendantSlot* SlotAt(size_t slot) const;
  RingHeader* RingAt(size_t ring) const;

  const std::string name_;
  const Options options_;
  const uint32_t born_in_;  // ForkCount() of the owner
  const std::unique_ptr<AttachedRegion> region_;
  size_t slot_ = 0;
  uint32_t request_ = 0;  // this attendant's number
};

}  // namespace tandem
