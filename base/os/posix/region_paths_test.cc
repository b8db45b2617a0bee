#include "base/os/posix/region_paths.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/os/shared_region.h"
#include "base/os/testing/named_region.h"

namespace tandem {
namespace {

using Link = SharedRegion::Link;

class RegionPaths : public RegionTest {};

TEST_F(RegionPaths, TakesNoNameOfWhichOneLinkIsLeft) {
  const SharedRegion first = MakeRegion();
  const SharedRegion second = MakeRegion();
  ASSERT_EQ(first.Publish(name_).value(), true);
  EXPECT_EQ(second.Publish(name_).value(), false);
  ASSERT_EQ(unlink(RegionPath(name_).c_str()), 0);  // the spare link is left
  EXPECT_EQ(second.Publish(name_).value(), false);
  ASSERT_EQ(unlink(RegionPath(name_, Link::kSpare).c_str()), 0);
  ASSERT_EQ(second.Publish(name_).value(), true);
  EXPECT_TRUE(first.Unpublish(name_).ok());
  EXPECT_EQ(SharedRegion::At(name_), second.id());
  EXPECT_TRUE(second.Unpublish(name_).ok());
}

TEST_F(RegionPaths, RestoresAnUnlinkedName) {
  const SharedRegion region = MakeRegion();
  ASSERT_EQ(region.Publish(name_).value(), true);
  ASSERT_EQ(unlink(RegionPath(name_).c_str()), 0);
  region.Restore(name_);
  EXPECT_EQ(SharedRegion::At(name_), region.id());
  EXPECT_TRUE(region.Unpublish(name_).ok());
}

TEST_F(RegionPaths, SpareLinkLeadsBackToItsName) {
  EXPECT_EQ(RegionPath("demo", Link::kSpare), "/dev/shm/.demo.tandem");
  EXPECT_EQ(NameOfSpareLink(".demo.tandem"), "demo");
  EXPECT_EQ(NameOfSpareLink(".a.b.tandem"), "a.b");
  for (const char* other : {"demo", ".demo", "demo.tandem", ".tandem", ""}) {
    EXPECT_EQ(NameOfSpareLink(other), "") << other;
  }
}

}  // namespace
}  // namespace tandem
