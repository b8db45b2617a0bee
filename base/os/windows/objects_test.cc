// What is Windows' own of regions: their objects, and other programs' ones.
#include "base/os/windows/objects.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/os/machine.h"
#include "base/os/side_locks.h"
#include "base/os/windows/native.h"
#include "base/os/windows/testing/child_program.h"
#include "base/os/word_sleep.h"
#include "transport/memory/attached_region.h"
#include "transport/memory/owned_region.h"
#include "transport/memory/testing/unique_region_name.h"

namespace tandem {
namespace {

constexpr uint64_t kBytes = 100'000;
constexpr int64_t kLock = 8;

SharedRegion MakeRegion(bool group_access = false) {
  return SharedRegion::Create(kBytes, group_access, {"the test's", "use less"})
      .value();
}

// {name}: has the name, a lock and a byte, until it is killed.
const ChildBody kHolder("holder", [](const std::vector<std::string>& words) {
  const SharedRegion region = MakeRegion();
  std::byte* const base =
      region.Map(kBytes, SharedRegion::Access::kWrite).value();
  base[kBytes - 1] = std::byte{42};
  SideLocks locks = SideLocks::On(region).value();
  if (!locks.TryAcquire(kLock) || !region.Publish(words[0]).value()) return 1;
  SayLine("ready");
  Sleep(INFINITE);
  return 0;
});

// {name}: sleeps on the first word until it is 1, for a minute at most.
const ChildBody kSleeper("sleeper", [](const std::vector<std::string>& words) {
  const SharedRegion region =
      SharedRegion::Open(words[0], SharedRegion::Access::kWrite).value();
  auto* const word = reinterpret_cast<uint32_t*>(
      region.Map(kBytes, SharedRegion::Access::kWrite).value());
  SayLine("ready");
  const DWORD begin_ms = GetTickCount();
  SleepOnWord(word, 0, 60'000'000'000);
  return *word == 1 && GetTickCount() - begin_ms < 30'000 ? 0 : 1;
});

class Objects : public testing::Test {
 protected:
  const std::string name_ = UniqueRegionName("objects");
  const std::wstring wide_ = Wide(name_);
};

TEST_F(Objects, NameAndLocksEndWithTheirProcessThoughItsMemoryIsMapped) {
  ChildProgram holder("holder", {name_});
  ASSERT_EQ(holder.ReadLine(), "ready");
  const SharedRegion found =
      SharedRegion::Open(name_, SharedRegion::Access::kRead).value();
  EXPECT_EQ(found.bytes(), kBytes);
  EXPECT_EQ(SharedRegion::At(name_), found.id());
  EXPECT_EQ(IsLocked(found, kLock), true);
  std::byte* const base =
      found.Map(kBytes, SharedRegion::Access::kRead).value();
  holder.Kill();
  EXPECT_EQ(IsLocked(found, kLock), false);
  EXPECT_EQ(SharedRegion::At(name_), std::nullopt);
  EXPECT_EQ(base[kBytes - 1], std::byte{42});
  const SharedRegion next = MakeRegion();
  EXPECT_TRUE(next.Publish(name_).value());
  EXPECT_TRUE(next.Unpublish(name_).ok());
  SharedRegion::Unmap(base, kBytes);
}

TEST_F(Objects, AnotherProcessesNameIsNotRemoved) {
  ChildProgram holder("holder", {name_});
  ASSERT_EQ(holder.ReadLine(), "ready");
  const SharedRegion found =
      SharedRegion::Open(name_, SharedRegion::Access::kRead).value();
  EXPECT_EQ(CodeOf(found.Unpublish(name_)), ErrorCode::kAlreadyAttached);
  EXPECT_EQ(SharedRegion::At(name_), found.id());
}

TEST_F(Objects, ASleeperInAnotherProcessIsWoken) {
  const SharedRegion region = MakeRegion();
  ASSERT_TRUE(region.Publish(name_).value());
  auto* const word = reinterpret_cast<uint32_t*>(
      region.Map(kBytes, SharedRegion::Access::kWrite).value());
  ChildProgram sleeper("sleeper", {name_});
  ASSERT_EQ(sleeper.ReadLine(), "ready");
  *word = 1;
  WakeSleepers(word);
  EXPECT_EQ(sleeper.ExitCode(), 0);
  EXPECT_TRUE(region.Unpublish(name_).ok());
}

// As Python's mmap(-1, bytes, tagname=name), and C#'s CreateNew of a map.
TEST_F(Objects, OtherProgramsFindTheMemoryByItsName) {
  const SharedRegion region = MakeRegion();
  ASSERT_TRUE(region.Publish(name_).value());
  std::byte* const base =
      region.Map(kBytes, SharedRegion::Access::kWrite).value();
  const UniqueFd section = Owned(CreateFileMappingW(
      INVALID_HANDLE_VALUE, nullptr, PAGE_READWRITE, 0, kBytes, wide_.c_str()));
  EXPECT_EQ(GetLastError(), static_cast<DWORD>(ERROR_ALREADY_EXISTS));
  auto* const theirs = static_cast<std::byte*>(
      MapViewOfFile(HandleOf(section.get()), FILE_MAP_WRITE, 0, 0, kBytes));
  theirs[7] = std::byte{9};
  EXPECT_EQ(base[7], std::byte{9});
  // They keep the memory, not the name.
  EXPECT_TRUE(region.Unpublish(name_).ok());
  EXPECT_EQ(SharedRegion::At(name_), std::nullopt);
  UnmapViewOfFile(theirs);
}

TEST_F(Objects, AnotherProgramsMemoryKeepsItsName) {
  const UniqueFd theirs = Owned(CreateFileMappingW(
      INVALID_HANDLE_VALUE, nullptr, PAGE_READWRITE, 0, kBytes, wide_.c_str()));
  const SharedRegion region = MakeRegion();
  EXPECT_FALSE(region.Publish(name_).value());
  const SharedRegion found =
      SharedRegion::Open(name_, SharedRegion::Access::kRead).value();
  EXPECT_GE(found.bytes(), kBytes);
  EXPECT_EQ(found.id(), SharedRegion::At(name_));
  EXPECT_NE(found.id(), region.id());
  EXPECT_TRUE(IsCurrentUser(found.owner()));
  const absl::Status status =
      OwnedRegion::Create(
          name_, {.num_envs = 1, .obs_size = 1, .act_size = 1, .task = "test"},
          {})
          .status();
  EXPECT_EQ(CodeOf(status), ErrorCode::kAlreadyAttached) << status;
}

TEST_F(Objects, AnObjectOfAnotherKindIsRefused) {
  const UniqueFd event =
      Owned(CreateEventW(nullptr, TRUE, FALSE, wide_.c_str()));
  EXPECT_EQ(
      CodeOf(SharedRegion::Open(name_, SharedRegion::Access::kRead).status()),
      ErrorCode::kLayoutMismatch);
  EXPECT_FALSE(MakeRegion().Publish(name_).value());
}

TEST_F(Objects, NamesThatDifferByCaseAreTwo) {
  const SharedRegion region = MakeRegion();
  ASSERT_TRUE(region.Publish(name_).value());
  std::string upper = name_;
  for (char& c : upper) c = static_cast<char>(toupper(c));
  EXPECT_EQ(SharedRegion::At(upper), std::nullopt);
  const SharedRegion other = MakeRegion();
  EXPECT_TRUE(other.Publish(upper).value());
  EXPECT_TRUE(other.Unpublish(upper).ok());
  EXPECT_TRUE(region.Unpublish(name_).ok());
}

TEST_F(Objects, AccessIsForTheUserUnlessTheGroupHasIt) {
  EXPECT_TRUE(IsCurrentUser(MakeRegion().owner()));
  EXPECT_FALSE(MakeRegion().owner().group_access);
  const Owner shared = MakeRegion(/*group_access=*/true).owner();
  EXPECT_TRUE(shared.group_access);
  EXPECT_EQ(shared.group, CurrentGroupSid());
  EXPECT_TRUE(IsTrusted({.user = "S-1-5-18", .group = ""}));
  EXPECT_FALSE(IsTrusted({.user = "S-1-5-21-1-2-3-1001", .group = ""}));
  EXPECT_TRUE(IsTrusted({.user = "S-1-5-21-1-2-3-1001",
                         .group = CurrentGroupSid(),
                         .group_access = true}));
}

TEST_F(Objects, SharedLocksAreSeenByEachOtherAndExcludeAnExclusiveOne) {
  const SharedRegion region = MakeRegion();
  SideLocks first = SideLocks::On(region).value();
  EXPECT_TRUE(first.TryShare(kLock));
  EXPECT_FALSE(first.HeldByOther(kLock));
  SideLocks second = SideLocks::On(region).value();
  EXPECT_FALSE(second.TryAcquire(kLock));
  EXPECT_TRUE(second.HeldByOther(kLock));
  EXPECT_TRUE(second.TryShare(kLock));
  EXPECT_TRUE(first.HeldByOther(kLock));
  second.Release();
  EXPECT_FALSE(first.HeldByOther(kLock));
  first.Release();
  SideLocks third = SideLocks::On(region).value();
  EXPECT_TRUE(third.TryAcquire(kLock));
  EXPECT_FALSE(SideLocks::On(region).value().TryShare(kLock));
}

// It would be a folder of objects.
TEST_F(Objects, ABackslashInANameIsAnUnderscore) {
  const SharedRegion region = MakeRegion();
  EXPECT_EQ(
      CodeOf(SharedRegion::Open(name_ + "\\run", SharedRegion::Access::kRead)
                 .status()),
      ErrorCode::kNotReady);
  ASSERT_TRUE(region.Publish(name_ + "\\run").value());
  EXPECT_EQ(SharedRegion::At(name_ + "_run"), region.id());
  EXPECT_TRUE(region.Unpublish(name_ + "\\run").ok());
  EXPECT_EQ(SharedRegion::At(name_ + "_run"), std::nullopt);
}

TEST_F(Objects, TextThatIsNoUtf8HasANameOfItsOwn) {
  EXPECT_EQ(Wide("a\xC3\xA4"), L"a\u00E4");
  EXPECT_EQ(Wide("a\xE4"), L"a\xDCE4");
  EXPECT_EQ(Utf8(L"a\u00E4"), "a\xC3\xA4");
  EXPECT_EQ(Wide(""), L"");
}

class Regions : public Objects {
 protected:
  static absl::StatusOr<OwnedRegion> Make(const std::string& name) {
    absl::StatusOr<OwnedRegion> region = OwnedRegion::Create(
        name, {.num_envs = 2, .obs_size = 3, .act_size = 1, .task = "test"},
        {});
    if (region.ok()) {
      if (absl::Status linked = region->Link(); !linked.ok()) return linked;
    }
    return region;
  }
};

TEST_F(Regions, HaveANameFromLinkToRemoval) {
  {
    const OwnedRegion region = Make(name_).value();
    EXPECT_TRUE(AttachedRegion::Open(name_).ok());
    EXPECT_EQ(
        RegionMapping::Map(region.memory(), region.memory().bytes()).value(),
        region.mapping());
  }
  EXPECT_EQ(CodeOf(AttachedRegion::Open(name_).status()), ErrorCode::kNotReady);
}

TEST_F(Regions, RefuseASecondEngineAndNameTheFirst) {
  const OwnedRegion first = Make(name_).value();
  const absl::Status status = Make(name_).status();
  EXPECT_EQ(CodeOf(status), ErrorCode::kAlreadyAttached);
  EXPECT_NE(status.message().find(absl::StrCat(GetCurrentProcessId())),
            absl::string_view::npos)
      << status;
}

TEST_F(Regions, OfTheDefaultNameTakeTheNextFreeOne) {
  const OwnedRegion first = Make("").value();
  const OwnedRegion second = Make("").value();
  EXPECT_NE(first.name(), second.name());
  EXPECT_TRUE(AttachedRegion::Open(second.name()).ok());
}

TEST_F(Regions, TooLargeOnesNameTheBytes) {
  const absl::Status status = OwnedRegion::Create(name_,
                                                  {.num_envs = 1 << 15,
                                                   .obs_size = 1 << 19,
                                                   .act_size = 1,
                                                   .task = "test"},
                                                  {})
                                  .status();
  EXPECT_EQ(CodeOf(status), ErrorCode::kOutOfSharedMemory) << status;
  EXPECT_NE(status.message().find("are available"), absl::string_view::npos)
      << status;
}

}  // namespace
}  // namespace tandem
