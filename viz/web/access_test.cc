#include "viz/web/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

// "name=value" of a Set-Cookie header.
std::string CookieOf(const Access& access) {
  const std::string header = access.SetCookieHeader();
  return std::string(*absl::StrSplit(header, ';').begin());
}

std::string TokenOf(const Access& access) {
  const std::string path = access.PathWithToken();
  return std::string(absl::StripPrefix(path, "/?token="));
}

const Access& ASocketsAccess() {
  static const Access access(Access::Endpoint::kSocketFile, 0);
  return access;
}

TEST(Access, ItsHostIsThisMachineWithAnyPort) {
  for (const char* host : {"localhost", "LOCALHOST:8900", "127.0.0.1",
                           "127.0.0.1:1", "[::1]", "[::1]:8900"}) {
    EXPECT_TRUE(ASocketsAccess().IsOwnHost(host)) << host;
  }
  for (const char* host :
       {"", "evil.example", "evil.example:8900", "localhost.evil.example",
        "127.0.0.1.evil.example", "127.0.0.2", "localhost:8900@evil.example",
        "localhost:", "::1", "[::1]x", "localhost\t", "127.0.0.1:80x"}) {
    // "localhost:" has an empty port, which RFC 3986 allows.
    EXPECT_EQ(ASocketsAccess().IsOwnHost(host),
              std::string(host) == "localhost:")
        << host;
  }
}

TEST(Access, ItsOriginIsThePageOfTheSameHostAndPort) {
  const Access& access = ASocketsAccess();
  EXPECT_TRUE(access.IsOwnOrigin("http://localhost:8900", "localhost:8900"));
  EXPECT_TRUE(access.IsOwnOrigin("http://[::1]:8900", "[::1]:8900"));
  for (const char* origin :
       {"", "null", "http://localhost:8901", "https://localhost:8900",
        "http://evil.example", "http://localhost:8900/",
        "http://127.0.0.1:8900", "http://localhost:8900.evil.example"}) {
    EXPECT_FALSE(access.IsOwnOrigin(origin, "localhost:8900")) << origin;
  }
  EXPECT_FALSE(access.IsOwnOrigin("http://evil.example", "evil.example"));
}

TEST(Access, ACertificateAddsItsNamesAndTheOriginsOfHttps) {
  const Access access(
      Access::Endpoint::kTcpPort, 8900,
      [](absl::string_view host) { return host == "gpu1.example"; });
  EXPECT_TRUE(access.IsOwnHost("gpu1.example"));
  EXPECT_TRUE(access.IsOwnHost("gpu1.example:8900"));
  EXPECT_TRUE(access.IsOwnHost("localhost:8900"));
  EXPECT_FALSE(access.IsOwnHost("evil.example"));
  EXPECT_TRUE(
      access.IsOwnOrigin("https://gpu1.example:8900", "gpu1.example:8900"));
  EXPECT_FALSE(
      access.IsOwnOrigin("http://gpu1.example:8900", "gpu1.example:8900"));
  EXPECT_THAT(access.SetCookieHeader(), HasSubstr("; Secure"));
  EXPECT_EQ(access.Scheme(), "https://");
  const Access plain(Access::Endpoint::kTcpPort, 8900);
  EXPECT_THAT(plain.SetCookieHeader(), Not(HasSubstr("Secure")));
}

TEST(Access, TheTokenIs32HexadecimalDigitsAndNewEachTime) {
  const Access one(Access::Endpoint::kTcpPort, 8900);
  const Access other(Access::Endpoint::kTcpPort, 8900);
  EXPECT_THAT(one.PathWithToken(), MatchesRegex("/\\?token=[0-9a-f]{32}"));
  EXPECT_NE(one.PathWithToken(), other.PathWithToken());
  EXPECT_TRUE(one.IsToken(TokenOf(one)));
  EXPECT_FALSE(one.IsToken(TokenOf(other)));
  EXPECT_FALSE(one.IsToken(""));
  EXPECT_FALSE(one.IsToken(TokenOf(one).substr(1)));
  EXPECT_FALSE(one.IsToken(TokenOf(one) + "0"));
}

TEST(Access, TheCookieOpensAndTheTokenIsNoCookie) {
  const Access access(Access::Endpoint::kTcpPort, 8900);
  const std::string cookie = CookieOf(access);
  EXPECT_TRUE(access.HasCookie(cookie));
  EXPECT_TRUE(access.HasCookie(absl::StrCat("a=b; ", cookie, "; c=d")));
  EXPECT_TRUE(access.HasCookie(absl::StrCat("tandem_view_8900=x; ", cookie)));
  EXPECT_FALSE(access.HasCookie(""));
  EXPECT_FALSE(access.HasCookie("tandem_view_8900="));
  EXPECT_FALSE(
      access.HasCookie(absl::StrCat("tandem_view_8900=", TokenOf(access))));
  EXPECT_FALSE(access.HasCookie(absl::StrCat("x", cookie)));
  EXPECT_FALSE(access.HasCookie(cookie.substr(0, cookie.size() - 1)));
  const Access other(Access::Endpoint::kTcpPort, 8900);
  EXPECT_FALSE(other.HasCookie(cookie));
}

TEST(Access, ScriptsAndForeignPagesNeverGetTheCookie) {
  const Access access(Access::Endpoint::kTcpPort, 8900);
  EXPECT_THAT(access.SetCookieHeader(), HasSubstr("; HttpOnly"));
  EXPECT_THAT(access.SetCookieHeader(), HasSubstr("; SameSite=Strict"));
}

TEST(Access, BehindASocketFileThereIsNoToken) {
  const Access access(Access::Endpoint::kSocketFile, 0);
  EXPECT_EQ(access.PathWithToken(), "/");
  EXPECT_TRUE(access.HasCookie(""));
  EXPECT_FALSE(access.IsToken(""));
}

TEST(EqualInConstantTime, ComparesAllBytes) {
  EXPECT_TRUE(EqualInConstantTime("", ""));
  EXPECT_TRUE(EqualInConstantTime("abc", "abc"));
  EXPECT_FALSE(EqualInConstantTime("abc", "abd"));
  EXPECT_FALSE(EqualInConstantTime("xbc", "abc"));
  EXPECT_FALSE(EqualInConstantTime("ab", "abc"));
}

}  // namespace
}  // namespace tandem
