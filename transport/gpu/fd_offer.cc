#include "transport/gpu/fd_offer.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/error.h"
#include "base/os/blocked_signals.h"
#include "base/printable.h"

namespace tandem {
namespace {

constexpr uint64_t kMagic = 0x6466206d65646e74;  // "tndem fd"
constexpr size_t kMostName = 63;

struct Address {
  sockaddr_un socket = {};
  socklen_t bytes = 0;
};

Address AddressOf(absl::string_view name) {
  Address address;
  address.socket.sun_family = AF_UNIX;
  // The first byte is NUL: an abstract name.
  name.copy(address.socket.sun_path + 1, name.size());
  address.bytes =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

const sockaddr* Pointer(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address.socket);
}

// The user of the process at the other end; that of no user after an error.
uid_t UserOfPeer(int connection) {
  ucred peer = {.pid = 0, .uid = static_cast<uid_t>(-1), .gid = 0};
  socklen_t bytes = sizeof(peer);
  (void)getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &bytes);
  return peer.uid;
}

// Room for one descriptor, aligned as the kernel wants it.
union Control {
  char bytes[CMSG_SPACE(sizeof(int))];
  cmsghdr align;
};

void SendFd(int connection, int fd) {
  uint64_t magic = kMagic;
  iovec data = {.iov_base = &magic, .iov_len = sizeof(magic)};
  Control control = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof(control.bytes);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  // A taker that has gone needs no answer.
  (void)sendmsg(connection, &message, MSG_NOSIGNAL);
}

absl::Status Stale(absl::string_view name, absl::string_view found) {
  return MakeError(
      ErrorCode::kGpuStaleHandle,
      absl::StrCat("GPU memory '", PrintableHead(name, kMostName),
                   "': expected an engine that offers it, found ", found,
                   "; start the engine again and call reconnect"));
}

absl::Status TimedOut(absl::string_view name, double timeout_secs) {
  return MakeError(
      ErrorCode::kStepTimeout,
      absl::StrCat("GPU memory '", name, "': expected a descriptor within ",
                   timeout_secs, " s, found none"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<FdOffer>> FdOffer::Start(UniqueFd fd) {
  uint64_t random[2];
  if (getrandom(random, sizeof(random), 0) != sizeof(random)) {
    return MakeSystemError("getrandom", "a socket's name", errno);
  }
  std::string name =
      absl::StrFormat("tandem-gpu-%016x%016x", random[0], random[1]);
  UniqueFd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  UniqueFd end(eventfd(0, EFD_CLOEXEC));
  if (listener.get() < 0 || end.get() < 0) {
    return MakeSystemError("socket", name, errno);
  }
  const Address address = AddressOf(name);
  if (bind(listener.get(), Pointer(address), address.bytes) != 0 ||
      listen(listener.get(), 16) != 0) {
    return MakeSystemError("bind", name, errno);
  }
  return std::unique_ptr<FdOffer>(new FdOffer(
      std::move(name), std::move(fd), std::move(listener), std::move(end)));
}

FdOffer::FdOffer(std::string name, UniqueFd fd, UniqueFd listener, UniqueFd end)
    : name_(std::move(name)),
      fd_(std::move(fd)),
      listener_(std::move(listener)),
      end_(std::move(end)) {
  const BlockedSignals blocked;
  thread_ = std::thread([this] { Serve(); });
}

FdOffer::~FdOffer() {
  const uint64_t one = 1;
  if (write(end_.get(), &one, sizeof(one)) == sizeof(one)) thread_.join();
}

void FdOffer::Serve() const {
  for (;;) {
    pollfd both[] = {{.fd = listener_.get(), .events = POLLIN, .revents = 0},
                     {.fd = end_.get(), .events = POLLIN, .revents = 0}};
    if (poll(both, 2, -1) < 0) continue;
    if (both[1].revents != 0) return;
    const UniqueFd connection(
        accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (connection.get() < 0) {
      // Such as too many open files: does not spin until there are fewer.
      (void)poll(&both[1], 1, 10);
      continue;
    }
    if (UserOfPeer(connection.get()) == geteuid()) {
      SendFd(connection.get(), fd_.get());
    }
  }
}

absl::StatusOr<UniqueFd> TakeFd(absl::string_view name, double timeout_secs) {
  if (name.empty() || name.size() > kMostName) return Stale(name, "no name");
  const UniqueFd connection(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (connection.get() < 0) return MakeSystemError("socket", name, errno);
  // The kernel takes 0 for no limit.
  const timeval timeout = absl::ToTimeval(
      std::max(absl::Seconds(timeout_secs), absl::Microseconds(1)));
  for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) {
    (void)setsockopt(connection.get(), SOL_SOCKET, option, &timeout,
                     sizeof(timeout));
  }
  const Address address = AddressOf(name);
  if (connect(connection.get(), Pointer(address), address.bytes) != 0) {
    if (errno == ECONNREFUSED) return Stale(name, "none");
    if (errno == EAGAIN) return TimedOut(name, timeout_secs);  // a full queue
    return MakeSystemError("connect", name, errno);
  }
  const uid_t peer = UserOfPeer(connection.get());
  if (peer != geteuid()) {
    return MakeError(ErrorCode::kAccessDenied,
                     absl::StrCat("GPU memory '", name,
                                  "': expected an engine of this user, found "
                                  "uid ",
                                  peer));
  }
  uint64_t magic = 0;
  iovec data = {.iov_base = &magic, .iov_len = sizeof(magic)};
  Control control = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof(control.bytes);
  ssize_t got = 0;
  do {
    got = recvmsg(connection.get(), &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    return TimedOut(name, timeout_secs);
  }
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (got < 0 || header == nullptr || header->cmsg_level != SOL_SOCKET ||
      header->cmsg_type != SCM_RIGHTS ||
      header->cmsg_len != CMSG_LEN(sizeof(int))) {
    return Stale(name, "one that ended, or another program");
  }
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof(fd));
  UniqueFd taken(fd);
  if (got != sizeof(magic) || magic != kMagic) {
    return Stale(name, "another program");
  }
  return taken;
}

}  // namespace tandem
