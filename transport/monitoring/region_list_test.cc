#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/error.h"
#include "schema/layout/flan.h"
#include "schema/layout/lrbc.h"
#include "transport/attached_frames.h"
#include "transport/frame_geometry.h"
#include "transport/memory/testing/placed_file.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/owned_frame_segment.h"
#include "transport/owned_scene_segment.h"
#include "transport/report.h"

namespace tandem {
namespace {

// Returns whether the entry is a segment; nothing if it is not listed.
std::optional<bool> IsSegment(const std::string& name) {
  for (const SharedName& found : ListShared()) {
    if (found.name == name) return found.is_segment;
  }
  return std::nullopt;
}

std::string Magic() {
  const uint32_t magic = kLrbcMagic;
  return {reinterpret_cast<const char*>(&magic), sizeof(magic)};
}

TEST(RegionList, ListsARegionByItsMagic) {
  const PlacedFile placed(UniqueRegionName("list"), Magic(), PlacedFile::kDead);
  EXPECT_EQ(IsSegment(placed.name()), false);
}

TEST(RegionList, ListsRegionBySpareLinkWithAnyContent) {
  const PlacedFile placed(UniqueRegionName("list"), "", PlacedFile::kAlive);
  EXPECT_EQ(IsSegment(placed.name()), false);
  ASSERT_EQ(unlink(placed.path().c_str()), 0);
  EXPECT_EQ(IsSegment(placed.name()), false);
}

TEST(RegionList, OmitsOtherFiles) {
  const PlacedFile placed(UniqueRegionName("list"), "something",
                          PlacedFile::kDead);
  EXPECT_EQ(IsSegment(placed.name()), std::nullopt);
}

TEST(RegionList, OmitsScenes) {
  const absl::StatusOr<OwnedSceneSegment> scene =
      OwnedSceneSegment::Create(UniqueRegionName("list"), {}, "glTF");
  ASSERT_TRUE(scene.ok()) << scene.status();
  EXPECT_EQ(IsSegment(scene->name()), std::nullopt);
  EXPECT_EQ(ReadRunReport(scene->name()), std::nullopt);
}

TEST(RegionList, ListsTandemAndForeignSegments) {
  const std::string run = UniqueRegionName("list");
  const absl::StatusOr<OwnedFrameSegment> ours =
      OwnedFrameSegment::Create(run, {.width = 4, .height = 4});
  ASSERT_TRUE(ours.ok()) << ours.status();
  EXPECT_EQ(IsSegment(ours->name()), true);
  const PlacedFile foreign(kFlanSegmentPrefix + run + " x\n", "",
                           PlacedFile::kDead);
  EXPECT_EQ(IsSegment(foreign.name()), true);
}

TEST(RegionList, SegmentHasGeometryAndLiveness) {
  const std::string run = UniqueRegionName("list");
  absl::StatusOr<OwnedFrameSegment> ours =
      OwnedFrameSegment::Create(run, {.width = 4, .height = 2});
  ASSERT_TRUE(ours.ok()) << ours.status();
  const std::string name = ours->name();
  absl::StatusOr<SegmentReport> report = ReadSegmentReport(name);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->writer, Life::kAlive);
  EXPECT_EQ(report->ring.problem, "");
  EXPECT_EQ(report->ring.geometry.width, 4u);
  EXPECT_EQ(report->ring.watched, false);
  {
    const absl::StatusOr<AttachedFrames> reader =
        AttachedFrames::OpenSegment(run);
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_EQ(ReadSegmentReport(name)->ring.watched, true);
  }
}

TEST(RegionList, TandemSegmentWithoutLockIsDead) {
  const std::string name = kFlanSegmentPrefix + UniqueRegionName("list");
  Life writer = Life::kUnknown;
  for (int attempt = 0; attempt < 100 && writer != Life::kDead; ++attempt) {
    PlacedFile ours(name, "FLAN", PlacedFile::kAlive);
    EXPECT_EQ(ReadSegmentReport(name)->writer, Life::kAlive);
    ours.Unlock(kFlanWriterLockByte);
    // An engine that starts now may take the segment over and remove it.
    const absl::StatusOr<SegmentReport> report = ReadSegmentReport(name);
    if (report.ok()) writer = report->writer;
  }
  EXPECT_EQ(writer, Life::kDead);
}

TEST(RegionList, SegmentWithoutLockIsUnknown) {
  const std::string name = kFlanSegmentPrefix + UniqueRegionName("list");
  const PlacedFile foreign(name, "FLAN", PlacedFile::kDead);
  EXPECT_EQ(ReadSegmentReport(name)->writer, Life::kUnknown);
}

TEST(RegionList, ASegmentThatIsGoneIsNotReady) {
  EXPECT_EQ(CodeOf(ReadSegmentReport("mosaic.fastlane.none-such").status()),
            ErrorCode::kNotReady);
}

}  // namespace
}  // namespace tandem
