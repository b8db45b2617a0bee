// MutualTls: a gRPC server's credentials, with which it knows its clients.
//
// Data flow: three PEM files -> gRPC. A client needs a certificate that one of
// the authorities has signed; gRPC ends the connections of all others.
//
//   absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> credentials =
//       MutualTls({"server.pem", "server.key", "clients.pem"});
//   auto acceptor = AddAcceptor(&builder, *credentials);

#ifndef TANDEM_PROGRAM_GRPC_MUTUAL_TLS_H_
#define TANDEM_PROGRAM_GRPC_MUTUAL_TLS_H_

#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace tandem {

// Paths of PEM files.
struct TlsFiles {
  std::string certificate;         // the server's chain
  std::string key;                 // without passphrase
  std::string client_authorities;  // which sign clients' certificates
};

// Reads the files, and never again later. Errors: kInvalidArgument, a file is
// not what it is named, such as a pipe, or the key is not the certificate's;
// the system's, a file cannot be read.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MutualTls(
    const TlsFiles& files);

}  // namespace tandem

#endif  // TANDEM_PROGRAM_GRPC_MUTUAL_TLS_H_
