// Server: the daemon's gRPC server, and the users whose connections it accepts.
//
// Data flow: flags -> Entrance, which makes nothing -> Listen, in the locked
// data folder -> Start, after the services are ready -> calls.
// Ownership: RunDaemon.

#pragma once

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "program/grpc/connection_acceptor.h"
#include "program/grpc/peer_owner.h"
#include "program/grpc/server_parts.h"
#include "program/listening_sockets.h"
#include "program/tls/tls_flags.h"

namespace tandem::slow_lane {

// The addresses for clients, and the users that the server accepts. Move-only.
class Entrance {
 public:
  struct Options {
    std::string listen;         // HOST:PORT, or "none"
    std::string socket;         // another Unix socket, absolute; may be empty
    std::string allow_users;    // names and uids between commas
    std::string token_file;     // empty: none
    TlsFiles tls;               // TCP connections need TLS; empty: plaintext
    bool allow_remote = false;  // whether `listen` may be any address
  };

  // Reads users, token, certificates and addresses; changes nothing.
  // kInvalidArgument, kPermissionDenied, kFailedPrecondition: a flag is
  // invalid; the text names it.
  static absl::StatusOr<Entrance> Read(const Options& options);

  // Begins to listen: clients may connect, and wait for Server. Call it in the
  // data folder, which is the working directory. kUnavailable: an address or
  // path is in use.
  absl::Status Listen();

  // Closes the sockets of Listen, and removes their files. A second call has no
  // effect.
  void Close() { sockets_.clear(); }

  // HOST:PORT after Listen, with the actual port; empty if there is none.
  const std::string& address() const { return address_; }

  // Whether connections to `address` need TLS.
  bool has_tls() const { return tls_ != nullptr; }

 private:
  friend class Server;
  Entrance(Options options, AllowedUsers users)
      : options_(std::move(options)), users_(std::move(users)) {}

  Options options_;
  AllowedUsers users_;
  std::optional<std::string> token_;
  std::shared_ptr<grpc::ServerCredentials> tls_;  // nullptr: none
  std::vector<TcpAddress> tcp_;
  std::string address_;
  std::vector<ListeningSocket> sockets_;
};

class Server {
 public:
  // Serves at once. `data_dir`: absolute, for error texts. The services must
  // outlive the server. kInternal: gRPC did not start.
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      Entrance entrance, const std::vector<grpc::Service*>& services,
      const std::string& data_dir);

  // Accepts no more connections, and blocks until every call has ended. After
  // `grace` the remaining calls are cancelled, and their clients disconnected.
  // Call it once.
  void Shutdown(std::chrono::milliseconds grace);

 private:
  Server() = default;

  std::unique_ptr<GrpcAcceptor> own_;
  std::unique_ptr<GrpcAcceptor> unknown_;  // nullptr: neither TLS nor a token
  std::unique_ptr<grpc::Server> grpc_;
  std::unique_ptr<ConnectionAcceptor> acceptor_;  // uses all of the above
};

}  // namespace tandem::slow_lane
