#include "program/tls/tls_certificate.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "arpa/inet.h"
#include "base/error.h"
#include "base/os/unique_fd.h"

namespace tandem {
namespace {

// OpenSSL's newest error, and no other ones after it.
std::string Reason() {
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  const char* const text = ERR_reason_error_string(error);
  return text == nullptr ? "no reason given" : text;
}

absl::Status Refuse(absl::string_view expected, const PemFile& file) {
  return MakeError(ErrorCode::kInvalidArgument,
                   absl::StrCat("expected ", expected, ", found another file (",
                                Reason(), "): ", file.path));
}

// A key with a passphrase is refused: a server has no terminal to ask.
int NoPassphrase(char*, int, int, void*) { return -1; }

using OwnedBio = std::unique_ptr<BIO, void (*)(BIO*)>;
using OwnedX509 = std::unique_ptr<X509, void (*)(X509*)>;
using OwnedKey = std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)>;

// It reads the file's text, which must outlive it.
OwnedBio BioOf(const PemFile& file) {
  return {BIO_new_mem_buf(file.text.data(), static_cast<int>(file.text.size())),
          &BIO_free_all};
}

// Returns all certificates of the file. Empty: there is none, or an invalid
// one; Reason says which.
std::vector<OwnedX509> CertificatesOf(const PemFile& file) {
  ERR_clear_error();
  const OwnedBio bio = BioOf(file);
  std::vector<OwnedX509> found;
  while (X509* const next = PEM_read_bio_X509_AUX(bio.get(), nullptr,
                                                  &NoPassphrase, nullptr)) {
    found.emplace_back(next, &X509_free);
  }
  const bool is_end =
      ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (!is_end) found.clear();
  if (!found.empty()) ERR_clear_error();
  return found;
}

}  // namespace

absl::StatusOr<PemFile> ReadPemFile(const std::string& path) {
  constexpr size_t kMostBytes = size_t{1} << 20;
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return MakeSystemError("open", path, errno);
  PemFile read_file = {.path = path, .text = ""};
  std::array<char, 4096> part;
  for (;;) {
    const ssize_t bytes = read(file.get(), part.data(), part.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return MakeSystemError("read", path, errno);
    if (bytes == 0) return read_file;
    read_file.text.append(part.data(), static_cast<size_t>(bytes));
    if (read_file.text.size() > kMostBytes) {
      return MakeError(ErrorCode::kInvalidArgument,
                       absl::StrCat("expected a PEM file of at most ",
                                    kMostBytes, " bytes, found more: ", path));
    }
  }
}

absl::StatusOr<TlsCertificate> TlsCertificate::Load(
    const std::string& certificate, const std::string& key) {
  TANDEM_ASSIGN_OR_RETURN(const PemFile certificate_file,
                          ReadPemFile(certificate));
  TANDEM_ASSIGN_OR_RETURN(const PemFile key_file, ReadPemFile(key));
  return Make(certificate_file, key_file);
}

absl::StatusOr<TlsCertificate> TlsCertificate::Make(const PemFile& certificate,
                                                    const PemFile& key) {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()),
                                   &SSL_CTX_free);
  if (context == nullptr) {
    return MakeError(ErrorCode::kSystemCallFailed,
                     absl::StrCat("SSL_CTX_new: ", Reason()));
  }
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  const std::vector<OwnedX509> chain = CertificatesOf(certificate);
  bool is_set = !chain.empty() &&
                SSL_CTX_use_certificate(context.get(), chain[0].get()) == 1;
  for (size_t i = 1; is_set && i < chain.size(); ++i) {
    // 1: the context gets a reference of its own.
    is_set = SSL_CTX_ctrl(context.get(), SSL_CTRL_CHAIN_CERT, 1,
                          chain[i].get()) == 1;
  }
  if (!is_set) return Refuse("a certificate as a PEM file", certificate);
  const OwnedKey read_key(PEM_read_bio_PrivateKey(BioOf(key).get(), nullptr,
                                                  &NoPassphrase, nullptr),
                          &EVP_PKEY_free);
  if (read_key == nullptr ||
      SSL_CTX_use_PrivateKey(context.get(), read_key.get()) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1) {
    return Refuse(
        "the private key of the certificate as a PEM file without passphrase",
        key);
  }
  return TlsCertificate(std::move(context));
}

absl::Status CheckAuthorities(const PemFile& file) {
  if (!CertificatesOf(file).empty()) return absl::OkStatus();
  return Refuse("certificates of authorities as a PEM file", file);
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
