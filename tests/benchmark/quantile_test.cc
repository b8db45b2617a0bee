#include "tests/benchmark/quantile.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

namespace tandem {
namespace {

TEST(Quantile, IsTheSmallestValueThatSoManyDoNotExceed) {
  std::vector<int64_t> values(200);
  std::iota(values.begin(), values.end(), 1);
  EXPECT_EQ(Quantile(values, 0.5), 100);
  EXPECT_EQ(Quantile(values, 0.99), 198);
  EXPECT_EQ(Quantile(values, 1), 200);
  EXPECT_EQ(Quantile({1, 2, 3}, 0.5), 2);
  EXPECT_EQ(Quantile({1, 2, 3}, 0.99), 3);
}

TEST(Quantile, OfOneValueIsIt) {
  EXPECT_EQ(Quantile({7}, 0), 7);
  EXPECT_EQ(Quantile({7}, 0.99), 7);
}

TEST(Quantile, OfNoneIsZero) { EXPECT_EQ(Quantile({}, 0.5), 0); }

}  // namespace
}  // namespace tandem
