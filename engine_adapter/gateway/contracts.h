// Contracts of domain randomisation, converted.
//
// Data flow: ResetAgentRequest -> ToEngine -> the engine's ResetAgent.
//
//   request.simulation_contract = ToEngine(proto.simulation_contract());

#ifndef TANDEM_ENGINE_ADAPTER_GATEWAY_CONTRACTS_H_
#define TANDEM_ENGINE_ADAPTER_GATEWAY_CONTRACTS_H_

#include "schema/messages/hazel_rpc_generated.h"
#include "schema/protos/hazel/agent.pb.h"

namespace tandem::gateway {

rpc::SimulationContractT ToEngine(const hazel::rpc::SimulationContract& from);

}  // namespace tandem::gateway

#endif  // TANDEM_ENGINE_ADAPTER_GATEWAY_CONTRACTS_H_
