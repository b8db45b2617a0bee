#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/error.h"
#include "transport/region.h"

namespace tandem {
namespace {

TEST(RegionName, AcceptsValidNames) {
  for (const char* name : {"a", "_", "0", "demo", "A.b-c_d", "x..", "tandem"}) {
    EXPECT_TRUE(CheckRegionName(name).ok()) << name;
  }
  EXPECT_TRUE(CheckRegionName(std::string(200, 'n')).ok());
}

TEST(RegionName, RefusesInvalidNamesAndGivesPosition) {
  for (const std::string& name :
       {std::string(), std::string(".hidden"), std::string("-dash"),
        std::string("a/b"), std::string("../x"), std::string("a b"),
        std::string("a\0b", 3), std::string("\xc3\xa9"), std::string("a\n"),
        std::string(201, 'n'), std::string(100'000, '/')}) {
    const absl::Status status = CheckRegionName(name);
    EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument) << name;
    EXPECT_LT(status.message().size(), 500u);
  }
  EXPECT_NE(CheckRegionName("ab/c").message().find("'/' at position 2"),
            absl::string_view::npos);
}

TEST(RegionName, DefaultsToTheEnvironmentThenToTandem) {
  ASSERT_EQ(setenv("LUCKY_SHM_NAME", "lucky", 1), 0);
  EXPECT_EQ(DefaultRegionName(), "lucky");
  ASSERT_EQ(setenv("LUCKY_SHM_NAME", "", 1), 0);
  EXPECT_EQ(DefaultRegionName(), "tandem");
  ASSERT_EQ(unsetenv("LUCKY_SHM_NAME"), 0);
  EXPECT_EQ(DefaultRegionName(), "tandem");
}

TEST(RegionName, OnlySegmentsMayHaveAnyCharacterButASlash) {
  for (const char* name : {"demo", "a.b", "mosaic.fastlane.a b"}) {
    EXPECT_TRUE(IsSharedName(name)) << name;
  }
  for (const char* other : {".", ".x", "a b", "", "mosaic.fastlane./etc"}) {
    EXPECT_FALSE(IsSharedName(other)) << other;
  }
}

}  // namespace
}  // namespace tandem
