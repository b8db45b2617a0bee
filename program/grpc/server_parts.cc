#include "program/grpc/server_parts.h"

#include <grpc/grpc.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>

#include <utility>

#include "absl/synchronization/mutex.h"
#include "program/grpc/library_log.h"

namespace tandem {

void StartGrpc(const std::string& program) {
  RouteLibraryLog(program,
                  ". A client's certificate was refused: it has expired, is "
                  "not valid yet, or no authority of --tls_client_ca has "
                  "signed it; gRPC reports neither the reason nor the client");
  // As Debian builds them, Abseil's mutexes, which gRPC uses, search for
  // deadlocks at each lock. That is 7 % of a call's processor time.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  grpc_init();
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
}

void SetLimits(grpc::ServerBuilder* builder) {
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // Otherwise gRPC stops after two pings on an idle stream.
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 10'000);
  for (const auto algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    builder->SetCompressionAlgorithmSupportStatus(algorithm, false);
  }
  // The minimum interval of clients' pings, with and without calls.
  builder->AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
}

std::unique_ptr<GrpcAcceptor> AddAcceptor(
    grpc::ServerBuilder* builder,
    std::shared_ptr<grpc::ServerCredentials> credentials) {
  return builder->experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      std::move(credentials));
}

ConnectionAcceptor::Take HandTo(GrpcAcceptor* acceptor) {
  if (acceptor == nullptr) return nullptr;
  return [acceptor](int connection) {
    GrpcAcceptor::NewConnectionParameters parameters;
    parameters.fd = connection;
    acceptor->HandleNewConnection(&parameters);
  };
}

}  // namespace tandem
