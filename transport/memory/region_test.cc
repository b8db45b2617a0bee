// Regions from creation to removal, and files that prevent their creation.

#include "transport/region.h"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/os/posix/region_paths.h"
#include "base/os/shared_region.h"
#include "base/os/unique_fd.h"
#include "schema/layout/field.h"
#include "schema/layout/layout_crc.h"
#include "transport/memory/attached_region.h"
#include "transport/memory/dead_region.h"
#include "transport/memory/observed_file.h"
#include "transport/memory/owned_region.h"
#include "transport/memory/testing/unique_region_name.h"

namespace tandem {
namespace {

std::string UniqueName() { return UniqueRegionName("region-test"); }
std::string SparePath(absl::string_view name) {
  return RegionPath(name, SharedRegion::Link::kSpare);
}

RegionSpec Spec() {
  return {.num_envs = 2, .obs_size = 3, .act_size = 1, .task = "region"};
}

OwnedRegion MakeLinked(const std::string& name, RegionOptions options = {}) {
  absl::StatusOr<OwnedRegion> region =
      OwnedRegion::Create(name, Spec(), options);
  EXPECT_TRUE(region.ok()) << region.status();
  EXPECT_TRUE(region->Link().ok());
  return *std::move(region);
}

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// Runs `body` in a child process, which prints failures. Returns its result.
int InChild(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// As InChild; the test fails as `body` does. A child that ends with kSkipped
// skips the test.
constexpr int kSkipped = 77;
void ExpectInChild(const std::function<void()>& body) {
  const int result = InChild([&] {
    body();
    return testing::Test::HasFailure() ? 1 : 0;
  });
  if (result == kSkipped) GTEST_SKIP() << "no second user or mount namespace";
  EXPECT_EQ(result, 0);
}

constexpr uid_t kNobody = 65534;

// Leaves a region whose engine did `last` before it was killed. The start of
// any other test's engine removes a dead region that has a spare link.
void LeaveDead(
    const std::string& name,
    const std::function<int()>& last = [] { return 0; }) {
  const int code = InChild([&] {
    OwnedRegion region = MakeLinked(name);
    if (last() == 0) kill(getpid(), SIGKILL);
    return 1;
  });
  ASSERT_EQ(code, -1);
}

TEST(Region, HasANameFromLinkToRemoval) {
  const std::string name = UniqueName();
  {
    absl::StatusOr<OwnedRegion> region = OwnedRegion::Create(name, Spec(), {});
    ASSERT_TRUE(region.ok());
    EXPECT_FALSE(Exists(RegionPath(name)));
    EXPECT_EQ(CodeOf(AttachedRegion::Open(name).status()),
              ErrorCode::kNotReady);
    ASSERT_TRUE(region->Link().ok());
    EXPECT_TRUE(Exists(RegionPath(name)));
    EXPECT_TRUE(AttachedRegion::Open(name).ok());
  }
  EXPECT_FALSE(Exists(RegionPath(name)));
  EXPECT_FALSE(Exists(SparePath(name)));
}

TEST(Region, IsPrivateUnlessGroupAccessIsEnabled) {
  struct stat file;
  const mode_t before = umask(0);
  const std::string name = UniqueName();
  const OwnedRegion region = MakeLinked(name);
  ASSERT_EQ(stat(RegionPath(name).c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 07777, 0600u);
  umask(0077);
  const std::string shared_name = UniqueName();
  const OwnedRegion shared = MakeLinked(shared_name, {.group_access = true});
  ASSERT_EQ(stat(RegionPath(shared_name).c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 07777, 0660u);
  umask(before);
}

TEST(Region, RefusesASecondEngineAndNamesTheFirst) {
  const std::string name = UniqueName();
  const OwnedRegion first = MakeLinked(name);
  const absl::Status status = OwnedRegion::Create(name, Spec(), {}).status();
  EXPECT_EQ(CodeOf(status), ErrorCode::kAlreadyAttached);
  EXPECT_NE(status.message().find(absl::StrCat("pid ", getpid())),
            absl::string_view::npos)
      << status;
}

TEST(Region, FirstOfTwoUnnamedRegionsToLinkWins) {
  const std::string name = UniqueName();
  OwnedRegion first = OwnedRegion::Create(name, Spec(), {}).value();
  OwnedRegion second = OwnedRegion::Create(name, Spec(), {}).value();
  const auto& identity = first.mapping()->header()->identity;
  EXPECT_NE(std::memcmp(identity, second.mapping()->header()->identity, 16), 0);
  EXPECT_TRUE(second.Link().ok());
  EXPECT_EQ(CodeOf(first.Link()), ErrorCode::kAlreadyAttached);
  { const OwnedRegion loser = std::move(first); }
  EXPECT_TRUE(AttachedRegion::Open(name).ok());
}

TEST(Region, DeadRegionIsNotReadyAndAnEngineTakesItOver) {
  const std::string name = UniqueName();
  LeaveDead(name, [&] { return unlink(SparePath(name).c_str()); });
  const absl::Status status = AttachedRegion::Open(name).status();
  EXPECT_EQ(CodeOf(status), ErrorCode::kNotReady);
  EXPECT_NE(status.message().find("gone"), absl::string_view::npos);
  const OwnedRegion region = MakeLinked(name);
  EXPECT_TRUE(AttachedRegion::Open(name).ok());
}

TEST(Region, EngineStartRemovesDeadRegionsOnly) {
  const std::string dead = UniqueName();
  const std::string nameless = UniqueName();
  const std::string alive = UniqueName();
  LeaveDead(dead);
  LeaveDead(nameless, [&] { return unlink(RegionPath(nameless).c_str()); });
  const OwnedRegion living = MakeLinked(alive);
  const OwnedRegion other = MakeLinked(UniqueName());
  // Another test's engine may be removing them; the spare link goes last. The
  // test's time limit ends a longer wait.
  for (const std::string& name : {dead, nameless}) {
    while (Exists(SparePath(name))) usleep(1000);
  }
  EXPECT_FALSE(Exists(RegionPath(dead)));
  EXPECT_TRUE(Exists(RegionPath(alive)));
}

TEST(Region, LockEndsWithItsProcessDespiteAForkedChild) {
  const std::string name = UniqueName();
  int to_child[2];
  int from_child[2];
  ASSERT_EQ(pipe(to_child), 0);
  ASSERT_EQ(pipe(from_child), 0);
  // The engine forks a child that continues to run. The engine is killed.
  LeaveDead(name, [&] {
    if (fork() == 0) {
      // The child runs: its fork handlers are complete.
      (void)!write(from_child[1], "r", 1);
      close(to_child[1]);
      char byte;
      (void)!read(to_child[0], &byte, 1);  // Until the test ends.
      _exit(0);
    }
    char running;
    (void)!read(from_child[0], &running, 1);
    return unlink(SparePath(name).c_str());
  });
  EXPECT_EQ(CodeOf(AttachedRegion::Open(name).status()), ErrorCode::kNotReady);
  const OwnedRegion next = MakeLinked(name);
  for (const int fd :
       {to_child[0], to_child[1], from_child[0], from_child[1]}) {
    close(fd);
  }
}

TEST(Region, RestoresItsUnlinkedNameButNoNameInUse) {
  const std::string name = UniqueName();
  const OwnedRegion region = MakeLinked(name);
  ASSERT_EQ(unlink(RegionPath(name).c_str()), 0);
  // The name stays in use meanwhile.
  EXPECT_EQ(CodeOf(OwnedRegion::Create(name, Spec(), {}).status()),
            ErrorCode::kAlreadyAttached);
  region.RestoreName();
  EXPECT_TRUE(AttachedRegion::Open(name).ok());

  ASSERT_EQ(unlink(RegionPath(name).c_str()), 0);
  const UniqueFd other(
      open(RegionPath(name).c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  region.RestoreName();
  EXPECT_EQ(CodeOf(AttachedRegion::Open(name).status()), ErrorCode::kNotReady);
  ASSERT_EQ(unlink(RegionPath(name).c_str()), 0);
}

TEST(Region, IgnoresFilesThatAreNotRegions) {
  const std::string name = UniqueName();
  const std::string path = RegionPath(name);
  const auto expect_refused = [&](const char* what) {
    EXPECT_EQ(CodeOf(OwnedRegion::Create(name, Spec(), {}).status()),
              ErrorCode::kAlreadyAttached)
        << what;
    EXPECT_FALSE(AttachedRegion::Open(name).ok()) << what;
    EXPECT_TRUE(Exists(path)) << what;
    remove(path.c_str());
  };
  UniqueFd(open(path.c_str(), O_CREAT | O_RDWR, 0600));
  expect_refused("an empty file");
  {
    const UniqueFd fd(open(path.c_str(), O_CREAT | O_RDWR, 0600));
    ASSERT_EQ(ftruncate(fd.get(), 1 << 20), 0);
  }
  expect_refused("a file of zeroes");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  expect_refused("a FIFO");
  ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
  expect_refused("a folder");
  ASSERT_EQ(symlink("/dev/null", path.c_str()), 0);
  EXPECT_EQ(CodeOf(OwnedRegion::Create(name, Spec(), {}).status()),
            ErrorCode::kAlreadyAttached);
  ASSERT_EQ(unlink(path.c_str()), 0);
}

TEST(Region, ErrorNamesRequiredMemory) {
  RegionSpec huge = Spec();
  huge.num_envs = 1 << 18;
  huge.obs_size = 1 << 19;  // Half a tebibyte each for obs and final_obs.
  const absl::Status status =
      OwnedRegion::Create(UniqueName(), huge, {}).status();
  EXPECT_TRUE(CodeOf(status) == ErrorCode::kOutOfSharedMemory ||
              CodeOf(status) == ErrorCode::kInvalidArgument)
      << status;
  huge.num_envs = 1 << 15;
  EXPECT_EQ(CodeOf(OwnedRegion::Create(UniqueName(), huge, {}).status()),
            ErrorCode::kOutOfSharedMemory);
}

TEST(Region, ClientsRefuseOtherFileTypesAtOnce) {
  const std::string name = UniqueName();
  const std::string path = RegionPath(name);
  const auto expect_refused = [&](const char* what) {
    EXPECT_EQ(CodeOf(AttachedRegion::Open(name).status()),
              ErrorCode::kLayoutMismatch)
        << what;
    EXPECT_EQ(AttachedRegion::Open(name).status(),
              ObservedFile::Open(name).status())
        << what;
    ASSERT_EQ(remove(path.c_str()), 0) << what;
  };
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  expect_refused("a FIFO");
  ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
  expect_refused("a folder");
  ASSERT_EQ(symlink("/dev/null", path.c_str()), 0);
  expect_refused("a link to a device");
  ASSERT_EQ(symlink("/no/such", path.c_str()), 0);
  expect_refused("a link that leads nowhere");
}

// A raised SIGXFSZ would end the process.
TEST(Region, FileSizeLimitIsAnErrorWithoutSignal) {
  ExpectInChild([] {
    const rlimit limit = {.rlim_cur = 4096, .rlim_max = 4096};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    const absl::Status status =
        OwnedRegion::Create(UniqueName(), Spec(), {}).status();
    EXPECT_EQ(CodeOf(status), ErrorCode::kOutOfSharedMemory) << status;
    for (const char* part : {"4096 bytes", "ulimit -f"}) {
      EXPECT_NE(status.message().find(part), absl::string_view::npos) << status;
    }
  });
}

// A print to a closed stream would write into a region that has its number.
TEST(Region, NoDescriptorTakesTheNumberOfAClosedStream) {
  ExpectInChild([] {
    for (int fd = 0; fd <= STDERR_FILENO; ++fd) close(fd);
    const std::string name = UniqueName();
    const OwnedRegion region = MakeLinked(name);
    const auto client = AttachedRegion::Open(name);
    const auto observer = ObservedFile::Open(name);
    EXPECT_TRUE(client.ok() && observer.ok());
    for (int fd = 0; fd <= STDERR_FILENO; ++fd) {
      EXPECT_LT(fcntl(fd, F_GETFD), 0) << fd;
    }
  });
}

// Runs `body` in a child that has a new tmpfs at `folder`.
void WithTmpfsAt(const char* folder, const char* options,
                 const std::function<void()>& body) {
  ExpectInChild([&] {
    if (unshare(CLONE_NEWNS) != 0 &&
        unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
      _exit(kSkipped);
    }
    mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    if (mount("tmpfs", folder, "tmpfs", 0, options) != 0) _exit(kSkipped);
    body();
  });
}

TEST(Region, FullSharedMemoryIsAnErrorAtCreation) {
  WithTmpfsAt(kSharedMemoryDir, "size=2m", [] {
    const std::string name = UniqueName();
    const OwnedRegion fits = MakeLinked(name);  // A bit over 1 MiB.
    const absl::Status status =
        OwnedRegion::Create(UniqueName(), Spec(), {}).status();
    EXPECT_EQ(CodeOf(status), ErrorCode::kOutOfSharedMemory) << status;
    EXPECT_NE(status.message().find("--shm-size"), absl::string_view::npos);
  });
}

TEST(Region, MissingSharedMemoryIsNotAFullOne) {
  WithTmpfsAt("/dev", "size=2m", [] {
    const absl::Status status =
        OwnedRegion::Create(UniqueName(), Spec(), {}).status();
    EXPECT_EQ(CodeOf(status), ErrorCode::kSystemCallFailed) << status;
    for (const char* const part : {"/dev/shm", "No such file", "mount"}) {
      EXPECT_NE(status.message().find(part), absl::string_view::npos) << part;
    }
  });
}

TEST(Region, ProcessIdStandsInTheName) {
  const std::string name = UniqueName();
  const OwnedRegion region = MakeLinked(absl::StrCat(name, "_{pid}"));
  EXPECT_EQ(region.name(), absl::StrCat(name, "_", getpid()));
  EXPECT_TRUE(AttachedRegion::Open(region.name()).ok());
}

TEST(Region, EnginesOfTheDefaultNameTakeTheNextFreeOne) {
  WithTmpfsAt(kSharedMemoryDir, "size=16m", [] {
    unsetenv("LUCKY_SHM_NAME");
    {
      const OwnedRegion first = MakeLinked("");
      const OwnedRegion second = MakeLinked("");
      EXPECT_EQ(first.name(), "tandem");
      EXPECT_EQ(second.name(), "tandem-2");
      EXPECT_EQ(MakeLinked("").name(), "tandem-3");
      EXPECT_TRUE(AttachedRegion::Open("tandem-2").ok());
      EXPECT_EQ(CodeOf(OwnedRegion::Create("tandem", Spec(), {}).status()),
                ErrorCode::kAlreadyAttached);
    }
    EXPECT_EQ(MakeLinked("").name(), "tandem");

    setenv("LUCKY_SHM_NAME", "lucky_{pid}", 1);
    const OwnedRegion lucky = MakeLinked("");
    EXPECT_EQ(lucky.name(), absl::StrCat("lucky_", getpid()));
    EXPECT_EQ(CodeOf(OwnedRegion::Create("", Spec(), {}).status()),
              ErrorCode::kAlreadyAttached);
  });
}

TEST(Region, NamesTheOwnerOfAnotherUsersRegion) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to be two users";
  const std::string name = UniqueName();
  const OwnedRegion region = MakeLinked(name);
  ExpectInChild([&] {
    if (setgroups(0, nullptr) != 0 ||
        setresgid(kNobody, kNobody, kNobody) != 0 ||
        setresuid(kNobody, kNobody, kNobody) != 0) {
      _exit(kSkipped);
    }
    for (const absl::Status& status :
         {AttachedRegion::Open(name).status(),
          OwnedRegion::Create(name, Spec(), {}).status()}) {
      EXPECT_EQ(CodeOf(status), ErrorCode::kAccessDenied) << status;
      EXPECT_NE(status.message().find("root (uid 0)"), absl::string_view::npos)
          << status;
    }
    // Another user's regions must also not be removed.
    RemoveDeadRegions();
  });
  EXPECT_TRUE(Exists(RegionPath(name)));
}

TEST(Region, RefusesATruncatedFileBeforeMapping) {
  const std::string name = UniqueName();
  const OwnedRegion region = MakeLinked(name);
  ASSERT_EQ(truncate(RegionPath(name).c_str(), 8192), 0);
  EXPECT_EQ(CodeOf(AttachedRegion::Open(name).status()),
            ErrorCode::kLayoutMismatch);
  ASSERT_EQ(truncate(RegionPath(name).c_str(), 100), 0);
  EXPECT_EQ(CodeOf(AttachedRegion::Open(name).status()), ErrorCode::kNotReady);
}

TEST(Region, TheTableOfFieldsIsCopiedAndCheckedBeforeMapping) {
  const std::string name = UniqueName();
  RegionSpec spec = Spec();
  spec.act_size = 0;
  spec.fields = {{.role = FieldRole::kAction, .type = FieldType::kInt64}};
  absl::StatusOr<OwnedRegion> region = OwnedRegion::Create(name, spec, {});
  ASSERT_TRUE(region.ok()) << region.status();
  ASSERT_TRUE(region->Link().ok());
  const std::vector<FieldRecord>& planned = region->fields();
  ASSERT_EQ(planned.size(), 3u);
  const size_t bytes = planned.size() * sizeof(FieldRecord);
  const LrbcHeader plan = PeekRegion(name).value();
  {
    const AttachedRegion client = AttachedRegion::Open(name).value();
    ASSERT_EQ(client.fields().size(), planned.size());
    EXPECT_EQ(std::memcmp(client.fields().data(), planned.data(), bytes), 0);
  }
  const auto expect_refused = [&](uint64_t what) {
    const absl::Status status = AttachedRegion::Open(name).status();
    EXPECT_EQ(CodeOf(status), ErrorCode::kLayoutMismatch)
        << what << " " << status;
  };
  std::byte* const table = region->mapping()->At<std::byte>(plan.fields_offset);
  for (size_t at = 0; at < bytes; at += 7) {
    table[at] ^= std::byte{0x10};
    expect_refused(at);
    table[at] ^= std::byte{0x10};
  }
  LrbcHeader* const header = region->mapping()->header();
  for (const uint64_t offset : {plan.region_size, plan.region_size - 256,
                                uint64_t{0}, ~uint64_t{0}, plan.obs_offset}) {
    header->fields_offset = offset;
    expect_refused(offset);
  }
  header->fields_offset = plan.fields_offset;
  EXPECT_TRUE(AttachedRegion::Open(name).ok());
  // A file that ends in the table.
  header->region_size = plan.fields_offset + 256;
  header->layout_crc32 = LayoutCrc(*header);
  const auto end = static_cast<off_t>(header->region_size);
  ASSERT_EQ(truncate(RegionPath(name).c_str(), end), 0);
  expect_refused(plan.fields_offset);
}

TEST(Region, RemovesATruncatedDeadRegion) {
  const std::string name = UniqueName();
  LeaveDead(name, [&] { return truncate(RegionPath(name).c_str(), 0); });
  const OwnedRegion region = MakeLinked(name);
  EXPECT_TRUE(AttachedRegion::Open(name).ok());
}

TEST(Region, RegionOfAnotherUserIsNotTrusted) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to be two users";
  ExpectInChild([] {
    if (seteuid(kNobody) != 0) _exit(kSkipped);
    const std::string name = UniqueName();
    const OwnedRegion region = MakeLinked(name);
    ASSERT_EQ(seteuid(0), 0);
    const absl::Status status = AttachedRegion::Open(name).status();
    EXPECT_EQ(CodeOf(status), ErrorCode::kAccessDenied) << status;
  });
}

TEST(Region, IsMappedOnceInAProcess) {
  const std::string name = UniqueName();
  const OwnedRegion region = MakeLinked(name);
  const absl::StatusOr<AttachedRegion> client = AttachedRegion::Open(name);
  ASSERT_TRUE(client.ok());
  EXPECT_EQ(client->mapping()->base(), region.mapping()->base());
  EXPECT_EQ(region.mapping()->HugePageBytes() % 4096, 0u);
}

TEST(Region, LeaksNoDescriptorOverManyRegions) {
  const auto open_descriptors = [] {
    int count = 0;
    for (int fd = 0; fd < 1024; ++fd) count += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    return count;
  };
  const std::string name = UniqueName();
  const int before = open_descriptors();
  for (int i = 0; i < 20; ++i) {
    const OwnedRegion region = MakeLinked(name);
    EXPECT_TRUE(AttachedRegion::Open(name).ok());
    EXPECT_FALSE(OwnedRegion::Create(name, Spec(), {}).ok());
  }
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace tandem
