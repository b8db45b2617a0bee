#include "transport/memory/observed_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <string>

#include "base/error.h"
#include "transport/memory/testing/placed_file.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/region.h"

namespace tandem {
namespace {

ObservedFile OpenOrFail(const std::string& name) {
  absl::StatusOr<ObservedFile> file = ObservedFile::Open(name);
  EXPECT_TRUE(file.ok()) << file.status();
  return *std::move(file);
}

TEST(ObservedFile, CopiesExistingBytesOnly) {
  const PlacedFile placed(UniqueRegionName("observed"), "0123456789",
                          PlacedFile::kDead);
  const ObservedFile file = OpenOrFail(placed.name());
  EXPECT_EQ(file.bytes(), 10u);
  std::array<char, 4> copy = {};
  EXPECT_TRUE(file.Read(6, copy.data(), copy.size()));
  EXPECT_EQ(std::string(copy.data(), copy.size()), "6789");
  EXPECT_FALSE(file.Read(7, copy.data(), copy.size()));
  EXPECT_FALSE(file.Read(~uint64_t{0}, copy.data(), copy.size()));
  EXPECT_FALSE(file.Read(~uint64_t{0} - 2, copy.data(), copy.size()));
}

TEST(ObservedFile, AFileTruncatedMeanwhileIsAShortRead) {
  PlacedFile placed(UniqueRegionName("observed"), std::string(8192, 'x'),
                    PlacedFile::kDead);
  const ObservedFile file = OpenOrFail(placed.name());
  placed.Resize(4096);
  char byte = 0;
  EXPECT_TRUE(file.Read(4095, &byte, 1));
  EXPECT_FALSE(file.Read(4096, &byte, 1));
}

TEST(ObservedFile, SeesALockThroughADescriptorForReading) {
  PlacedFile placed(UniqueRegionName("observed"), "0123456789",
                    PlacedFile::kDead);
  const ObservedFile file = OpenOrFail(placed.name());
  EXPECT_EQ(file.IsLocked(8), false);
  placed.Lock(8);
  EXPECT_EQ(file.IsLocked(8), true);
  EXPECT_EQ(file.IsLocked(9), false);
  placed.Unlock(8);
  EXPECT_EQ(file.IsLocked(8), false);
}

TEST(ObservedFile, IsFoundByItsSpareLinkWhenTheNameIsGone) {
  const PlacedFile placed(UniqueRegionName("observed"), "x",
                          PlacedFile::kAlive);
  EXPECT_FALSE(OpenOrFail(placed.name()).name_gone());
  EXPECT_TRUE(OpenOrFail(placed.name()).has_spare_link());
  ASSERT_EQ(unlink(placed.path().c_str()), 0);
  EXPECT_TRUE(OpenOrFail(placed.name()).name_gone());
  EXPECT_TRUE(OpenOrFail(placed.name()).has_spare_link());
}

TEST(ObservedFile, SpareLinkToAnotherFileIsIgnored) {
  const PlacedFile placed(UniqueRegionName("observed"), "x",
                          PlacedFile::kAlive);
  ASSERT_EQ(unlink(placed.path().c_str()), 0);
  const PlacedFile other(placed.name(), "y", PlacedFile::kDead);
  EXPECT_FALSE(OpenOrFail(placed.name()).has_spare_link());
}

TEST(ObservedFile, ASegmentsNameMayHoldAnyCharacterButASlash) {
  const std::string name =
      "mosaic.fastlane." + UniqueRegionName("observed") + " \x1b\xff";
  const PlacedFile placed(name, "x", PlacedFile::kDead);
  EXPECT_EQ(OpenOrFail(name).bytes(), 1u);
  EXPECT_EQ(CodeOf(ObservedFile::Open("mosaic.fastlane./etc").status()),
            ErrorCode::kInvalidArgument);
}

TEST(ObservedFile, RefusesOtherFileTypesByName) {
  const std::string name = UniqueRegionName("observed");
  EXPECT_EQ(CodeOf(ObservedFile::Open(name).status()), ErrorCode::kNotReady);
  EXPECT_EQ(CodeOf(ObservedFile::Open("../etc").status()),
            ErrorCode::kInvalidArgument);
  const std::string path = RegionPath(name);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(CodeOf(ObservedFile::Open(name).status()),
            ErrorCode::kLayoutMismatch);
  unlink(path.c_str());
  ASSERT_EQ(symlink("/etc/hostname", path.c_str()), 0);
  EXPECT_EQ(CodeOf(ObservedFile::Open(name).status()),
            ErrorCode::kLayoutMismatch);
  unlink(path.c_str());
  ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
  EXPECT_EQ(CodeOf(ObservedFile::Open(name).status()),
            ErrorCode::kLayoutMismatch);
  rmdir(path.c_str());
}

}  // namespace
}  // namespace tandem
