// StartTlsRelay: the encrypted side of a connection, for a server that speaks
// without encryption.
//
// Data flow: browser <- TLS -> the relay <- a socket pair -> WebServer. So HTTP
// and WebSockets are compiled for one kind of stream, and their limits hold for
// both kinds of connections.
// Ownership: the relay owns the browser's socket and one end of the pair; it
// ends when either side ends.
//
// Bounds: kHandshakeSecs for the handshake; a browser that takes nothing for
// kStalledSecs is disconnected.

#pragma once

#include "absl/status/statusor.h"
#include "base/os/unique_fd.h"
#include "program/tls/tls_certificate.h"

namespace boost::asio {
class io_context;
}  // namespace boost::asio

namespace tandem {

constexpr int kHandshakeSecs = 10;
constexpr int kStalledSecs = 60;

// Returns the plain side, which does not block. `context` runs the relay, on
// one thread. Error: the system's, such as too many open files; the connection
// is closed then.
absl::StatusOr<UniqueFd> StartTlsRelay(boost::asio::io_context* context,
                                       UniqueFd encrypted,
                                       const TlsCertificate& certificate);

}  // namespace tandem
