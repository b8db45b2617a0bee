#include "base/os/shared_region.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/error.h"
#include "base/os/side_locks.h"
#include "base/os/testing/named_region.h"

namespace tandem {
namespace {

using Access = SharedRegion::Access;
using Link = SharedRegion::Link;

class SharedRegionTest : public RegionTest {};

TEST_F(SharedRegionTest, HasBothLinksWhilePublished) {
  const SharedRegion region = MakeRegion();
  EXPECT_EQ(SharedRegion::At(name_), std::nullopt);
  ASSERT_EQ(region.Publish(name_).value(), true);
  EXPECT_EQ(SharedRegion::At(name_), region.id());
  EXPECT_EQ(SharedRegion::At(name_, Link::kSpare), region.id());
  EXPECT_TRUE(IsCurrentUser(*SharedRegion::OwnerAt(name_, Link::kName)));
  EXPECT_TRUE(region.Unpublish(name_).ok());
  EXPECT_EQ(SharedRegion::At(name_), std::nullopt);
  EXPECT_EQ(SharedRegion::At(name_, Link::kSpare), std::nullopt);
  EXPECT_TRUE(region.Unpublish(name_).ok());
}

TEST_F(SharedRegionTest, TakesNoNameThatOtherMemoryHas) {
  const SharedRegion first = MakeRegion();
  const SharedRegion second = MakeRegion();
  ASSERT_EQ(first.Publish(name_).value(), true);
  EXPECT_EQ(second.Publish(name_).value(), false);
  EXPECT_TRUE(second.Unpublish(name_).ok());  // nothing of its own
  EXPECT_EQ(SharedRegion::At(name_), first.id());
  EXPECT_TRUE(first.Unpublish(name_).ok());
  ASSERT_EQ(second.Publish(name_).value(), true);
  EXPECT_EQ(SharedRegion::At(name_), second.id());
  EXPECT_TRUE(second.Unpublish(name_).ok());
}

TEST_F(SharedRegionTest, ReadsWhatAMappingWroteAndNotBeyondTheEnd) {
  const SharedRegion region = MakeRegion();
  ASSERT_EQ(region.Publish(name_).value(), true);
  std::byte* const base = region.Map(kBytes, Access::kWrite).value();
  base[kBytes - 1] = std::byte{42};
  const SharedRegion other = SharedRegion::Open(name_, Access::kRead).value();
  EXPECT_EQ(other.id(), region.id());
  EXPECT_EQ(other.bytes(), kBytes);
  std::array<std::byte, 2> bytes = {};
  EXPECT_TRUE(other.Read(kBytes - 2, bytes.data(), 2));
  EXPECT_EQ(bytes[1], std::byte{42});
  EXPECT_FALSE(other.Read(kBytes - 1, bytes.data(), 2));
  EXPECT_FALSE(other.Read(~uint64_t{0}, bytes.data(), 2));
  SharedRegion::Unmap(base, kBytes);
  EXPECT_TRUE(region.Unpublish(name_).ok());
}

TEST_F(SharedRegionTest, OfHandleIsAnotherAccessToTheSameMemory) {
  const SharedRegion region = MakeRegion();
  const SharedRegion again = SharedRegion::OfHandle(region.handle()).value();
  EXPECT_EQ(again.id(), region.id());
  EXPECT_NE(again.handle(), region.handle());
  EXPECT_EQ(CodeOf(SharedRegion::OfHandle(-1).status()),
            ErrorCode::kSystemCallFailed);
}

TEST_F(SharedRegionTest, LocksAreSeenByOthersUntilTheirRelease) {
  const SharedRegion region = MakeRegion();
  SideLocks side = SideLocks::On(region).value();
  SideLocks other = SideLocks::On(region).value();
  EXPECT_TRUE(side.TryAcquire(8));
  EXPECT_FALSE(other.TryAcquire(8));
  EXPECT_TRUE(other.HeldByOther(8));
  EXPECT_FALSE(side.HeldByOther(8));
  EXPECT_EQ(IsLocked(region, 8), true);
  side.Release();
  EXPECT_EQ(IsLocked(region, 8), false);
}

TEST_F(SharedRegionTest, BothLinksAreListed) {
  const SharedRegion region = MakeRegion();
  ASSERT_EQ(region.Publish(name_).value(), true);
  const auto listed = SharedRegion::List();
  for (const Link link : {Link::kName, Link::kSpare}) {
    EXPECT_TRUE(std::ranges::any_of(listed, [&](const auto& file) {
      return file.name == name_ && file.link == link;
    }));
  }
  EXPECT_TRUE(region.Unpublish(name_).ok());
}

}  // namespace
}  // namespace tandem
