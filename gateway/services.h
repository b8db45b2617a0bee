// MakeServices: the gRPC services of package hazel.rpc. MakeRefusals: the
// answer to all other RPCs.
//
// Data flow: gRPC's callback -> the RPC's queue -> ClientSlot or
// Answer -> Finish.
// Ownership: the caller owns the services. They must outlive the gRPC server.

#pragma once

#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/impl/service_type.h>

#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "gateway/gateway.h"

namespace tandem::gateway {

// An RPC of version 0.5.0, or one of three of 0.1.84. Engines of Tandem have
// nothing like the others.
struct ServedRpc {
  const google::protobuf::MethodDescriptor* rpc;
  // What answers it: "engine": one call of the engine's method of this name.
  // "step": an exchange, or a call in the order of the exchanges. "gateway":
  // the gateway itself.
  absl::string_view served_by;
};

// All of the protos.
std::vector<ServedRpc> ServedRpcs();

// `gateway` must outlive the services.
std::vector<std::unique_ptr<grpc::Service>> MakeServices(Gateway* gateway);

// Each ends with UNIMPLEMENTED, and a text with the RPC's name.
std::unique_ptr<grpc::CallbackGenericService> MakeRefusals();

}  // namespace tandem::gateway
