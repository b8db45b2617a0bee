#include "program/tls/tls_certificate.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "arpa/inet.h"
#include "transport/base/error.h"
#include "transport/base/unique_fd.h"

namespace tandem {
namespace {

// OpenSSL's newest error, and no other ones after it.
std::string Reason() {
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  const char* const text = ERR_reason_error_string(error);
  return text == nullptr ? "no reason given" : text;
}

absl::Status CheckReadable(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return MakeSystemError("open", path, errno);
  return absl::OkStatus();
}

absl::Status Refuse(absl::string_view expected, const std::string& path) {
  return MakeError(ErrorCode::kInvalidArgument,
                   absl::StrCat("expected ", expected, ", found another file (",
                                Reason(), "): ", path));
}

// A key with a passphrase is refused: a server has no terminal to ask.
int NoPassphrase(char*, int, int, void*) { return -1; }

}  // namespace

absl::StatusOr<TlsCertificate> TlsCertificate::Load(
    const std::string& certificate, const std::string& key) {
  TANDEM_RETURN_IF_ERROR(CheckReadable(certificate));
  TANDEM_RETURN_IF_ERROR(CheckReadable(key));
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()),
                                   &SSL_CTX_free);
  if (context == nullptr) {
    return MakeError(ErrorCode::kSystemCallFailed,
                     absl::StrCat("SSL_CTX_new: ", Reason()));
  }
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_default_passwd_cb(context.get(), &NoPassphrase);
  if (SSL_CTX_use_certificate_chain_file(context.get(), certificate.c_str()) !=
      1) {
    return Refuse("a certificate as a PEM file", certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), key.c_str(),
                                  SSL_FILETYPE_PEM) != 1) {
    return Refuse(
        "the private key of the certificate as a PEM file without passphrase",
        key);
  }
  return TlsCertificate(std::move(context));
}

absl::Status CheckAuthorities(const std::string& path) {
  TANDEM_RETURN_IF_ERROR(CheckReadable(path));
  const std::unique_ptr<X509_STORE, void (*)(X509_STORE*)> store(
      X509_STORE_new(), &X509_STORE_free);
  X509_LOOKUP* const lookup =
      X509_STORE_add_lookup(store.get(), X509_LOOKUP_file());
  // Unlike X509_STORE_load_file, not content with a list of revocations.
  if (X509_load_cert_file(lookup, path.c_str(), X509_FILETYPE_PEM) == 0) {
    return Refuse("certificates of authorities as a PEM file", path);
  }
  return absl::OkStatus();
}

bool TlsCertificate::IsFor(absl::string_view host) const {
  X509* const certificate = SSL_CTX_get0_certificate(context_.get());
  if (host.empty()) return false;
  absl::string_view bare = host;
  const bool in_brackets =
      absl::ConsumePrefix(&bare, "[") && absl::ConsumeSuffix(&bare, "]");
  const std::string text(in_brackets ? bare : host);
  if (X509_check_ip_asc(certificate, text.c_str(), 0) == 1) return true;
  return !in_brackets &&
         X509_check_host(certificate, text.data(), text.size(),
                         X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, nullptr) == 1;
}

std::vector<std::string> TlsCertificate::Names() const {
  std::vector<std::string> names;
  const std::unique_ptr<GENERAL_NAMES, void (*)(GENERAL_NAMES*)> found(
      static_cast<GENERAL_NAMES*>(
          X509_get_ext_d2i(SSL_CTX_get0_certificate(context_.get()),
                           NID_subject_alt_name, nullptr, nullptr)),
      &GENERAL_NAMES_free);
  for (int i = 0; i < sk_GENERAL_NAME_num(found.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(found.get(), i);
    if (name->type == GEN_DNS) {
      names.emplace_back(
          reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName)),
          static_cast<size_t>(ASN1_STRING_length(name->d.dNSName)));
    } else if (name->type == GEN_IPADD) {
      const bool is_v4 = ASN1_STRING_length(name->d.iPAddress) == 4;
      std::array<char, INET6_ADDRSTRLEN> text;
      if (inet_ntop(is_v4 ? AF_INET : AF_INET6,
                    ASN1_STRING_get0_data(name->d.iPAddress), text.data(),
                    text.size()) == nullptr) {
        continue;
      }
      names.push_back(is_v4 ? std::string(text.data())
                            : absl::StrCat("[", text.data(), "]"));
    }
  }
  return names;
}

}  // namespace tandem
