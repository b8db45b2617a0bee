// ListeningSockets: the addresses at which a server's clients find it.
//
// Data flow: HOST:PORT -> its addresses of this machine -> TCP sockets; paths
// -> Unix sockets.
// Ownership: a ListeningSocket owns its descriptor and its file.

#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/os/unique_fd.h"

namespace tandem {

// Its accept does not block. Move-only; the destructor removes its file, unless
// another file has replaced it.
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

// Whether it is "none" or HOST:PORT with a number as port. gRPC would take
// numbers modulo 65536, and names such as http.
bool IsListenAddress(absl::string_view address);

// Returns the addresses of `listen`, a HOST:PORT. Blocks during a name lookup.
// kInvalidArgument: a name without an address, or an address that other
// machines can reach.
absl::StatusOr<std::vector<TcpAddress>> LoopbackOf(const std::string& listen);

// As LoopbackOf, also for addresses that other machines can reach.
absl::StatusOr<std::vector<TcpAddress>> AddressesOf(const std::string& listen);

// Replaces port 0 by a free port, equal for all addresses. Skips addresses of a
// family that this machine lacks, except the last. kUnavailable: the port is in
// use.
absl::StatusOr<TcpSockets> ListenOnTcp(const std::vector<TcpAddress>& addresses,
                                       const std::string& listen);

// Removes the socket of a dead server at `path`. kUnavailable: a program
// listens there; kAlreadyExists: the path is another kind of file;
// kInvalidArgument: the path is invalid for a socket.
absl::Status RemoveStaleSocket(const std::string& path);

// Listens at a path that does not exist yet.
absl::StatusOr<ListeningSocket> ListenOnUnix(const std::string& path);

}  // namespace tandem
