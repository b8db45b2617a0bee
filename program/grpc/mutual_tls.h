// MutualTls: a gRPC server's credentials, with which it knows its clients.
// DaemonCredentials: those of a client of the daemon.
//
// Data flow: three PEM files -> gRPC. Each end needs a certificate that one of
// the other end's authorities has signed; gRPC ends all other connections.

#pragma once

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "program/tls/tls_flags.h"

namespace tandem {

// Paths of the files by which a client connects to a daemon with TLS.
inline constexpr char kTlsAuthoritiesVariable[] = "TANDEM_TLS_CA";
inline constexpr char kTlsCertificateVariable[] = "TANDEM_TLS_CERT";
inline constexpr char kTlsKeyVariable[] = "TANDEM_TLS_KEY";

// Reads each file once, and never again later. Errors: kInvalidArgument, a file
// is not what it is named, or the key is not the certificate's; the system's, a
// file cannot be read.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MutualTls(
    const TlsFiles& files);

// Returns the credentials for the daemon at `target`: TLS with the files that
// the three variables name; plaintext if none is set, and for unix:PATH.
// Errors: as of MutualTls; kInvalidArgument: one or two of the three are set.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> DaemonCredentials(
    const std::string& target);

// Returns a sentence for errors of an unreachable daemon: it may have refused
// the client's certificate, which gRPC does not report. "" for plaintext.
std::string CertificateAdvice(const std::string& target);

}  // namespace tandem
