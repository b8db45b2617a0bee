// AgentService: the observations and actions of agents, and resets with a
// contract.
//
// Data flow: request -> RandomizationPort, SimulationPort -> response.
// Ownership: the host owns it; the stepping thread calls it between exchanges.
// It does not depend on the RPC rings.

#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/ports/simulation_port.h"
#include "engine_adapter/rpc/rpc_answer.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// kInvalidArgument for an unknown environment or agent.
class AgentService {
 public:
  // All three must outlive this object. `randomization` may be nullptr: then a
  // contract with any field gets kUnsupported.
  AgentService(const EngineSchema& schema, RandomizationPort* randomization,
               SimulationPort* simulation)
      : schema_(schema),
        randomization_(randomization),
        simulation_(simulation) {}

  absl::StatusOr<rpc::GetAgentSchemaResponseT> GetAgentSchema(
      const rpc::GetAgentSchemaRequestT& request) const;

  // Sets the contract, then resets. kInvalidArgument for an invalid contract.
  // kUnsupported for a contract, or a seed with at_next_reset, if the engine
  // has no RandomizationPort. After an error nothing was reset, except after
  // the dispatcher's kRingFull: the client did not read its answers.
  void ResetAgent(const rpc::ResetAgentRequestT& request,
                  RpcAnswer<rpc::ResetAgentResponseT> answer);

 private:
  rpc::AgentSchemaT SchemaOf(uint32_t env) const;
  // Does all of ResetAgent but the reset itself; returns the answer.
  absl::StatusOr<rpc::ResetAgentResponseT> Prepare(
      const rpc::ResetAgentRequestT& request,
      const std::vector<uint32_t>& envs);

  const EngineSchema& schema_;
  RandomizationPort* randomization_;
  SimulationPort* simulation_;
};

}  // namespace tandem
