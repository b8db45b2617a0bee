#include "viz/inspect/look.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "schema/layout/flan.h"
#include "transport/base/error.h"
#include "transport/memory/testing/placed_file.h"
#include "transport/memory/testing/unique_region_name.h"
#include "viz/testing/pattern.h"

namespace tandem {
namespace {

constexpr auto kRegion = PatternRun::Kind::kRegion;

// Looks until it is as wanted; gtest's own time-out is the watchdog.
template <typename Done>
Look Await(Onlooker* onlooker, const std::string& name, Done done) {
  for (;;) {
    Look look = onlooker->LookAtName(name);
    if (done(look)) return look;
    usleep(1000);
  }
}

bool IsMoving(const Look& look) { return look.frames_per_sec.value_or(0) > 0; }

TEST(Look, ASegmentIsFoundByItsNameAndByItsRunId) {
  const std::string run = UniqueRegionName("look");
  const Publisher publisher({.run = run});
  Onlooker onlooker;
  const Look look = Await(&onlooker, run, IsMoving);
  EXPECT_TRUE(look.is_segment);
  EXPECT_EQ(look.name, kFlanSegmentPrefix + run);
  EXPECT_EQ(look.segment.writer, Life::kAlive);
  EXPECT_EQ(look.segment.ring.geometry.width, 64u);
  EXPECT_TRUE(look.verdict.problems.empty());
  EXPECT_TRUE(onlooker.LookAtName(look.name).status.ok());
}

TEST(Look, ASegmentOfAForeignWriterHasNoVerdictOnItsLife) {
  const std::string run = UniqueRegionName("look");
  const Publisher publisher({.kind = PatternRun::Kind::kForeign, .run = run});
  Onlooker onlooker;
  const Look look = Await(&onlooker, run, IsMoving);
  EXPECT_EQ(look.segment.writer, Life::kUnknown);
  EXPECT_TRUE(look.verdict.problems.empty());
}

TEST(Look, ARegionWithFramesSaysHowManyASecond) {
  const std::string name = UniqueRegionName("look");
  const Publisher publisher({.kind = kRegion, .run = name});
  Onlooker onlooker;
  const Look look = Await(&onlooker, name, [](const Look& at) {
    return at.rates && at.rates->frames_per_sec > 0;
  });
  EXPECT_FALSE(look.is_segment);
  EXPECT_TRUE(look.region.frames.has_value());
}

TEST(Look, WhatIsNotThereIsNotReadyAndABadNameInvalid) {
  Onlooker onlooker;
  EXPECT_EQ(CodeOf(onlooker.LookAtName(UniqueRegionName("look")).status),
            ErrorCode::kNotReady);
  EXPECT_EQ(CodeOf(onlooker.LookAtName("no/such").status),
            ErrorCode::kInvalidArgument);
}

TEST(Look, AllAreListedOnce) {
  const std::string name = UniqueRegionName("look");
  const PlacedFile truncated(name, "", PlacedFile::kAlive);
  const PlacedFile foreign(kFlanSegmentPrefix + name, "", PlacedFile::kDead);
  Onlooker onlooker;
  for (int i = 0; i < 2; ++i) {
    const std::vector<Look> looks = onlooker.LookAtAll();
    for (const PlacedFile* file : {&truncated, &foreign}) {
      const auto is_it = [&](const Look& look) {
        return look.name == file->name();
      };
      ASSERT_EQ(std::count_if(looks.begin(), looks.end(), is_it), 1);
      const Look& look = *std::find_if(looks.begin(), looks.end(), is_it);
      EXPECT_EQ(look.is_segment, file == &foreign);
      EXPECT_EQ(look.verdict.problems.size(), 1u);
    }
  }
}

}  // namespace
}  // namespace tandem
