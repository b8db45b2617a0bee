#include "program/grpc/peer_owner.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

#include "base/os/unique_fd.h"

namespace tandem {
namespace {

using peer_owner_internal::Answer;
using peer_owner_internal::ReadAnswer;
using peer_owner_internal::TcpEnds;

constexpr uid_t kOther = 12345;

struct Connection {
  UniqueFd client;
  UniqueFd server;
};

struct Address {
  sockaddr_storage bytes = {};
  socklen_t size = 0;
  const sockaddr* get() const {
    return reinterpret_cast<const sockaddr*>(&bytes);
  }
};

Address Loopback(int family, const char* host, uint16_t port = 0) {
  Address address;
  if (family == AF_INET) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(address.bytes);
    v4.sin_family = AF_INET;
    v4.sin_port = port;
    inet_pton(AF_INET, host, &v4.sin_addr);
    address.size = sizeof(v4);
  } else {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(address.bytes);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = port;
    inet_pton(AF_INET6, host, &v6.sin6_addr);
    address.size = sizeof(v6);
  }
  return address;
}

uint16_t PortOf(int socket) {
  Address address;
  address.size = sizeof(address.bytes);
  getsockname(socket, reinterpret_cast<sockaddr*>(&address.bytes),
              &address.size);
  return address.bytes.ss_family == AF_INET
             ? reinterpret_cast<sockaddr_in&>(address.bytes).sin_port
             : reinterpret_cast<sockaddr_in6&>(address.bytes).sin6_port;
}

// Makes a socket as user `uid`, if the test may do so: a socket belongs to the
// user that creates it.
UniqueFd SocketOf(std::optional<uid_t> uid, int family) {
  const uid_t own = geteuid();
  EXPECT_EQ(seteuid(uid.value_or(own)), 0);
  UniqueFd made(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(seteuid(own), 0);
  return made;
}

Connection Connect(int family, const char* host, int client_family,
                   const char* client_host,
                   std::optional<uid_t> uid = std::nullopt) {
  const UniqueFd listener(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const Address at = Loopback(family, host);
  EXPECT_EQ(bind(listener.get(), at.get(), at.size), 0) << strerror(errno);
  EXPECT_EQ(listen(listener.get(), 1), 0);
  Connection made;
  made.client = SocketOf(uid, client_family);
  const Address to =
      Loopback(client_family, client_host, PortOf(listener.get()));
  EXPECT_EQ(connect(made.client.get(), to.get(), to.size), 0)
      << strerror(errno);
  made.server =
      UniqueFd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  return made;
}

Connection Connect4(std::optional<uid_t> uid = std::nullopt) {
  return Connect(AF_INET, "127.0.0.1", AF_INET, "127.0.0.1", uid);
}

bool HasIpv6() {
  const UniqueFd probe(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const Address at = Loopback(AF_INET6, "::1");
  return probe.valid() && bind(probe.get(), at.get(), at.size) == 0;
}

TEST(PeerOwners, KnowsAClientByIpv4) {
  const Connection connection = Connect4();
  EXPECT_EQ(PeerOwners().OwnerOf(connection.server.get()), geteuid());
}

TEST(PeerOwners, KnowsAClientByIpv6) {
  if (!HasIpv6()) GTEST_SKIP() << "no IPv6";
  const Connection connection = Connect(AF_INET6, "::1", AF_INET6, "::1");
  EXPECT_EQ(PeerOwners().OwnerOf(connection.server.get()), geteuid());
}

TEST(PeerOwners, KnowsClientsByIpv4MappedIntoIpv6) {
  if (!HasIpv6()) GTEST_SKIP() << "no IPv6";
  PeerOwners owners;
  for (const Connection& connection :
       {Connect(AF_INET6, "::ffff:127.0.0.1", AF_INET, "127.0.0.1"),
        Connect(AF_INET6, "::ffff:127.0.0.1", AF_INET6, "::ffff:127.0.0.1"),
        Connect(AF_INET, "127.0.0.1", AF_INET6, "::ffff:127.0.0.1")}) {
    EXPECT_EQ(owners.OwnerOf(connection.server.get()), geteuid());
  }
}

TEST(PeerOwners, KnowsAClientOfAUnixSocket) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd client(ends[0]);
  const UniqueFd server(ends[1]);
  EXPECT_EQ(PeerOwners().OwnerOf(server.get()), geteuid());
}

TEST(PeerOwners, DistinguishesUsers) {
  if (geteuid() != 0) GTEST_SKIP() << "only root makes others' sockets";
  PeerOwners owners;
  const Connection other = Connect4(kOther);
  EXPECT_EQ(owners.OwnerOf(other.server.get()), kOther);
  const Connection own = Connect4();
  EXPECT_EQ(owners.OwnerOf(own.server.get()), 0u);
  if (!HasIpv6()) return;
  const Connection v6 = Connect(AF_INET6, "::1", AF_INET6, "::1", kOther);
  EXPECT_EQ(owners.OwnerOf(v6.server.get()), kOther);
}

TEST(PeerOwners, AClientThatHasClosedIsUnknown) {
  PeerOwners owners;
  Connection connection = Connect4();
  connection.client.reset();  // FIN_WAIT2, without a process
  EXPECT_EQ(owners.OwnerOf(connection.server.get()), std::nullopt);
}

TEST(PeerOwners, AClientThatHasResetIsUnknown) {
  Connection connection = Connect4();
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  ASSERT_EQ(setsockopt(connection.client.get(), SOL_SOCKET, SO_LINGER, &at_once,
                       sizeof(at_once)),
            0);
  connection.client.reset();
  EXPECT_EQ(PeerOwners().OwnerOf(connection.server.get()), std::nullopt);
}

TEST(PeerOwners, ASocketThatNoProcessHasYetIsUnknown) {
  const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(listen(listener.get(), 1), 0);
  const Address at = Loopback(AF_INET, "127.0.0.1", PortOf(listener.get()));
  const UniqueFd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(client.get(), at.get(), at.size), 0);
  // The other end is established, but was not accepted yet.
  EXPECT_EQ(PeerOwners().OwnerOf(client.get()), std::nullopt);
}

TEST(PeerOwners, AnUnmappedUserIsUnknown) {
  if (geteuid() != 0) GTEST_SKIP() << "only root makes others' sockets";
  const Connection other = Connect4(kOther);
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWUSER) != 0) _exit(77);
    const UniqueFd map(open("/proc/self/uid_map", O_WRONLY));
    if (write(map.get(), "0 0 1", 5) != 5) _exit(77);
    PeerOwners owners;
    const Connection own = Connect4();
    _exit(owners.OwnerOf(own.server.get()) != 0                ? 1
          : owners.OwnerOf(other.server.get()) != std::nullopt ? 2
                                                               : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no user namespaces";
  EXPECT_EQ(status, 0);
}

TEST(PeerOwners, DescriptorsOtherThanConnectionsAreUnknown) {
  PeerOwners owners;
  const UniqueFd unconnected(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(owners.OwnerOf(unconnected.get()), std::nullopt);
  const UniqueFd file(open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(owners.OwnerOf(file.get()), std::nullopt);
  EXPECT_EQ(owners.OwnerOf(-1), std::nullopt);
}

class ReadAnswerTest : public testing::Test {
 protected:
  ReadAnswerTest() {
    ends_.client.s6_addr[10] = ends_.client.s6_addr[11] = 0xff;
    ends_.client.s6_addr[12] = 127;
    ends_.client.s6_addr[15] = 1;
    ends_.server = ends_.client;
    ends_.client_port = htons(40000);
    ends_.server_port = htons(50055);
    header_ = {.nlmsg_len = NLMSG_LENGTH(sizeof(message_)),
               .nlmsg_type = SOCK_DIAG_BY_FAMILY,
               .nlmsg_flags = 0,
               .nlmsg_seq = 7,
               .nlmsg_pid = 1};
    message_.idiag_family = AF_INET;
    message_.idiag_state = TCP_ESTABLISHED;
    message_.id.idiag_sport = ends_.client_port;
    message_.id.idiag_dport = ends_.server_port;
    message_.id.idiag_src[0] = htonl(INADDR_LOOPBACK);
    message_.id.idiag_dst[0] = htonl(INADDR_LOOPBACK);
    message_.idiag_uid = 1000;
    message_.idiag_inode = 99;
  }

  Answer Read(size_t bytes = sizeof(nlmsghdr) + sizeof(inet_diag_msg)) const {
    std::string datagram(reinterpret_cast<const char*>(&header_),
                         sizeof(header_));
    datagram.append(reinterpret_cast<const char*>(&message_), sizeof(message_));
    return ReadAnswer(datagram.substr(0, bytes), 7, ends_);
  }

  void ExpectUnknown() const {
    EXPECT_TRUE(Read().is_answer);
    EXPECT_EQ(Read().owner, std::nullopt);
  }

  TcpEnds ends_;
  nlmsghdr header_;
  inet_diag_msg message_ = {};
};

TEST_F(ReadAnswerTest, NamesTheOwnerOfAnEstablishedSocket) {
  EXPECT_TRUE(Read().is_answer);
  EXPECT_EQ(Read().owner, 1000u);
}

TEST_F(ReadAnswerTest, AnErrorNamesNoOwner) {
  header_.nlmsg_type = NLMSG_ERROR;
  ExpectUnknown();
}

TEST_F(ReadAnswerTest, ASocketWithoutInodeHasNoOwner) {
  message_.idiag_inode = 0;
  message_.idiag_uid = 0;
  ExpectUnknown();
}

TEST_F(ReadAnswerTest, ASocketThatIsNotEstablishedHasNoOwner) {
  for (int state = TCP_ESTABLISHED + 1; state <= TCP_CLOSING + 1; ++state) {
    message_.idiag_state = static_cast<uint8_t>(state);
    ExpectUnknown();
  }
}

TEST_F(ReadAnswerTest, AnotherSocketHasNoOwner) {
  const inet_diag_msg asked = message_;
  message_.id.idiag_sport = htons(40001);
  ExpectUnknown();
  message_ = asked;
  message_.id.idiag_dport = 0;
  ExpectUnknown();
  message_ = asked;
  message_.id.idiag_src[0] = htonl(INADDR_LOOPBACK + 1);
  ExpectUnknown();
  message_ = asked;
  message_.id.idiag_dst[0] = 0;
  ExpectUnknown();
  message_ = asked;
  message_.idiag_family = AF_INET6;  // 7f00:1::
  ExpectUnknown();
  message_ = asked;
  message_.idiag_family = AF_UNIX;
  ExpectUnknown();
}

TEST_F(ReadAnswerTest, IgnoresTheAnswerToAnotherQuestion) {
  header_.nlmsg_seq = 6;
  EXPECT_FALSE(Read().is_answer);
}

TEST_F(ReadAnswerTest, ACutAnswerNamesNoOwner) {
  for (size_t bytes = 0; bytes < sizeof(nlmsghdr) + sizeof(message_); ++bytes) {
    EXPECT_EQ(Read(bytes).owner, std::nullopt);
  }
  header_.nlmsg_len = sizeof(nlmsghdr);
  EXPECT_EQ(Read().owner, std::nullopt);
}

TEST(NamesOneUser, HoldsForThisUser) { EXPECT_TRUE(NamesOneUser(geteuid())); }

}  // namespace
}  // namespace tandem
