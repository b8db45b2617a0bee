// Access: which requests the page's server answers.
//
// Data flow: a request's Host, Origin, Cookie and address -> allowed, or the
// reason for a refusal.
// Ownership: one server; constant after its construction.
//
// Rules, in this order:
//
//   rule                                             prevents
//   Host is localhost, 127.0.0.1 or [::1],           a foreign page whose name
//   or a name of the server's certificate            resolves to this machine
//   Origin of a WebSocket is the Host with           a foreign page that opens
//   "http://", or "https://" with a certificate      a WebSocket to this server
//   behind a token: the cookie, for everything       other users
//
// Behind a Unix socket with mode 0600 the file system replaces the third rule.

#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"

namespace tandem {

// Returns 128 random bits of the kernel as 32 hexadecimal digits.
std::string NewToken();

// Takes the same time for all texts of b's length.
bool EqualInConstantTime(absl::string_view a, absl::string_view b);

class Access {
 public:
  enum class Endpoint {
    kSocketFile,  // a Unix socket, which only its owner can open
    kTcpPort,     // a TCP port, which other users can open
  };
  // Whether the server's certificate names a host, without a port.
  using HostCheck = std::function<bool(absl::string_view host)>;

  // `port` makes the cookie's name unique: browsers send a cookie to all ports
  // of a machine. `is_certified`: of a server that encrypts; otherwise nullptr.
  Access(Endpoint endpoint, uint16_t port, HostCheck is_certified = nullptr);

  // Whether a host, with or without a port, is one of the three names that
  // every machine gives itself.
  static bool IsLoopbackHost(absl::string_view host);

  // Whether the Host header names this machine. The port is not checked: ssh -L
  // may use another one.
  bool IsOwnHost(absl::string_view host) const;
  // Whether a WebSocket's Origin is that of a page of this server.
  bool IsOwnOrigin(absl::string_view origin, absl::string_view host) const;

  // Whether the token opens the server. Always false with kSocketFile.
  bool IsToken(absl::string_view token) const;
  // Whether the Cookie header has the server's cookie. Always true with
  // kSocketFile.
  bool HasCookie(absl::string_view cookie_header) const;

  // For the response that exchanges the token: HttpOnly, SameSite=Strict;
  // Secure, if the server encrypts.
  std::string SetCookieHeader() const;
  // "/", with the token at a TCP port.
  std::string PathWithToken() const;
  // "http://", or "https://" if the server encrypts.
  absl::string_view Scheme() const;

 private:
  const Endpoint endpoint_;
  const HostCheck is_certified_;
  const std::string cookie_name_;
  // Different secrets: the token is visible in the browser's history.
  const std::string token_;
  const std::string cookie_;
};

}  // namespace tandem
