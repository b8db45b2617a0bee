#include "program/tls/tls_certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/error.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Files {
  std::string certificate;
  std::string key;
};

// Writes a new key and a certificate that it has signed. `names`: as in a
// configuration of OpenSSL, such as "DNS:a.example,IP:10.0.0.1"; "": none.
Files WriteCertificate(absl::string_view name, const std::string& names) {
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/", getpid(), "-", name);
  const Files files = {absl::StrCat(path, ".cert.pem"),
                       absl::StrCat(path, ".key.pem")};
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  X509* const made = X509_new();
  X509_set_version(made, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(made), 1);
  X509_gmtime_adj(X509_getm_notBefore(made), 0);
  X509_gmtime_adj(X509_getm_notAfter(made), 3600);
  X509_set_pubkey(made, key);
  X509_NAME_add_entry_by_txt(
      X509_get_subject_name(made), "CN", MBSTRING_ASC,
      reinterpret_cast<const unsigned char*>("subject.example"), -1, -1, 0);
  if (!names.empty()) {
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(
        nullptr, nullptr, NID_subject_alt_name, names.c_str());
    X509_add_ext(made, extension, -1);
    X509_EXTENSION_free(extension);
  }
  X509_sign(made, key, EVP_sha256());
  FILE* file = std::fopen(files.certificate.c_str(), "w");
  PEM_write_X509(file, made);
  std::fclose(file);
  file = std::fopen(files.key.c_str(), "w");
  PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  X509_free(made);
  EVP_PKEY_free(key);
  return files;
}

TEST(TlsCertificate, IsForItsNamesAndAddresses) {
  const Files files = WriteCertificate(
      "names", "DNS:gpu1.example,DNS:*.lab.example,IP:10.0.0.7,IP:::1");
  const absl::StatusOr<TlsCertificate> certificate =
      TlsCertificate::Load(files.certificate, files.key);
  ASSERT_TRUE(certificate.ok()) << certificate.status();
  for (const char* const host :
       {"gpu1.example", "GPU1.example", "a.lab.example", "10.0.0.7", "[::1]"}) {
    EXPECT_TRUE(certificate->IsFor(host)) << host;
  }
  for (const char* const host :
       {"", "example", "gpu1.example.evil.example", "a.b.lab.example",
        "10.0.0.8", "[::2]", "[gpu1.example]", "subject.example",
        "gpu1.example:8900"}) {
    EXPECT_FALSE(certificate->IsFor(host)) << host;
  }
  EXPECT_THAT(certificate->Names(), ElementsAre("gpu1.example", "*.lab.example",
                                                "10.0.0.7", "[::1]"));
}

TEST(TlsCertificate, WithoutAlternativeNamesIsForNoHost) {
  const Files files = WriteCertificate("none", "");
  const absl::StatusOr<TlsCertificate> certificate =
      TlsCertificate::Load(files.certificate, files.key);
  ASSERT_TRUE(certificate.ok()) << certificate.status();
  EXPECT_THAT(certificate->Names(), IsEmpty());
  EXPECT_FALSE(certificate->IsFor("subject.example"));
}

TEST(TlsCertificate, RefusesOtherFiles) {
  const Files one = WriteCertificate("one", "DNS:a.example");
  const Files other = WriteCertificate("other", "DNS:a.example");
  const std::string text = one.certificate + ".txt";
  ASSERT_TRUE(std::ofstream(text) << "no certificate\n");
  const auto code = [](const std::string& certificate, const std::string& key) {
    return CodeOf(TlsCertificate::Load(certificate, key).status());
  };
  EXPECT_EQ(code(text, one.key), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(one.certificate, text), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(one.key, one.certificate), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(one.certificate, other.key), ErrorCode::kInvalidArgument);
  EXPECT_NE(code("/nonexistent", one.key), ErrorCode::kOk);
  EXPECT_NE(code(one.certificate, "/nonexistent"), ErrorCode::kOk);
}

// Writes a list of revoked certificates, which is empty.
std::string WriteRevocations() {
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/", getpid(), "-crl.pem");
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  X509_CRL* const made = X509_CRL_new();
  ASN1_TIME* const now = X509_gmtime_adj(nullptr, 0);
  X509_CRL_set1_lastUpdate(made, now);
  X509_CRL_sign(made, key, EVP_sha256());
  FILE* const file = std::fopen(path.c_str(), "w");
  PEM_write_X509_CRL(file, made);
  std::fclose(file);
  ASN1_TIME_free(now);
  X509_CRL_free(made);
  EVP_PKEY_free(key);
  return path;
}

TEST(TlsCertificate, AuthoritiesAreCertificates) {
  const Files files = WriteCertificate("authority", "");
  EXPECT_TRUE(CheckAuthorities(*ReadPemFile(files.certificate)).ok());
  for (const std::string& path :
       {files.key, std::string("/dev/null"), WriteRevocations()}) {
    EXPECT_EQ(CodeOf(CheckAuthorities(*ReadPemFile(path))),
              ErrorCode::kInvalidArgument);
  }
}

TEST(TlsCertificate, ATextMayHoldSeveralCertificates) {
  const Files one = WriteCertificate("first", "DNS:a.example");
  const Files other = WriteCertificate("second", "DNS:b.example");
  PemFile chain = *ReadPemFile(one.certificate);
  chain.text += ReadPemFile(other.certificate)->text;
  EXPECT_TRUE(CheckAuthorities(chain).ok());
  const PemFile key = *ReadPemFile(one.key);
  const absl::StatusOr<TlsCertificate> made = TlsCertificate::Make(chain, key);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->Names(), ElementsAre("a.example"));
  chain.text +=
      "-----BEGIN CERTIFICATE-----\nAAAA\n"
      "-----END CERTIFICATE-----\n";
  EXPECT_FALSE(CheckAuthorities(chain).ok());
  EXPECT_FALSE(TlsCertificate::Make(chain, key).ok());
}

TEST(ReadPemFile, NamesAFileThatItCannotRead) {
  const absl::Status status = ReadPemFile("/nonexistent").status();
  EXPECT_NE(CodeOf(status), ErrorCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nonexistent"));
  EXPECT_EQ(CodeOf(ReadPemFile("/dev/zero").status()),
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace tandem
