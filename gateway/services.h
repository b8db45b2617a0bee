// MakeServices: the gRPC services of package hazel.rpc. MakeRefusals: the
// answer to all other RPCs.
//
// Data flow: gRPC's callback -> the queue of the RPC's door (rpc_table.h) ->
// ClientSlot or Answer -> Finish.
// Ownership: the caller owns the services. They must outlive the gRPC server.
//
//   for (const auto& service : MakeServices(&gateway)) {
//     builder.RegisterService(service.get());
//   }

#ifndef TANDEM_GATEWAY_SERVICES_H_
#define TANDEM_GATEWAY_SERVICES_H_

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/impl/service_type.h>

#include <memory>
#include <vector>

#include "gateway/gateway.h"

namespace tandem::gateway {

// `gateway` must outlive the services.
std::vector<std::unique_ptr<grpc::Service>> MakeServices(Gateway* gateway);

// Each ends with UNIMPLEMENTED, and a text with the RPC's name.
std::unique_ptr<grpc::CallbackGenericService> MakeRefusals();

}  // namespace tandem::gateway

#endif  // TANDEM_GATEWAY_SERVICES_H_
