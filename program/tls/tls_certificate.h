// TlsCertificate: the certificate and the key with which a server encrypts.
// CheckAuthorities: those that the other end's certificates are signed by.
//
// Data flow: PEM files, each read once -> OpenSSL's context -> a relay of
// tandem-view, or only a check: gRPC takes the same texts, and does not say
// which one is wrong.
// Ownership: copies share one context, which is constant after its load.

#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

struct PemFile {
  std::string path;  // for messages
  std::string text;
};

// Reads a file, which may be a pipe. Errors: the system's; kInvalidArgument: it
// has more than 1 MiB.
absl::StatusOr<PemFile> ReadPemFile(const std::string& path);

class TlsCertificate {
 public:
  // Takes a certificate chain and its private key, without a passphrase. TLS
  // 1.2 is the oldest version that the context accepts. kInvalidArgument: a
  // text that is no PEM file of its kind, or a key of another certificate.
  static absl::StatusOr<TlsCertificate> Make(const PemFile& certificate,
                                             const PemFile& key);

  // ReadPemFile of both paths, then Make.
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

// Checks the certificates of the signers of the other end's certificates.
// kInvalidArgument: as of Make.
absl::Status CheckAuthorities(const PemFile& file);

}  // namespace tandem
