#include "program/listening_sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"

namespace tandem {
namespace {

constexpr unsigned kUserTimeoutMs = 20'000;
constexpr int kPortTries = 16;

// Returns HOST without its brackets, and PORT.
std::pair<std::string, std::string> Split(absl::string_view listen) {
  const size_t colon = listen.rfind(':');
  absl::string_view host = listen.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  return {std::string(host), std::string(listen.substr(colon + 1))};
}

bool IsLoopback(const sockaddr* address) {
  constexpr uint8_t kLoopbackNet = 127;
  if (address->sa_family == AF_INET) {
    const auto* const v4 = reinterpret_cast<const sockaddr_in*>(address);
    return ntohl(v4->sin_addr.s_addr) >> 24 == kLoopbackNet;
  }
  if (address->sa_family != AF_INET6) return false;
  const in6_addr& v6 =
      reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&v6) ||
         (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == kLoopbackNet);
}

std::string Numeric(const sockaddr* address, socklen_t size) {
  char host[NI_MAXHOST] = "an address";
  getnameinfo(address, size, host, sizeof(host), nullptr, 0, NI_NUMERICHOST);
  return host;
}

uint16_t& PortOf(sockaddr_storage& address) {
  return address.ss_family == AF_INET
             ? reinterpret_cast<sockaddr_in&>(address).sin_port
             : reinterpret_cast<sockaddr_in6&>(address).sin6_port;
}

// Returns an invalid descriptor on failure; errno has the reason.
UniqueFd ListenAt(const TcpAddress& address) {
  UniqueFd made(socket(address.bytes.ss_family,
                       SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.valid()) return made;
  const int on = 1;
  const int off = 0;
  // Accepted sockets inherit the options.
  setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  setsockopt(made.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(made.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &kUserTimeoutMs,
             sizeof(kUserTimeoutMs));
  if (address.bytes.ss_family == AF_INET6) {
    setsockopt(made.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  }
  if (bind(made.get(), reinterpret_cast<const sockaddr*>(&address.bytes),
           address.size) != 0 ||
      listen(made.get(), SOMAXCONN) != 0) {
    const int why = errno;
    made.reset();
    errno = why;
  }
  return made;
}

// Whether a program listens at `path`, which is short enough for a socket.
absl::StatusOr<bool> HasListener(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, path.size());
  const UniqueFd client(
      socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!client.valid()) return MakeSystemError("socket", path, errno);
  // EAGAIN: the listener's queue is full.
  if (connect(client.get(), reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) == 0 ||
      errno == EAGAIN) {
    return true;
  }
  if (errno == ECONNREFUSED || errno == ENOENT) return false;
  return MakeSystemError("connect", path, errno);
}

absl::Status CannotListen(const std::string& listen, int why) {
  if (why == EACCES) {
    return absl::PermissionDeniedError(absl::StrCat(
        "--listen: expected a port that this user may listen on, found that '",
        listen, "' is not (", std::strerror(why),
        "); next: --listen=127.0.0.1:0 takes a free port"));
  }
  return absl::UnavailableError(absl::StrCat(
      "--listen: expected an address that is free and this machine's own, "
      "found that '",
      listen, "' is not (", std::strerror(why),
      "); is another server running? Next: --listen=127.0.0.1:0 takes a free "
      "port"));
}

absl::StatusOr<std::vector<TcpAddress>> Resolve(const std::string& listen,
                                                bool only_loopback) {
  const auto [host, port] = Split(listen);
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | AI_PASSIVE;  // "*" is every address
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found,
                                                             &freeaddrinfo);
  if (error != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--listen: expected an address of this machine, found that '", host,
        "' has none (", gai_strerror(error),
        "); next: --listen=127.0.0.1:", port));
  }
  std::vector<TcpAddress> addresses;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    if (only_loopback && !IsLoopback(at->ai_addr)) {
      const std::string number = Numeric(at->ai_addr, at->ai_addrlen);
      const std::string forwarded = port == "0" ? "PORT" : port;
      return absl::InvalidArgumentError(absl::StrCat(
          "--listen: expected an address that this machine alone reaches "
          "(127.0.0.1, [::1], localhost), found '",
          host, "'", number == host ? "" : absl::StrCat(", which is ", number),
          ": connections of other machines are neither encrypted nor of a "
          "known user; next: --listen=127.0.0.1:",
          port, ", and on the other machine ssh -N -L ", forwarded,
          ":127.0.0.1:", forwarded,
          " THIS_MACHINE; or --allow_remote with the files of TLS"));
    }
    TcpAddress address = {.bytes = {}, .size = at->ai_addrlen};
    std::memcpy(&address.bytes, at->ai_addr, at->ai_addrlen);
    // Two lines of /etc/hosts may give a name the same address twice.
    if (std::none_of(addresses.begin(), addresses.end(),
                     [&address](const TcpAddress& known) {
                       return std::memcmp(&known.bytes, &address.bytes,
                                          sizeof(known.bytes)) == 0;
                     })) {
      addresses.push_back(address);
    }
  }
  return addresses;
}

}  // namespace

