// The nine gRPC services of package hazel.rpc.
//
// Data flow: gRPC's callback -> the queue of the RPC's door (rpc_table.h) ->
// ClientSlot or Answer -> Finish.
// Ownership: the caller owns the services. They must outlive the gRPC server.
//
//   for (const auto& service : MakeServices(&gateway)) {
//     builder.RegisterService(service.get());
//   }

#ifndef TANDEM_ENGINE_ADAPTER_GATEWAY_SERVICES_H_
#define TANDEM_ENGINE_ADAPTER_GATEWAY_SERVICES_H_

#include <grpcpp/impl/service_type.h>

#include <memory>
#include <vector>

#include "engine_adapter/gateway/gateway.h"

namespace tandem::gateway {

// `gateway` must outlive the services.
std::vector<std::unique_ptr<grpc::Service>> MakeServices(Gateway* gateway);

}  // namespace tandem::gateway

#endif  // TANDEM_ENGINE_ADAPTER_GATEWAY_SERVICES_H_
