#include "viz/web/series_cursor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "viz/core/sample_history.h"

namespace tandem {
namespace {

constexpr int64_t kMs = 1'000'000;

// What the page keeps: plot.js does the same.
class Copy {
 public:
  void Add(const nlohmann::json& series) {
    if (series.is_null()) return;
    bytes += series.dump().size();
    const auto from = series.at("from").get<size_t>();
    ASSERT_LE(from, points.size());
    points.resize(from);
    for (const nlohmann::json& point : series.at("points")) {
      points.push_back(point);
    }
  }
  std::vector<nlohmann::json> points;
  size_t bytes = 0;
};

void ExpectEqual(const SampleHistory& history, const Copy& copy) {
  ASSERT_EQ(copy.points.size(), history.buckets().size());
  for (size_t i = 0; i < copy.points.size(); ++i) {
    const SampleHistory::Bucket& bucket = history.buckets()[i];
    EXPECT_EQ(copy.points[i][0].get<int64_t>(),
              (bucket.start_ns - history.buckets()[0].start_ns) / kMs);
    EXPECT_NEAR(copy.points[i][1].get<double>(), bucket.mean(),
                1e-5 * std::abs(bucket.mean()));
    EXPECT_NEAR(copy.points[i][2].get<double>(), bucket.min,
                1e-5 * std::abs(bucket.min));
    EXPECT_NEAR(copy.points[i][3].get<double>(), bucket.max,
                1e-5 * std::abs(bucket.max));
  }
}

TEST(SeriesCursor, ItsPiecesAddUpToTheHistory) {
  SampleHistory history(16);
  SeriesCursor cursor;
  Copy copy;
  // Long enough to merge the buckets several times.
  for (int i = 0; i < 400; ++i) {
    history.Add(i * 7 * kMs, std::sin(i * 0.1) * 1234.56789);
    if (i % 3 != 0) continue;
    copy.Add(cursor.Next(history));
    ExpectEqual(history, copy);
  }
}

TEST(SeriesCursor, SendsNothingWithoutANewSample) {
  SampleHistory history(16);
  SeriesCursor cursor;
  EXPECT_TRUE(cursor.Next(history).is_null());
  history.Add(0, 1);
  EXPECT_FALSE(cursor.Next(history).is_null());
  EXPECT_TRUE(cursor.Next(history).is_null());
}

TEST(SeriesCursor, SendsOnlyWhatIsNew) {
  SampleHistory history(512);
  for (int i = 0; i < 400; ++i) history.Add(i * 16 * kMs, i);
  SeriesCursor cursor;
  EXPECT_EQ(cursor.Next(history).at("points").size(), 400U);
  history.Add(399 * 16 * kMs, 1000);
  history.Add(400 * 16 * kMs, 0.123456789);
  const nlohmann::json piece = cursor.Next(history);
  EXPECT_EQ(piece.at("from"), 399);
  EXPECT_EQ(piece.at("points").size(), 2U);
  EXPECT_EQ(piece.at("points")[1][1], 0.123457);  // six digits
}

TEST(SeriesCursor, SendsNumbersOfAnySize) {
  SampleHistory history(16);
  for (const double number : {1e300, -1e300, 1e-300, 5e-324, 0.0}) {
    history.Add(0, number);
  }
  SeriesCursor cursor;
  const nlohmann::json piece = cursor.Next(history);
  EXPECT_DOUBLE_EQ(piece.at("points")[0][3].get<double>(), 1e300);
  EXPECT_DOUBLE_EQ(piece.at("points")[0][2].get<double>(), -1e300);
}

}  // namespace
}  // namespace tandem
