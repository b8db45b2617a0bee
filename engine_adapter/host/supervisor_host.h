// SupervisorHost: the supervisor's side of a region with workers. It admits
// clients, answers RPCs of the client and of attendants, and publishes frames.
//
// Data flow: SupervisorSide's events -> Next -> the caller; calls -> Callers ->
// the simulation, which holds the workers in a pause. Ownership: the
// supervisor's process owns it; one thread calls it. docs/protocol.md,
// "Workers", is the specification.
//
//   auto host = SupervisorHost::Create("demo", spec);
//   ... start the workers, with (*host)->side().region().fd() ...
//   (*host)->side().ResetWorkers(std::nullopt);
//   for (;;) switch ((*host)->Next(Deadline::After(1))) {
//     case SupervisorEvent::kWorkersReady: (*host)->side().Open(); break;
//     ...
//   }

#ifndef TANDEM_ENGINE_ADAPTER_HOST_SUPERVISOR_HOST_H_
#define TANDEM_ENGINE_ADAPTER_HOST_SUPERVISOR_HOST_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "engine_adapter/core/engine.h"
#include "engine_adapter/host/callers.h"
#include "engine_adapter/host/exchange_runner.h"
#include "engine_adapter/host/simulation.h"
#include "transport/frames/frame_writer.h"
#include "transport/memory/frame_geometry.h"
#include "transport/memory/region_plan.h"
#include "transport/session/supervisor_side.h"

namespace tandem {

// Its services are those that need no port of an engine: the schema, and
// pauses. All else gets kUnsupported; so do steps and resets by RPCs, since the
// region has fields.
class SupervisorHost {
 public:
  // `spec` has workers and fields; the region gets RPC rings and slots for
  // attendants, too. Errors: those of SupervisorSide::Create.
  static absl::StatusOr<std::unique_ptr<SupervisorHost>> Create(
      absl::string_view name, RegionSpec spec);
  SupervisorHost(const SupervisorHost&) = delete;
  SupervisorHost& operator=(const SupervisorHost&) = delete;

  // As SupervisorSide::Next, but admits clients and serves all callers. It
  // returns kTimedOut for these events, also before the deadline. At
  // kFrameWanted, call PublishFrame with a frame of the current state, then
  // side().AnswerFrame.
  SupervisorEvent Next(Deadline deadline);

  // Copies a frame into the region's ring. Legal if the spec has frames of this
  // size.
  void PublishFrame(std::span<const std::byte> frame,
                    const FrameMetrics& metrics, absl::string_view metadata);

  SupervisorSide& side() { return side_; }
  const SupervisorSide& side() const { return side_; }

 private:
  class WorkersEngine final : public EngineBase {
   public:
    explicit WorkersEngine(const RegionSpec& spec);
    const EngineSchema& schema() const override { return schema_; }

   private:
    const EngineSchema schema_;
  };

  SupervisorHost(const RegionSpec& spec, SupervisorSide side);

  WorkersEngine engine_;
  SupervisorSide side_;
  ExchangeRunner runner_;  // has no work: the workers have it
  Simulation simulation_;
  Callers callers_;
  std::optional<FrameWriter> frames_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_HOST_SUPERVISOR_HOST_H_
