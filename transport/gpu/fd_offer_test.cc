#include "transport/gpu/fd_offer.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/os/unique_fd.h"

namespace tandem {
namespace {

UniqueFd Memory() { return UniqueFd(memfd_create("offered", MFD_CLOEXEC)); }

ino_t InodeOf(int fd) {
  struct stat file = {};
  EXPECT_EQ(fstat(fd, &file), 0);
  return file.st_ino;
}

TEST(FdOffer, GivesADescriptorOfTheSameFileToEachTaker) {
  UniqueFd memory = Memory();
  const ino_t inode = InodeOf(memory.get());
  const auto offer = FdOffer::Start(std::move(memory)).value();
  EXPECT_LE(offer->name().size(), 63U);
  for (int taker = 0; taker < 3; ++taker) {
    const UniqueFd taken = TakeFd(offer->name(), 10).value();
    EXPECT_EQ(InodeOf(taken.get()), inode);
  }
}

TEST(FdOffer, EndsWithItsOwner) {
  auto offer = FdOffer::Start(Memory()).value();
  const std::string name = offer->name();
  offer.reset();
  EXPECT_EQ(CodeOf(TakeFd(name, 10).status()), ErrorCode::kGpuStaleHandle);
}

TEST(FdOffer, AKilledOwnerLeavesAStaleName) {
  int names[2];
  ASSERT_EQ(pipe(names), 0);
  const pid_t owner = fork();
  if (owner == 0) {
    const auto offer = FdOffer::Start(Memory()).value();
    (void)!write(names[1], offer->name().data(), offer->name().size());
    pause();
  }
  char name[64] = {};
  ASSERT_GT(read(names[0], name, 63), 0);
  EXPECT_TRUE(TakeFd(name, 10).ok());
  kill(owner, SIGKILL);
  waitpid(owner, nullptr, 0);
  EXPECT_EQ(CodeOf(TakeFd(name, 10).status()), ErrorCode::kGpuStaleHandle);
}

TEST(FdOffer, AnotherUserIsDenied) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  const auto offer = FdOffer::Start(Memory()).value();
  const pid_t child = fork();
  if (child == 0) {
    if (seteuid(12345) != 0) _exit(2);  // a namespace without other users
    const ErrorCode code = CodeOf(TakeFd(offer->name(), 10).status());
    _exit(code == ErrorCode::kAccessDenied ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "there are no other users";
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(TakeFd(offer->name(), 10).ok());
}

TEST(FdOffer, ASilentProgramWithTheNameIsATimeout) {
  const std::string name = "tandem-gpu-silent-" + std::to_string(getpid());
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  name.copy(address.sun_path + 1, name.size());
  const UniqueFd listener(socket(AF_UNIX, SOCK_SEQPACKET, 0));
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address),
                 static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                        name.size())),
            0);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  EXPECT_EQ(CodeOf(TakeFd(name, 0.01).status()), ErrorCode::kStepTimeout);
}

TEST(FdOffer, ATextThatIsNoNameIsStale) {
  EXPECT_EQ(CodeOf(TakeFd("", 1).status()), ErrorCode::kGpuStaleHandle);
  EXPECT_EQ(CodeOf(TakeFd(std::string(64, 'a'), 1).status()),
            ErrorCode::kGpuStaleHandle);
}

}  // namespace
}  // namespace tandem
