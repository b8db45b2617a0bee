// DebugService: lines and arrows in an environment's pictures.
//
// Data flow: request -> DebugPort -> response.
// Ownership: the host's; the thread that steps calls, between exchanges. Knows
// nothing of rings: another door can call the same function.
//
//   DebugService debug(ports.debug, &simulation, schema.num_envs);
//   auto response = debug.Draw(request);

#ifndef TANDEM_ENGINE_ADAPTER_SERVICES_DEBUG_SERVICE_H_
#define TANDEM_ENGINE_ADAPTER_SERVICES_DEBUG_SERVICE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine_adapter/ports/debug_port.h"
#include "engine_adapter/ports/simulation_port.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

class DebugService {
 public:
  // Both outlive it.
  DebugService(DebugPort* port, SimulationPort* simulation, uint32_t num_envs)
      : port_(port), simulation_(simulation), num_envs_(num_envs) {}

  // DebugPort's errors, and kInvalidArgument for an environment that is not
  // there; nothing has changed then.
  absl::StatusOr<rpc::DebugDrawResponseT> Draw(
      const rpc::DebugDrawRequestT& request);

 private:
  DebugPort* port_;
  SimulationPort* simulation_;
  uint32_t num_envs_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_SERVICES_DEBUG_SERVICE_H_
