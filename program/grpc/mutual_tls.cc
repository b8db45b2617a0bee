#include "program/grpc/mutual_tls.h"

#include <fstream>
#include <iterator>

#include "absl/status/status.h"
#include "program/tls/tls_certificate.h"
#include "transport/base/error.h"

namespace tandem {
namespace {

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MutualTls(
    const TlsFiles& files) {
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = TextOf(files.client_authorities);
  options.pem_key_cert_pairs.push_back(
      {TextOf(files.key), TextOf(files.certificate)});
  // With wrong files, gRPC would end each handshake, without a reason. The
  // checks read the files again: they refuse a pipe, which is empty now.
  TANDEM_RETURN_IF_ERROR(
      TlsCertificate::Load(files.certificate, files.key).status());
  TANDEM_RETURN_IF_ERROR(CheckAuthorities(files.client_authorities));
  return grpc::SslServerCredentials(options);
}

}  // namespace tandem
