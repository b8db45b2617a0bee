// The answers to calls that need no exchange: one function for each RPC.
//
// Data flow: request -> Answer -> the engine's RPCs -> response.
//
//   absl::Status status = Answer(&gateway, deadline, request, &response);

#ifndef TANDEM_ENGINE_ADAPTER_GATEWAY_ANSWERS_H_
#define TANDEM_ENGINE_ADAPTER_GATEWAY_ANSWERS_H_

#include "absl/status/status.h"
#include "engine_adapter/gateway/gateway.h"
#include "schema/protos/hazel/agent.pb.h"
#include "schema/protos/hazel/mujoco.pb.h"
#include "transport/base/clock.h"

namespace tandem::gateway {

// Each blocks until the engine's answer. Errors: those of EngineLink::Ask,
// unless a comment says otherwise.

absl::Status Answer(Gateway* gateway, Deadline deadline,
                    const hazel::rpc::GetAgentSchemaRequest& request,
                    hazel::rpc::GetAgentSchemaResponse* response);

// Never an error: programs take one for a dead server. An engine that is away,
// or that has no MuJoCo, is success=false.
absl::Status Answer(Gateway* gateway, Deadline deadline,
                    const hazel::rpc::GetMujocoInfoRequest& request,
                    hazel::rpc::GetMujocoInfoResponse* response);

}  // namespace tandem::gateway

#endif  // TANDEM_ENGINE_ADAPTER_GATEWAY_ANSWERS_H_
