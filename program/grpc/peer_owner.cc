#include "program/grpc/peer_owner.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/quoted.h"

namespace tandem {
namespace {

using peer_owner_internal::Answer;
using peer_owner_internal::ReadAnswer;
using peer_owner_internal::TcpEnds;

constexpr double kAnswerSecs = 1;
constexpr uid_t kUsualOverflow = 65534;

struct Question {
  nlmsghdr header;
  inet_diag_req_v2 request;
};

in6_addr Mapped(const in_addr& address) {
  in6_addr mapped = {};
  mapped.s6_addr[10] = mapped.s6_addr[11] = 0xff;
  std::memcpy(&mapped.s6_addr[12], &address, sizeof(address));
  return mapped;
}

// Returns false if the socket is not TCP.
bool TakeEnd(const sockaddr_storage& from, in6_addr* address, uint16_t* port) {
  if (from.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(from);
    *address = Mapped(v4.sin_addr);
    *port = v4.sin_port;
    return true;
  }
  if (from.ss_family != AF_INET6) return false;
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(from);
  *address = v6.sin6_addr;
  *port = v6.sin6_port;
  return true;
}

std::optional<TcpEnds> EndsOf(int connection) {
  TcpEnds ends;
  sockaddr_storage peer = {};
  sockaddr_storage own = {};
  socklen_t peer_bytes = sizeof(peer);
  socklen_t own_bytes = sizeof(own);
  if (getpeername(connection, reinterpret_cast<sockaddr*>(&peer),
                  &peer_bytes) != 0 ||
      getsockname(connection, reinterpret_cast<sockaddr*>(&own), &own_bytes) !=
          0 ||
      !TakeEnd(peer, &ends.client, &ends.client_port) ||
      !TakeEnd(own, &ends.server, &ends.server_port)) {
    return std::nullopt;
  }
  return ends;
}

// The kernel lists IPv4 connections of IPv6 sockets as IPv4.
void PutAddress(const in6_addr& address, bool is_v4, uint32_t* words) {
  std::memset(words, 0, sizeof(in6_addr));
  if (is_v4) {
    std::memcpy(words, &address.s6_addr[12], sizeof(in_addr));
  } else {
    std::memcpy(words, &address, sizeof(address));
  }
}

Question Ask(const TcpEnds& ends, uint32_t sequence) {
  Question question = {};
  const bool is_v4 =
      IN6_IS_ADDR_V4MAPPED(&ends.client) && IN6_IS_ADDR_V4MAPPED(&ends.server);
  question.header = {.nlmsg_len = sizeof(question),
                     .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                     .nlmsg_flags = NLM_F_REQUEST,
                     .nlmsg_seq = sequence,
                     .nlmsg_pid = 0};
  inet_diag_req_v2& request = question.request;
  request.sdiag_family = is_v4 ? AF_INET : AF_INET6;
  request.sdiag_protocol = IPPROTO_TCP;
  request.idiag_states = std::numeric_limits<uint32_t>::max();
  request.id.idiag_sport = ends.client_port;
  request.id.idiag_dport = ends.server_port;
  PutAddress(ends.client, is_v4, request.id.idiag_src);
  PutAddress(ends.server, is_v4, request.id.idiag_dst);
  request.id.idiag_cookie[0] = request.id.idiag_cookie[1] =
      static_cast<uint32_t>(INET_DIAG_NOCOOKIE);
  return question;
}

bool IsAddress(uint8_t family, const uint32_t* words, const in6_addr& asked) {
  in6_addr found = {};
  if (family == AF_INET) {
    in_addr v4;
    std::memcpy(&v4, words, sizeof(v4));
    found = Mapped(v4);
  } else if (family == AF_INET6) {
    std::memcpy(&found, words, sizeof(found));
  } else {
    return false;
  }
  return std::memcmp(&found, &asked, sizeof(found)) == 0;
}

// A client may send data and close its socket; then another user can take its
// port. So the answer is valid only while the connection is established at both
// ends.
bool IsEstablished(int connection) {
  tcp_info info = {};
  socklen_t bytes = sizeof(info);
  return getsockopt(connection, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 &&
         info.tcpi_state == TCP_ESTABLISHED;
}

}  // namespace

namespace peer_owner_internal {

Answer ReadAnswer(absl::string_view datagram, uint32_t sequence,
                  const TcpEnds& ends) {
  nlmsghdr header;
  if (datagram.size() < sizeof(header)) return {};
  std::memcpy(&header, datagram.data(), sizeof(header));
  if (header.nlmsg_seq != sequence) return {};
  Answer answer = {.is_answer = true, .owner = std::nullopt};
  inet_diag_msg found;
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY ||  // such as NLMSG_ERROR
      header.nlmsg_len > datagram.size() ||
      header.nlmsg_len < NLMSG_LENGTH(sizeof(found))) {
    return answer;
  }
  std::memcpy(&found, datagram.data() + NLMSG_HDRLEN, sizeof(found));
  // If no connection has these ends, the kernel answers with a socket that
  // listens at the client's address. A socket without a process (closed, in
  // TIME_WAIT, not accepted) has no inode, and its uid is meaningless.
  if (found.idiag_state == TCP_ESTABLISHED && found.idiag_inode != 0 &&
      found.id.idiag_sport == ends.client_port &&
      found.id.idiag_dport == ends.server_port &&
      IsAddress(found.idiag_family, found.id.idiag_src, ends.client) &&
      IsAddress(found.idiag_family, found.id.idiag_dst, ends.server)) {
    answer.owner = found.idiag_uid;
  }
  return answer;
}

}  // namespace peer_owner_internal

bool NamesOneUser(uid_t uid) {
  uid_t overflow = kUsualOverflow;
  std::ifstream("/proc/sys/kernel/overflowuid") >> overflow;
  if (uid != overflow) return true;
  // If every uid is mapped to itself, this uid is an ordinary user's.
  uint64_t inside = 1;
  uint64_t outside = 1;
  uint64_t count = 0;
  std::ifstream("/proc/self/uid_map") >> inside >> outside >> count;
  return inside == 0 && outside == 0 &&
         count == std::numeric_limits<uint32_t>::max();
}

PeerOwners::PeerOwners()
    : netlink_(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
                      NETLINK_SOCK_DIAG)) {}

