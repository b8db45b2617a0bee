// Server: the daemon's gRPC server, and the users whose connections it accepts.
//
// Data flow: flags -> Entrance, before anything is made -> Listen, in the
// locked data folder -> Start, once the services are ready -> calls.
// Ownership: RunDaemon.
//
//   absl::StatusOr<Entrance> entrance = Entrance::Read(options);
//   absl::Status listening = entrance->Listen();
//   auto server = Server::Start(*std::move(entrance), {&trainer}, data_dir);
//   (*server)->Shutdown(std::chrono::milliseconds(200));

#ifndef TANDEM_SLOW_LANE_DAEMON_SERVER_H_
#define TANDEM_SLOW_LANE_DAEMON_SERVER_H_

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
#include "slow_lane/daemon/connection_acceptor.h"
#include "slow_lane/daemon/listening_sockets.h"
#include "slow_lane/daemon/peer_owner.h"

namespace tandem::slow_lane {

// Where clients connect, and which of them the server takes. Move-only.
class Entrance {
 public:
  struct Options {
    std::string listen;       // HOST:PORT, or "none"
    std::string socket;       // one more Unix socket, absolute; may be empty
    std::string allow_users;  // names and uids between commas
    std::string token_file;   // empty: none
  };

  // Reads users, token and addresses; changes nothing. kInvalidArgument,
  // kPermissionDenied, kFailedPrecondition: an invalid flag, which the text
  // names.
  static absl::StatusOr<Entrance> Read(const Options& options);

  // Clients may connect, and wait for Server. In the data folder, which is the
  // working directory. kUnavailable: an address or path is taken.
  absl::Status Listen();

  // Closes what Listen opened, and removes its files. Safe twice.
  void Close() { sockets_.clear(); }

  // HOST:PORT after Listen, with the port that was taken; empty for none.
  const std::string& address() const { return address_; }

 private:
  friend class Server;
  Entrance(Options options, AllowedUsers users)
      : options_(std::move(options)), users_(std::move(users)) {}

  Options options_;
  AllowedUsers users_;
  std::optional<std::string> token_;
  std::vector<TcpAddress> tcp_;
  std::string address_;
  std::vector<ListeningSocket> sockets_;
};

class Server {
 public:
  // Serves at once. `data_dir`: absolute, for the texts. The services outlive
  // it. kInternal: gRPC did not start.
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      Entrance entrance, const std::vector<grpc::Service*>& services,
      const std::string& data_dir);

  // Takes no more connections, and returns when every call has ended: those
  // that last longer are cancelled, and their clients disconnected. Once.
  void Shutdown(std::chrono::milliseconds grace);

 private:
  using GrpcAcceptor = grpc::experimental::ExternalConnectionAcceptor;

  Server() = default;

  std::unique_ptr<GrpcAcceptor> own_;
  std::unique_ptr<GrpcAcceptor> unknown_;  // null: without a token
  std::unique_ptr<grpc::Server> grpc_;
  std::unique_ptr<ConnectionAcceptor> acceptor_;  // uses all of the above
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_DAEMON_SERVER_H_
