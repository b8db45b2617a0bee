#include "engine_adapter/mujoco/model/numpy_sum.h"

#include <gtest/gtest.h>

#include <vector>

namespace tandem {
namespace {

// Squares of 1, 1 + 2^-12, 1 + 2 * 2^-12, ...: exact in double, not in float.
std::vector<float> Steps(size_t n) {
  std::vector<float> values;
  for (size_t i = 0; i < n; ++i) {
    values.push_back(1 + static_cast<float>(i) * 0x1p-12F);
  }
  return values;
}

float Sum(size_t n) { return SumOfSquares<float>(Steps(n)); }

// What numpy.sum(numpy.square(1 + numpy.arange(n, dtype="f4") / 4096)) gives.
TEST(NumpySum, AddsInNumpysOrder) {
  EXPECT_EQ(Sum(0), 0.0F);
  EXPECT_EQ(Sum(1), 0x1p+0F);
  EXPECT_EQ(Sum(7), 0x1.c0a818p+2F);
  EXPECT_EQ(Sum(8), 0x1.007012p+3F);
  EXPECT_EQ(Sum(17), 0x1.11105ep+4F);
  EXPECT_EQ(Sum(128), 0x1.080514p+7F);
  EXPECT_EQ(Sum(129), 0x1.0a2594p+7F);
  EXPECT_EQ(Sum(300), 0x1.426ee4p+8F);
  EXPECT_EQ(Sum(1000), 0x1.3bef08p+10F);
}

TEST(NumpySum, AddsAPartOfARow) {
  const std::vector<double> values = {100, 1, 2, 3, 100};
  EXPECT_EQ(NumpySum<double>(1, 4, [&](size_t i) { return values[i]; }), 6);
}

}  // namespace
}  // namespace tandem
