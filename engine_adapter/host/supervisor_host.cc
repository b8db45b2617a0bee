#include "engine_adapter/host/supervisor_host.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "base/error.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

SupervisorHost::WorkersEngine::WorkersEngine(const RegionSpec& spec)
    : schema_{.task = spec.task,
              .num_envs = spec.num_envs,
              .obs_size = spec.obs_size,
              .act_size = spec.act_size,
              .fields = spec.fields} {}

absl::StatusOr<std::unique_ptr<SupervisorHost>> SupervisorHost::Create(
    absl::string_view name, RegionSpec spec) {
  spec.commands = true;
  spec.attendants = true;
  TANDEM_ASSIGN_OR_RETURN(auto side, SupervisorSide::Create(name, spec, {}));
  std::unique_ptr<SupervisorHost> host(
      new SupervisorHost(spec, std::move(side)));
  const auto& region = host->side_.region();
  if (!region.frame_ring().empty()) {
    TANDEM_ASSIGN_OR_RETURN(
        host->frames_,
        FrameWriter::Create(region.frame_ring(), region.frame_geometry()));
  }
  return host;
}

SupervisorHost::SupervisorHost(const RegionSpec& spec, SupervisorSide side)
    : engine_(spec),
      side_(std::move(side)),
      runner_(&side_.arrays()),
      simulation_(&engine_, &side_, &runner_, rpc::SimulationMode::FAST, [] {}),
      callers_({}, &engine_, &simulation_, &side_, [](absl::string_view) {}) {}

SupervisorEvent SupervisorHost::Next(Deadline deadline) {
  if (const auto due_ns = callers_.DueNs()) {
    deadline = Deadline::At(std::min(deadline.at_ns(), *due_ns));
  }
  const SupervisorEvent event = side_.Next(deadline);
  switch (event) {
    case SupervisorEvent::kClientArrived:
      // Before the new client is admitted: a pause of the last one ends, which
      // would hold the workers.
      callers_.ClientLeft();
      simulation_.Restart();
      side_.AcknowledgeAttach(absl::OkStatus());
      callers_.ClientArrived();
      return SupervisorEvent::kTimedOut;
    case SupervisorEvent::kClientLeft:
      callers_.ClientLeft();
      simulation_.Restart();
      return event;
    case SupervisorEvent::kAttendants:
      callers_.ServeAttendants();
      return SupervisorEvent::kTimedOut;
    case SupervisorEvent::kRpcs:
      callers_.Serve();
      return SupervisorEvent::kTimedOut;
    default:
      if (!callers_.IsQuiet()) callers_.Serve();
      return event;
  }
}

void SupervisorHost::PublishFrame(std::span<const std::byte> frame,
                                  const FrameMetrics& metrics,
                                  absl::string_view metadata) {
  // 0 for a frame that is larger than the ring's, which the caller excludes.
  (void)frames_->Publish(frame, metrics, metadata);
}

}  // namespace tandem
