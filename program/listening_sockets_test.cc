#include "program/listening_sockets.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

TEST(LoopbackOf, AcceptsLoopbackAddresses) {
  for (const char* const listen :
       {"127.0.0.1:0", "127.1.2.3:50055", "[::1]:50055", "[::ffff:127.0.0.1]:1",
        "localhost:65535"}) {
    const absl::StatusOr<std::vector<TcpAddress>> found = LoopbackOf(listen);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_FALSE(found->empty());
  }
}

TEST(LoopbackOf, RefusesAddressesThatOtherMachinesReach) {
  for (const char* const listen :
       {"0.0.0.0:0", "[::]:50055", "192.0.2.1:50055", "[2001:db8::1]:50055",
        "[::ffff:192.0.2.1]:50055", "[::ffff:0.0.0.0]:50055", "*:50055",
        "128.0.0.1:50055", "0:50055"}) {
    const absl::Status status = LoopbackOf(listen).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << listen << ": " << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "ssh -N -L")) << status;
  }
}

TEST(AddressesOf, AlsoAcceptsAddressesThatOtherMachinesReach) {
  for (const char* const listen : {"0.0.0.0:0", "192.0.2.1:8900", "[::]:1"}) {
    const absl::StatusOr<std::vector<TcpAddress>> found = AddressesOf(listen);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->size(), 1U) << listen;
  }
  EXPECT_FALSE(AddressesOf("no-such-host.invalid:1").ok());
}

TEST(LoopbackOf, RefusesANameWithoutAddress) {
  const absl::Status status = LoopbackOf("no-such-host.invalid:1").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
}

TEST(ListenOnTcp, TakesAFreePortForPortZero) {
  const absl::StatusOr<std::vector<TcpAddress>> at = LoopbackOf("localhost:0");
  ASSERT_TRUE(at.ok()) << at.status();
  const absl::StatusOr<TcpSockets> tcp = ListenOnTcp(*at, "localhost:0");
  ASSERT_TRUE(tcp.ok()) << tcp.status();
  EXPECT_NE(tcp->port, 0);
  EXPECT_FALSE(tcp->sockets.empty());
}

TEST(ListenOnTcp, RefusesAPortThatIsTaken) {
  const absl::StatusOr<TcpSockets> first =
      ListenOnTcp(*LoopbackOf("127.0.0.1:0"), "127.0.0.1:0");
  ASSERT_TRUE(first.ok()) << first.status();
  const std::string same = absl::StrCat("127.0.0.1:", first->port);
  const absl::Status status = ListenOnTcp(*LoopbackOf(same), same).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), same)) << status;
}

// Not in TempDir, whose path may be longer than a socket's path may be.
class UnixSocketTest : public testing::Test {
 protected:
  ~UnixSocketTest() override { std::filesystem::remove_all(folder_); }

 private:
  char name_[32] = "/tmp/tandem-sockets-XXXXXX";
  const std::filesystem::path folder_ = mkdtemp(name_);

 protected:
  const std::string path_ = folder_ / "x.sock";
};

TEST_F(UnixSocketTest, FileIsRemovedWithTheSocket) {
  {
    const absl::StatusOr<ListeningSocket> socket = ListenOnUnix(path_);
    ASSERT_TRUE(socket.ok()) << socket.status();
    EXPECT_TRUE(std::filesystem::is_socket(path_));
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(UnixSocketTest, FileThatReplacedItStays) {
  {
    const absl::StatusOr<ListeningSocket> socket = ListenOnUnix(path_);
    ASSERT_TRUE(socket.ok()) << socket.status();
    std::filesystem::rename(path_, path_ + ".moved");
    std::ofstream(path_ + ".other") << "other";
    std::filesystem::rename(path_ + ".other", path_);
  }
  EXPECT_TRUE(std::filesystem::is_regular_file(path_));
}

TEST_F(UnixSocketTest, OnlyStaleSocketsAreRemoved) {
  {
    absl::StatusOr<ListeningSocket> socket = ListenOnUnix(path_);
    ASSERT_TRUE(socket.ok()) << socket.status();
    EXPECT_TRUE(absl::IsUnavailable(RemoveStaleSocket(path_)));
    EXPECT_TRUE(std::filesystem::is_socket(path_));
    std::filesystem::rename(path_, path_ + ".stale");
  }
  EXPECT_TRUE(RemoveStaleSocket(path_ + ".stale").ok());
  EXPECT_FALSE(std::filesystem::exists(path_ + ".stale"));
  EXPECT_TRUE(RemoveStaleSocket(path_).ok());  // there is no socket
}

TEST_F(UnixSocketTest, AnotherFileIsNotRemoved) {
  std::ofstream(path_) << "other";
  EXPECT_TRUE(absl::IsAlreadyExists(RemoveStaleSocket(path_)));
  EXPECT_TRUE(std::filesystem::exists(path_));
}

}  // namespace
}  // namespace tandem
