#include "viz/core/sample_history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <vector>

namespace tandem {
namespace {

TEST(SampleHistory, IsEmptyAtFirst) {
  const SampleHistory history(8);
  EXPECT_TRUE(history.buckets().empty());
  EXPECT_EQ(history.count(), 0u);
}

TEST(SampleHistory, KeepsASpikeOfOneSample) {
  SampleHistory history(4);
  for (int i = 0; i < 100'000; ++i) {
    history.Add(int64_t{i} * 16'000'000, i == 777 ? 1e6 : 1.0);
  }
  EXPECT_EQ(history.count(), 100'000u);
  EXPECT_EQ(history.buckets().front().max, 1e6);
  EXPECT_EQ(history.buckets().front().min, 1.0);
}

TEST(SampleHistory, OmitsNonFiniteSamples) {
  SampleHistory history(4);
  history.Add(1, NAN);
  history.Add(2, INFINITY);
  history.Add(3, 5);
  EXPECT_EQ(history.count(), 1u);
  EXPECT_EQ(history.buckets().front().mean(), 5);
}

TEST(SampleHistory, AcceptsClockThatGoesBack) {
  SampleHistory history(4);
  history.Add(1'000'000'000, 1);
  history.Add(0, 2);
  ASSERT_EQ(history.buckets().size(), 1u);
  EXPECT_EQ(history.buckets().front().count, 2u);
}

TEST(SampleHistory, AcceptsGapOfYears) {
  SampleHistory history(4);
  history.Add(0, 1);
  history.Add(int64_t{1} << 60, 2);
  EXPECT_EQ(history.buckets().size(), 2u);
}

// Compares with a second implementation that sorts all samples into buckets.
TEST(SampleHistory, AgreesWithItsTwin) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    const size_t capacity = 2 + random() % 30;
    SampleHistory history(capacity);
    const size_t reserved = history.buckets().capacity();
    std::vector<std::pair<int64_t, double>> samples;
    int64_t now = static_cast<int64_t>(random() % 1000);
    const int64_t begin = now;
    for (int i = 0; i < 500; ++i) {
      const double value = static_cast<double>(random() % 1000);
      history.Add(now, value);
      samples.emplace_back(now, value);
      now += static_cast<int64_t>(random() % 50'000'000);
    }
    std::map<int64_t, SampleHistory::Bucket> twin;
    for (const auto& [time, value] : samples) {
      const int64_t width = history.bucket_ns();
      const int64_t start = begin + (time - begin) / width * width;
      auto [at, fresh] = twin.try_emplace(
          start, SampleHistory::Bucket{start, 0, 0, value, value, value});
      ++at->second.count;
      at->second.sum += value;
      at->second.min = std::min(at->second.min, value);
      at->second.max = std::max(at->second.max, value);
      at->second.last = value;
    }
    ASSERT_EQ(history.buckets().size(), twin.size());
    EXPECT_LE(twin.size(), capacity);
    EXPECT_EQ(history.buckets().capacity(), reserved);
    auto expected = twin.begin();
    for (const SampleHistory::Bucket& bucket : history.buckets()) {
      EXPECT_EQ(bucket.start_ns, expected->second.start_ns);
      EXPECT_EQ(bucket.count, expected->second.count);
      EXPECT_EQ(bucket.sum, expected->second.sum);
      EXPECT_EQ(bucket.min, expected->second.min);
      EXPECT_EQ(bucket.max, expected->second.max);
      EXPECT_EQ(bucket.last, expected->second.last);
      ++expected;
    }
  }
}

}  // namespace
}  // namespace tandem
