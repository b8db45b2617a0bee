// PeerOwners: the user of the process at the other end of a connection, as the
// kernel reports it. AllowedUsers: the users whose connections a server
// accepts.
//
// Data flow: an accepted socket -> SO_PEERCRED (Unix) or NETLINK_SOCK_DIAG (TCP
// on this machine) -> a user id, or nothing.
// Ownership: one thread, which owns the object.

#pragma once

#include <netinet/in.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/os/unique_fd.h"

namespace tandem {

// Whether `uid`, as the kernel shows it to this process, is one user. The
// overflow uid represents every user that the user namespace does not map.
// Reads /proc.
bool NamesOneUser(uid_t uid);

// Returns AF_UNIX, AF_INET or AF_INET6; AF_UNSPEC if it is not a socket.
int FamilyOf(int connection);

class PeerOwners {
 public:
  // Opens the netlink socket. If that fails, TCP connections have no owner.
  PeerOwners();

  // Returns the user that made the client's socket of `connection`, an accepted
  // and connected stream socket. nullopt: the kernel reports no user, as for a
  // client that has closed its socket, an overflow uid, or a system without
  // NETLINK_SOCK_DIAG. Blocks at most a second; usually makes one system call.
  std::optional<uid_t> OwnerOf(int connection);

 private:
  std::optional<uid_t> TcpOwner(int connection);

  UniqueFd netlink_;
  uint32_t last_sequence_ = 0;
};

// Private; only peer_owner_test uses it.
namespace peer_owner_internal {

// Both ends of a TCP connection, from the client's view; IPv4 as
// ::ffff:a.b.c.d.
struct TcpEnds {
  in6_addr client = {};
  in6_addr server = {};
  uint16_t client_port = 0;  // network byte order, as the next one
  uint16_t server_port = 0;
};

// The answer to one query in a datagram from netlink.
struct Answer {
  bool is_answer = false;      // it has this sequence number
  std::optional<uid_t> owner;  // of an established socket with these ends
};
Answer ReadAnswer(absl::string_view datagram, uint32_t sequence,
                  const TcpEnds& ends);

}  // namespace peer_owner_internal

class AllowedUsers {
 public:
  // `more`: names or uids with commas between them; empty: none. May block on
  // the system's user database. kInvalidArgument: an unknown name.
  // kFailedPrecondition: the kernel shows this process's own user as an
  // unmapped user.
  static absl::StatusOr<AllowedUsers> Parse(absl::string_view more);

  // Root is a user like any other, since programs of root forward connections
  // of other users.
  bool Has(uid_t uid) const { return uids_.contains(uid); }

  bool HasOthers() const { return uids_.size() > 1; }

  // The server's own user, such as "alice (uid 1000)".
  const std::string& own() const { return own_; }

 private:
  explicit AllowedUsers(std::string own) : own_(std::move(own)) {}

  std::string own_;
  std::set<uid_t> uids_;
};

}  // namespace tandem