ListeningSocket::ListeningSocket(UniqueFd socket, std::string path)
    : socket_(std::move(socket)), path_(std::move(path)) {
  struct stat file;
  if (lstat(path_.c_str(), &file) != 0) return;
  device_ = file.st_dev;
  inode_ = file.st_ino;
}

ListeningSocket::~ListeningSocket() {
  struct stat file;
  if (socket_.valid() && !path_.empty() && lstat(path_.c_str(), &file) == 0 &&
      file.st_dev == device_ && file.st_ino == inode_) {
    unlink(path_.c_str());
  }
}

bool IsListenAddress(absl::string_view address) {
  if (address == "none") return true;
  const size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos || colon == 0) return false;
  const absl::string_view host = address.substr(0, colon);
  const absl::string_view digits = address.substr(colon + 1);
  uint32_t port = 0;
  // An IPv6 address with a port needs brackets.
  return (!absl::StrContains(host, ':') || absl::EndsWith(host, "]")) &&
         digits.find_first_not_of("0123456789") == absl::string_view::npos &&
         absl::SimpleAtoi(digits, &port) && port <= 65535 &&
         (port != 0 || digits == "0");
}

absl::StatusOr<std::vector<TcpAddress>> LoopbackOf(const std::string& listen) {
  return Resolve(listen, /*only_loopback=*/true);
}

absl::StatusOr<std::vector<TcpAddress>> AddressesOf(const std::string& listen) {
  return Resolve(listen, /*only_loopback=*/false);
}

absl::StatusOr<TcpSockets> ListenOnTcp(const std::vector<TcpAddress>& addresses,
                                       const std::string& listen) {
  int why = 0;
  for (int tries = 0; tries < kPortTries; ++tries) {
    TcpSockets made;
    bool taken = false;
    bool was_free = false;
    for (TcpAddress address : addresses) {
      uint16_t& port = PortOf(address.bytes);
      was_free = was_free || port == 0;
      if (port == 0) port = htons(made.port);
      UniqueFd socket = ListenAt(address);
      if (!socket.valid()) {
        why = errno;
        // If another program has the port at one of the addresses, clients
        // would reach one of the two at random.
        taken = taken || why == EADDRINUSE;
        continue;
      }
      getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address.bytes),
                  &address.size);
      made.port = ntohs(port);
      made.sockets.emplace_back(std::move(socket));
    }
    if (!taken && !made.sockets.empty()) return made;
    if (!taken || !was_free) break;
  }
  return CannotListen(listen, why);
}

absl::Status RemoveStaleSocket(const std::string& path) {
  constexpr size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
  if (path.size() > kLongest) {
    return absl::InvalidArgumentError(
        absl::StrCat("--socket: expected a path of at most ", kLongest,
                     " bytes, found ", path.size(), ": ", path));
  }
  const std::string folder = std::filesystem::absolute(path).parent_path();
  if (access(folder.c_str(), W_OK) != 0) {
    return MakeSystemError("--socket: access", folder, errno);
  }
  struct stat file;
  if (lstat(path.c_str(), &file) != 0) return absl::OkStatus();
  if (!S_ISSOCK(file.st_mode)) {
    return absl::AlreadyExistsError(absl::StrCat(
        "--socket: expected a path that is free or a socket, found another "
        "file at ",
        path));
  }
  TANDEM_ASSIGN_OR_RETURN(const bool taken, HasListener(path));
  if (taken) {
    return absl::UnavailableError(absl::StrCat(
        "--socket: expected a path that is free, found one at which another "
        "program listens; give another path, or stop that program: ",
        path));
  }
  if (unlink(path.c_str()) != 0) return MakeSystemError("unlink", path, errno);
  return absl::OkStatus();
}

absl::StatusOr<ListeningSocket> ListenOnUnix(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  UniqueFd made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.valid()) return MakeSystemError("socket", path, errno);
  if (bind(made.get(), reinterpret_cast<const sockaddr*>(&address),
           sizeof(address)) != 0) {
    return MakeSystemError("--socket: bind", path, errno);
  }
  ListeningSocket socket(std::move(made), path);
  if (listen(socket.fd(), SOMAXCONN) != 0) {
    return MakeSystemError("--socket: listen", path, errno);
  }
  return socket;
}

}  // namespace tandem
