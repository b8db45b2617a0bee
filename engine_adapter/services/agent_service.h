// AgentService: what agents observe and do, and resets with a contract.
//
// Data flow: request -> RandomizationPort, SimulationPort -> response.
// Ownership: the host's; the stepping thread calls, between exchanges. It does
// not depend on the RPC rings.
//
//   AgentService agent(engine->schema(), engine->ports().randomization,
//                      simulation);
//   auto response = agent.ResetAgent(request);

#ifndef TANDEM_ENGINE_ADAPTER_SERVICES_AGENT_SERVICE_H_
#define TANDEM_ENGINE_ADAPTER_SERVICES_AGENT_SERVICE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine_adapter/core/engine.h"
#include "engine_adapter/ports/engine_ports.h"
#include "engine_adapter/ports/simulation_port.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// kInvalidArgument for an environment or agent that is not there.
class AgentService {
 public:
  // All outlive it. `randomization` may be nullptr: then a contract that asks
  // for anything is answered with kUnsupported.
  AgentService(const EngineSchema& schema, RandomizationPort* randomization,
               SimulationPort* simulation)
      : schema_(schema),
        randomization_(randomization),
        simulation_(simulation) {}

  absl::StatusOr<rpc::GetAgentSchemaResponseT> GetAgentSchema(
      const rpc::GetAgentSchemaRequestT& request) const;

  // The contract comes first, then the resets. kInvalidArgument for an invalid
  // contract, kUnsupported for a contract, or a seed at_next_reset, where
  // nothing randomises: nothing was reset then.
  absl::StatusOr<rpc::ResetAgentResponseT> ResetAgent(
      const rpc::ResetAgentRequestT& request);

 private:
  rpc::AgentSchemaT SchemaOf(uint32_t env) const;

  const EngineSchema& schema_;
  RandomizationPort* randomization_;
  SimulationPort* simulation_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_SERVICES_AGENT_SERVICE_H_
