// TlsFiles: the PEM files of one end of mutual TLS. CheckTlsFlags: whether a
// server's flags of TLS agree.
//
// Data flow: --listen, --allow_remote, --tls_cert, --tls_key, --tls_client_ca
// -> the refusal, or a server that other machines reach by TLS alone.

#pragma once

#include <string>

#include "absl/status/status.h"

namespace tandem {

// Paths.
struct TlsFiles {
  std::string certificate;  // its chain
  std::string key;          // without passphrase
  std::string authorities;  // which sign the other end's certificates
};

struct TlsFlags {
  TlsFiles files = {};         // "": the flag is not set
  bool knows_clients = false;  // whether the program has --tls_client_ca
  bool listens = false;        // whether --listen names a port
  bool allow_remote = false;
};

// The files of TLS are given together, and with a port; --allow_remote needs
// them. kInvalidArgument: the flags do not agree.
absl::Status CheckTlsFlags(const TlsFlags& flags);

}  // namespace tandem
