#include "viz/core/run_curves.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

TEST(Curve, MergesNeighboursAndKeepsExtremes) {
  Curve curve("loss");
  for (int i = 1; i <= 100'000; ++i) {
    curve.Add({.step = 10.0 * i}, i == 77'777 ? -5 : 1);
  }
  EXPECT_LE(curve.size(), Curve::kBuckets);
  for (const size_t most : {size_t{1}, size_t{24}, Curve::kBuckets}) {
    const std::vector<Curve::Bucket> points = curve.Points(most);
    EXPECT_LE(points.size(), most);
    uint64_t count = 0;
    double min = 1;
    for (const Curve::Bucket& point : points) {
      count += point.count;
      min = std::min(min, point.min);
    }
    EXPECT_EQ(count, 100'000U);
    EXPECT_EQ(min, -5);
    EXPECT_EQ(points.back().last.step, 1e6);
  }
}

TEST(Curve, CountsValuesThatAreNotFinite) {
  Curve curve("loss");
  curve.Add({}, std::nan(""));
  curve.Add({}, -std::numeric_limits<double>::infinity());
  curve.Add({}, 2);
  EXPECT_EQ(curve.not_finite(), 2U);
  EXPECT_EQ(curve.Points(9).size(), 1U);
}

TEST(RunCurves, CountFromTheAttempt) {
  RunCurves curves({.number = 2, .episodes_before = 5, .scalars_before = 7});
  EXPECT_EQ(curves.last_episode(), 5U);
  EXPECT_EQ(curves.last_scalars(), 7U);
  curves.AddEpisode(6, 100, 1.5, 30);
  curves.AddEpisode(7, 101, 2.5, 40);
  curves.AddScalar(8, {.step = 64}, "a/b.<b>", 0.5);
  const Curve::Bucket last = curves.curves()[RunCurves::kReturn].Points(9)[1];
  EXPECT_EQ(last.last.episode, 2);
  EXPECT_EQ(last.last.step, 70);
  EXPECT_EQ(last.mean(), 2.5);
  EXPECT_EQ(curves.curves()[RunCurves::kLength].Points(1)[0].mean(), 35);
  EXPECT_EQ(curves.curves()[2].name(), "a/b.<b>");
  EXPECT_EQ(curves.last_scalars(), 8U);
}

TEST(RunCurvesCache, ForgetsTheRunThatWasAskedForLongestAgo) {
  RunCurvesCache cache;
  const RunAttempt first;
  for (int run = 0; run < 6; ++run) {
    RunCurves& curves = cache.Of(absl::StrCat("run", run), first);
    for (int name = 0; name < 1000; ++name) {
      for (uint64_t i = 1; i <= Curve::kBuckets; ++i) {
        curves.AddScalar(i, {}, absl::StrCat(name), 1);
      }
    }
    EXPECT_GT(cache.Of("run0", first).size(), 0U);
  }
  EXPECT_EQ(cache.Of("run1", first).size(), 0U);
}

TEST(RunCurvesCache, BeginsAnewWithEachAttempt) {
  RunCurvesCache cache;
  cache.Of("run", {.number = 1}).AddEpisode(1, 0, 1, 1);
  EXPECT_EQ(cache.Of("run", {.number = 1, .ended_secs = 5}).last_episode(), 1U);
  EXPECT_EQ(cache.Of("run", {.number = 2, .episodes_before = 9}).last_episode(),
            9U);
  // Another run, which has the id of the deleted one.
  EXPECT_EQ(cache.Of("run", {.number = 2, .started_secs = 7}).last_episode(),
            0U);
}

}  // namespace
}  // namespace tandem
