#include "engine_adapter/core/env_random.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

// The numbers are NumPy 2.4.6's; env_random_numpy_test.py compares millions.
TEST(EnvRandom, DrawsWhatNumPyDraws) {
  EnvRandom random(0);
  EXPECT_EQ(random.Uniform(-0.1, 0.1), 0.027392337464290872);
  EXPECT_EQ(random.Uniform(-0.1, 0.1), -0.04604265724722594);
  EXPECT_EQ(random.StandardNormal(), 0.6404226504432821);
  EXPECT_EQ(random.StandardNormal(), 0.10490011715303971);
  EXPECT_EQ(random.Uniform(2, 5), 4.4398107176008175);
}

TEST(EnvRandom, DrawsFromTheTailAndGoesOnAsNumPyDoes) {
  EnvRandom random(0);
  for (int i = 0; i < 303; ++i) EXPECT_LT(random.StandardNormal(), 3.65);
  EXPECT_EQ(random.StandardNormal(), -3.772275156122734);
  EXPECT_EQ(random.StandardNormal(), 0.2606297490669398);
}

TEST(EnvRandom, ACopyDrawsTheSame) {
  EnvRandom random(7);
  random.StandardNormal();
  EnvRandom copy = random;
  const double next = random.StandardNormal();
  EXPECT_EQ(copy.StandardNormal(), next);
  EXPECT_NE(random.StandardNormal(), next);
}

}  // namespace
}  // namespace tandem
