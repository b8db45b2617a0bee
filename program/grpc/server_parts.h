// What every gRPC server of this tree sets and uses: StartGrpc, SetLimits,
// AddAcceptor, HandTo.
//
// Data flow: ConnectionAcceptor -> HandTo -> the acceptor of AddAcceptor ->
// gRPC, which serves the connection.
// Ownership: the caller owns the acceptor. It must outlive the server.

#pragma once

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <memory>
#include <string>

#include "program/grpc/connection_acceptor.h"

namespace tandem {

using GrpcAcceptor = grpc::experimental::ExternalConnectionAcceptor;

// Call it once, before the first server: with health checks and reflection, and
// with gRPC's lines as those of the program. The process must end by _Exit, not
// by grpc_shutdown, which would wait up to 10 s for a thread of gRPC.
void StartGrpc(const std::string& program);

// The server ends two kinds of connections:
//  - of a client whose machine or process has stopped: it pings idle ones;
//  - of a client that has not begun HTTP/2 after 10 s, such as one that never
//    ends its TLS handshake. Many would take the places of others.
// It refuses compressed requests: gRPC decompresses them before it looks at
// their size, so 1 MB could become 1 GB.
void SetLimits(grpc::ServerBuilder* builder);

std::unique_ptr<GrpcAcceptor> AddAcceptor(
    grpc::ServerBuilder* builder,
    std::shared_ptr<grpc::ServerCredentials> credentials);

// Returns a function that gives connections to `acceptor`; nullptr for nullptr.
ConnectionAcceptor::Take HandTo(GrpcAcceptor* acceptor);

}  // namespace tandem
