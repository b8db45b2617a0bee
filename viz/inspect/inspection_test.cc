#include "viz/inspect/inspection.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "schema/layout/flan.h"
#include "transport/memory/testing/placed_file.h"
#include "transport/memory/testing/unique_region_name.h"
#include "viz/testing/pattern.h"

namespace tandem {
namespace {

constexpr auto kRegion = PatternRun::Kind::kRegion;

// Inspects until `done` accepts; gtest's own time-out is the watchdog.
template <typename Done>
Inspection Await(Inspector* inspector, const std::string& name, Done done) {
  for (;;) {
    Inspection inspection = inspector->InspectName(name);
    if (done(inspection)) return inspection;
    usleep(1000);
  }
}

bool IsMoving(const Inspection& inspection) {
  return inspection.frames_per_sec.value_or(0) > 0;
}

TEST(Inspection, ASegmentIsFoundByItsNameAndByItsRunId) {
  const std::string run = UniqueRegionName("inspection");
  const Publisher publisher({.run = run});
  Inspector inspector;
  const Inspection inspection = Await(&inspector, run, IsMoving);
  EXPECT_TRUE(inspection.is_segment);
  EXPECT_EQ(inspection.name, kFlanSegmentPrefix + run);
  EXPECT_EQ(inspection.segment.writer, Life::kAlive);
  EXPECT_EQ(inspection.segment.ring.geometry.width, 64u);
  EXPECT_TRUE(inspection.verdict.problems.empty());
  EXPECT_TRUE(inspector.InspectName(inspection.name).status.ok());
}

TEST(Inspection, SegmentWithoutLockHasNoLiveness) {
  const std::string run = UniqueRegionName("inspection");
  const Publisher publisher({.kind = PatternRun::Kind::kForeign, .run = run});
  Inspector inspector;
  const Inspection inspection = Await(&inspector, run, IsMoving);
  EXPECT_EQ(inspection.segment.writer, Life::kUnknown);
  EXPECT_TRUE(inspection.verdict.problems.empty());
}

TEST(Inspection, RegionWithFramesReportsTheirRate) {
  const std::string name = UniqueRegionName("inspection");
  const Publisher publisher({.kind = kRegion, .run = name});
  Inspector inspector;
  const Inspection inspection =
      Await(&inspector, name, [](const Inspection& at) {
        return at.rates && at.rates->frames_per_sec > 0;
      });
  EXPECT_FALSE(inspection.is_segment);
  EXPECT_TRUE(inspection.region.frames.has_value());
}

TEST(Inspection, MissingRegionIsNotReadyAndBadNameIsInvalid) {
  Inspector inspector;
  EXPECT_EQ(
      CodeOf(inspector.InspectName(UniqueRegionName("inspection")).status),
      ErrorCode::kNotReady);
  EXPECT_EQ(CodeOf(inspector.InspectName("no/such").status),
            ErrorCode::kInvalidArgument);
}

TEST(Inspection, AllAreListedOnce) {
  const std::string name = UniqueRegionName("inspection");
  const PlacedFile truncated(name, "", PlacedFile::kAlive);
  const PlacedFile foreign(kFlanSegmentPrefix + name, "", PlacedFile::kDead);
  Inspector inspector;
  for (int i = 0; i < 2; ++i) {
    const std::vector<Inspection> inspections = inspector.InspectAll();
    for (const PlacedFile* file : {&truncated, &foreign}) {
      const auto is_it = [&](const Inspection& inspection) {
        return inspection.name == file->name();
      };
      ASSERT_EQ(std::count_if(inspections.begin(), inspections.end(), is_it),
                1);
      const Inspection& inspection =
          *std::find_if(inspections.begin(), inspections.end(), is_it);
      EXPECT_EQ(inspection.is_segment, file == &foreign);
      EXPECT_EQ(inspection.verdict.problems.size(), 1u);
    }
  }
}

}  // namespace
}  // namespace tandem
