// TelemetryService: positions and controls of an engine, moment by moment.
//
// Data flow: a door's request -> TelemetryService -> MujocoPort -> frames.
// Ownership: the host's; the thread that steps calls, between exchanges. It
// knows nothing of the door.
//
//   TelemetryService service(engine->ports().mujoco, &simulation, num_envs);
//   absl::StatusOr<RpcStream> stream = service.StreamTelemetry(request);

#ifndef TANDEM_ENGINE_ADAPTER_SERVICES_TELEMETRY_SERVICE_H_
#define TANDEM_ENGINE_ADAPTER_SERVICES_TELEMETRY_SERVICE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "engine_adapter/ports/mujoco_port.h"
#include "engine_adapter/ports/simulation_port.h"
#include "engine_adapter/rpc/rpc_answer.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// All methods allocate; none blocks.
class TelemetryService {
 public:
  // Both ports outlive this.
  TelemetryService(const MujocoPort* port, const SimulationPort* simulation,
                   uint32_t num_envs)
      : port_(port), simulation_(simulation), num_envs_(num_envs) {}

  absl::StatusOr<rpc::GetTelemetrySchemaResponseT> GetTelemetrySchema(
      const rpc::GetTelemetrySchemaRequestT& request) const;

  // Each new moment gives a TelemetryFrame for each of the environments, in
  // their order, all with the same numbers and time. kInvalidArgument for an
  // environment that is not there.
  absl::StatusOr<RpcStream> StreamTelemetry(
      const rpc::StreamTelemetryRequestT& request) const;

 private:
  std::vector<rpc::PayloadUnion> FramesOf(const std::vector<uint32_t>& envs,
                                          uint32_t number) const;

  const MujocoPort* port_;
  const SimulationPort* simulation_;
  uint32_t num_envs_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_SERVICES_TELEMETRY_SERVICE_H_
