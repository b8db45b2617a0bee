#include "slow_lane/daemon/cpu_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::slow_lane {
namespace {

using ::testing::ElementsAre;

TEST(CpuShares, GivesTheLeastUsedProcessors) {
  CpuShares shares({0, 2, 4, 6});
  EXPECT_THAT(shares.Take(2), ElementsAre(0, 2));
  EXPECT_THAT(shares.Take(1), ElementsAre(4));
  EXPECT_THAT(shares.Take(2), ElementsAre(0, 6));
  shares.Release({0, 2});
  EXPECT_THAT(shares.Take(1), ElementsAre(2));
}

TEST(CpuShares, GivesAllIfThereAreFewer) {
  CpuShares shares({1, 3});
  EXPECT_THAT(shares.Take(8), ElementsAre(1, 3));
}

TEST(CpuShares, CountsTheRunsOfAnEarlierDaemon) {
  CpuShares shares({0, 1});
  shares.Mark({0, 7});
  EXPECT_THAT(shares.Take(1), ElementsAre(1));
}

}  // namespace
}  // namespace tandem::slow_lane