int FamilyOf(int connection) {
  int family = AF_UNSPEC;
  socklen_t bytes = sizeof(family);
  getsockopt(connection, SOL_SOCKET, SO_DOMAIN, &family, &bytes);
  return family;
}

std::optional<uid_t> PeerOwners::OwnerOf(int connection) {
  std::optional<uid_t> owner;
  if (FamilyOf(connection) == AF_UNIX) {
    ucred peer = {};
    socklen_t bytes = sizeof(peer);
    if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0) {
      owner = peer.uid;
    }
  } else {
    owner = TcpOwner(connection);
  }
  if (owner.has_value() && !NamesOneUser(*owner)) return std::nullopt;
  return owner;
}

std::optional<uid_t> PeerOwners::TcpOwner(int connection) {
  const std::optional<TcpEnds> ends = EndsOf(connection);
  if (!ends.has_value() || !netlink_.valid()) return std::nullopt;
  const uint32_t sequence = ++last_sequence_;
  const Question question = Ask(*ends, sequence);
  sockaddr_nl kernel = {};
  kernel.nl_family = AF_NETLINK;
  const Deadline deadline = Deadline::After(kAnswerSecs);
  while (sendto(netlink_.get(), &question, sizeof(question), 0,
                reinterpret_cast<const sockaddr*>(&kernel),
                sizeof(kernel)) < 0) {
    if (errno != EINTR || deadline.PassedAt(MonotonicNanos())) {
      return std::nullopt;
    }
  }
  alignas(nlmsghdr) char datagram[8192];
  for (;;) {
    sockaddr_nl from = {};
    socklen_t from_bytes = sizeof(from);
    const ssize_t bytes =
        recvfrom(netlink_.get(), datagram, sizeof(datagram), 0,
                 reinterpret_cast<sockaddr*>(&from), &from_bytes);
    if (bytes >= 0 && from.nl_pid == 0) {  // 0: the kernel
      const Answer answer =
          ReadAnswer({datagram, static_cast<size_t>(bytes)}, sequence, *ends);
      if (answer.is_answer) {
        return IsEstablished(connection) ? answer.owner : std::nullopt;
      }
    }
    if (bytes < 0 && errno != EAGAIN && errno != EINTR) return std::nullopt;
    const int64_t left_ns = deadline.at_ns() - MonotonicNanos();
    if (left_ns <= 0) return std::nullopt;
    if (bytes < 0) {
      pollfd ready = {.fd = netlink_.get(), .events = POLLIN, .revents = 0};
      poll(&ready, 1, static_cast<int>(left_ns / 1'000'000) + 1);
    }
  }
}

absl::StatusOr<AllowedUsers> AllowedUsers::Parse(absl::string_view more) {
  const uid_t own = geteuid();
  if (!NamesOneUser(own)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "expected a uid that the user namespace maps, found uid ", own,
        ", the overflow uid of all users that it does not map; next: "
        "start this program by unshare --map-current-user, or outside of the "
        "namespace"));
  }
  const passwd* const entry = getpwuid(own);
  AllowedUsers users(entry == nullptr
                         ? absl::StrCat("uid ", own)
                         : absl::StrCat(entry->pw_name, " (uid ", own, ")"));
  users.uids_.insert(own);
  if (more.empty()) return users;
  for (const absl::string_view name : absl::StrSplit(more, ',')) {
    uint32_t uid = 0;
    const bool is_number =
        name.find_first_not_of("0123456789") == absl::string_view::npos &&
        absl::SimpleAtoi(name, &uid);
    if (!is_number) {
      const passwd* const found = getpwnam(std::string(name).c_str());
      if (found == nullptr) {
        return absl::InvalidArgumentError(absl::StrCat(
            "--allow_users: expected names or uids of users between commas, "
            "found ",
            Quoted(name),
            ", which is no user of this machine; next: id -u "
            "prints a user's uid"));
      }
      uid = found->pw_uid;
    }
    // (uid_t)-1 means "none" in many calls.
    if (uid == std::numeric_limits<uid_t>::max() || !NamesOneUser(uid)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--allow_users: expected names or uids of users, found uid ", uid,
          ", by which the kernel names no single user here"));
    }
    users.uids_.insert(uid);
  }
  return users;
}

}  // namespace tandem
