#include "program/grpc/mutual_tls.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/os/process_handle.h"
#include "base/printable.h"
#include "program/tls/tls_certificate.h"

namespace tandem {
namespace {

struct TlsTexts {
  PemFile certificate;
  PemFile key;
  PemFile authorities;
};

// With wrong files, gRPC would end each handshake, without a reason. So this
// checks the texts that gRPC gets.
absl::StatusOr<TlsTexts> ReadTexts(const TlsFiles& files) {
  TlsTexts texts;
  TANDEM_ASSIGN_OR_RETURN(texts.certificate, ReadPemFile(files.certificate));
  TANDEM_ASSIGN_OR_RETURN(texts.key, ReadPemFile(files.key));
  TANDEM_ASSIGN_OR_RETURN(texts.authorities, ReadPemFile(files.authorities));
  TANDEM_RETURN_IF_ERROR(
      TlsCertificate::Make(texts.certificate, texts.key).status());
  TANDEM_RETURN_IF_ERROR(CheckAuthorities(texts.authorities));
  return texts;
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MutualTls(
    const TlsFiles& files) {
  TANDEM_ASSIGN_OR_RETURN(const TlsTexts texts, ReadTexts(files));
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = texts.authorities.text;
  options.pem_key_cert_pairs.push_back(
      {texts.key.text, texts.certificate.text});
  return grpc::SslServerCredentials(options);
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> DaemonCredentials(
    const std::string& target) {
  const TlsFiles files = {
      .certificate = EnvironmentVariable(kTlsCertificateVariable),
      .key = EnvironmentVariable(kTlsKeyVariable),
      .authorities = EnvironmentVariable(kTlsAuthoritiesVariable)};
  const int found = !files.certificate.empty() + !files.key.empty() +
                    !files.authorities.empty();
  if (found == 0 || absl::StartsWith(target, "unix:")) {
    return grpc::InsecureChannelCredentials();
  }
  if (found != 3) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("expected the variables ", kTlsAuthoritiesVariable, ", ",
                     kTlsCertificateVariable, " and ", kTlsKeyVariable,
                     ", or none of them, found ", found));
  }
  TANDEM_ASSIGN_OR_RETURN(const TlsTexts texts, ReadTexts(files));
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = texts.authorities.text;
  options.pem_private_key = texts.key.text;
  options.pem_cert_chain = texts.certificate.text;
  return grpc::SslCredentials(options);
}

std::string CertificateAdvice(const std::string& target) {
  const std::string path = EnvironmentVariable(kTlsCertificateVariable);
  if (path.empty() || absl::StartsWith(target, "unix:")) return "";
  return absl::StrCat(
      ". If one is there, it may have refused this client's certificate: it "
      "has expired or is not valid yet (openssl x509 -noout -dates -in FILE), "
      "or no authority of the daemon's --tls_client_ca has signed it: ",
      Printable(path));
}

}  // namespace tandem
