// TlsCertificate: the certificate and the key with which a server encrypts.
// CheckAuthorities: those that its clients' certificates are signed by.
//
// Data flow: two PEM files -> OpenSSL's context -> a relay of tandem-view; gRPC
// reads such files itself, and does not say which one is wrong.
// Ownership: copies share one context, which is constant after its load.
//
//   absl::StatusOr<TlsCertificate> certificate =
//       TlsCertificate::Load("cert.pem", "key.pem");
//   if (!certificate->IsFor("gpu1.example")) return Forbidden();

#ifndef TANDEM_PROGRAM_TLS_TLS_CERTIFICATE_H_
#define TANDEM_PROGRAM_TLS_TLS_CERTIFICATE_H_

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

class TlsCertificate {
 public:
  // Reads a certificate chain and its private key, without a passphrase. TLS
  // 1.2 is the oldest version that the context accepts. Errors:
  // kInvalidArgument: a file that is no PEM file of its kind, or a key of
  // another certificate; the system's, for a file that cannot be read.
  static absl::StatusOr<TlsCertificate> Load(const std::string& certificate,
                                             const std::string& key);

  // Whether the certificate names this host, which has no port: a name, or an
  // address, [::1] in brackets. By the rules of browsers: only subject
  // alternative names count.
  bool IsFor(absl::string_view host) const;

  // Its names and addresses, for messages; "*.example" is a wildcard.
  std::vector<std::string> Names() const;

  SSL_CTX* context() const { return context_.get(); }

 private:
  explicit TlsCertificate(std::shared_ptr<SSL_CTX> context)
      : context_(std::move(context)) {}

  std::shared_ptr<SSL_CTX> context_;
};

// Checks a PEM file of certificates that sign clients' certificates. Errors: as
// of Load.
absl::Status CheckAuthorities(const std::string& path);

}  // namespace tandem

#endif  // TANDEM_PROGRAM_TLS_TLS_CERTIFICATE_H_
