#include "viz/web/access.h"

#include <array>
#include <cstddef>
#include <span>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/os/machine.h"

namespace tandem {
namespace {

constexpr size_t kSecretBytes = 16;

// Returns the host without its port.
absl::string_view WithoutPort(absl::string_view host) {
  const size_t colon = host.rfind(':');
  const bool in_brackets =
      absl::StartsWith(host, "[") && absl::EndsWith(host, "]");
  if (colon == absl::string_view::npos || in_brackets) return host;
  for (const char digit : host.substr(colon + 1)) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(digit))) return host;
  }
  return host.substr(0, colon);
}

}  // namespace

std::string NewToken() {
  std::array<char, kSecretBytes> bytes;
  FillRandom(std::as_writable_bytes(std::span(bytes)));
  return absl::BytesToHexString(absl::string_view(bytes.data(), bytes.size()));
}

bool EqualInConstantTime(absl::string_view a, absl::string_view b) {
  if (a.size() != b.size()) return false;
  // volatile keeps the compiler from leaving the loop early.
  volatile unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<unsigned char>(
        difference |
        (static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i])));
  }
  return difference == 0;
}

Access::Access(Endpoint endpoint, uint16_t port, HostCheck is_certified)
    : endpoint_(endpoint),
      is_certified_(std::move(is_certified)),
      cookie_name_(absl::StrCat("tandem_view_", port)),
      token_(NewToken()),
      cookie_(NewToken()) {}

bool Access::IsLoopbackHost(absl::string_view host) {
  const absl::string_view name = WithoutPort(host);
  return absl::EqualsIgnoreCase(name, "localhost") || name == "127.0.0.1" ||
         name == "[::1]";
}

bool Access::IsOwnHost(absl::string_view host) const {
  return IsLoopbackHost(host) ||
         (is_certified_ != nullptr && is_certified_(WithoutPort(host)));
}

bool Access::IsOwnOrigin(absl::string_view origin,
                         absl::string_view host) const {
  return IsOwnHost(host) &&
         absl::EqualsIgnoreCase(origin, absl::StrCat(Scheme(), host));
}

bool Access::IsToken(absl::string_view token) const {
  return endpoint_ == Endpoint::kTcpPort && EqualInConstantTime(token, token_);
}

bool Access::HasCookie(absl::string_view cookie_header) const {
  if (endpoint_ == Endpoint::kSocketFile) return true;
  bool found = false;
  for (absl::string_view pair : absl::StrSplit(cookie_header, ';')) {
    pair = absl::StripAsciiWhitespace(pair);
    if (!absl::ConsumePrefix(&pair, cookie_name_) ||
        !absl::ConsumePrefix(&pair, "=")) {
      continue;
    }
    found = EqualInConstantTime(pair, cookie_) || found;
  }
  return found;
}

std::string Access::SetCookieHeader() const {
  return absl::StrCat(cookie_name_, "=", cookie_,
                      "; HttpOnly; SameSite=Strict; Path=/",
                      is_certified_ == nullptr ? "" : "; Secure");
}

std::string Access::PathWithToken() const {
  return endpoint_ == Endpoint::kTcpPort ? absl::StrCat("/?token=", token_)
                                         : "/";
}

absl::string_view Access::Scheme() const {
  return is_certified_ == nullptr ? "http://" : "https://";
}

}  // namespace tandem
