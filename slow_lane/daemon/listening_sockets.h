// ListeningSockets: the addresses at which the daemon's clients find it.
//
// Data flow: HOST:PORT -> the addresses of this machine that it means -> TCP
// sockets; paths -> Unix sockets.
// Ownership: a ListeningSocket owns its descriptor and its file.
//
//   const absl::StatusOr<std::vector<TcpAddress>> at = LoopbackOf(listen);
//   absl::StatusOr<TcpSockets> tcp = ListenOnTcp(*at, listen);
//   absl::StatusOr<ListeningSocket> unix = ListenOnUnix("daemon.sock");

#ifndef TANDEM_SLOW_LANE_DAEMON_LISTENING_SOCKETS_H_
#define TANDEM_SLOW_LANE_DAEMON_LISTENING_SOCKETS_H_

#include <sys/socket.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/base/unique_fd.h"

namespace tandem::slow_lane {

// Does not block at accept. Move-only; removes its file, unless another has
// taken the file's place.
class ListeningSocket {
 public:
  explicit ListeningSocket(UniqueFd socket) : socket_(std::move(socket)) {}
  ListeningSocket(UniqueFd socket, std::string path);
  ListeningSocket(ListeningSocket&& other) noexcept = default;
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  ~ListeningSocket();

  int fd() const { return socket_.get(); }

 private:
  UniqueFd socket_;
  std::string path_;  // of a Unix socket
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

struct TcpAddress {
  sockaddr_storage bytes = {};
  socklen_t size = 0;
};

struct TcpSockets {
  std::vector<ListeningSocket> sockets;  // of one port
  uint16_t port = 0;
};

// The addresses that `listen`, a HOST:PORT, means. Blocks while a name is
// looked up. kInvalidArgument: a name without an address, or an address by
// which other machines reach this one.
absl::StatusOr<std::vector<TcpAddress>> LoopbackOf(const std::string& listen);

// Port 0 becomes a free one, the same for all. Addresses of a family that this
// machine lacks are left out, but for the last. kUnavailable: the port is
// taken.
absl::StatusOr<TcpSockets> ListenOnTcp(const std::vector<TcpAddress>& addresses,
                                       const std::string& listen);

// Removes a socket that a dead daemon left at `path`. kUnavailable: a program
// listens there; kAlreadyExists: the path is another file's; kInvalidArgument:
// no path of a socket.
absl::Status RemoveStaleSocket(const std::string& path);

// At a free path.
absl::StatusOr<ListeningSocket> ListenOnUnix(const std::string& path);

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_DAEMON_LISTENING_SOCKETS_H_
