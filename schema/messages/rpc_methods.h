// The methods of the services, with the payloads of each.
//
// Data flow: the rpc_services of hazel_rpc.fbs -> rpc_method_rows.h ->
// PayloadsOf -> code that packs calls and checks answers. Rows are
// X(service, method, request, answer or stream's items, whether it streams):
// TANDEM_SERVICE_METHODS has those of the services, and TANDEM_CONTROL_METHODS
// those about calls and services themselves.
//
//   PayloadsOf(rpc::MethodId::GetEntity).answer;  // Payload::GetEntityResponse
//   IsStream(rpc::MethodId::StreamCamera);        // true

#pragma once

#include "schema/messages/hazel_rpc_generated.h"
#include "schema/messages/rpc_method_rows.h"

#define TANDEM_RPC_METHODS(X) \
  TANDEM_SERVICE_METHODS(X) TANDEM_CONTROL_METHODS(X)

namespace tandem {

struct MethodPayloads {
  rpc::Payload request = rpc::Payload::NONE;
  rpc::Payload answer = rpc::Payload::NONE;  // or a stream's item
  bool streams = false;
};

// Returns {NONE, NONE} for an unknown method.
constexpr MethodPayloads PayloadsOf(rpc::MethodId method) {
  switch (method) {
#define TANDEM_PAYLOADS(service, method, request, answer, streams) \
  case rpc::MethodId::method:                                      \
    return {rpc::Payload::request, rpc::Payload::answer, streams};
    TANDEM_RPC_METHODS(TANDEM_PAYLOADS)
#undef TANDEM_PAYLOADS
    case rpc::MethodId::NONE:
      break;
  }
  return {};
}

// Whether the method answers with a stream; false for an unknown method.
constexpr bool IsStream(rpc::MethodId method) {
  return PayloadsOf(method).streams;
}

}  // namespace tandem
