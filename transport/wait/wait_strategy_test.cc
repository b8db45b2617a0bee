#include "transport/wait_strategy.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(WaitStrategy, IsFoundByItsName) {
  for (const WaitStrategy strategy :
       {WaitStrategy::kSpin, WaitStrategy::kAdaptive, WaitStrategy::kBlock}) {
    EXPECT_EQ(WaitStrategyNamed(NameOf(strategy)), strategy);
  }
  EXPECT_EQ(WaitStrategyNamed("spin"), WaitStrategy::kSpin);
  EXPECT_EQ(WaitStrategyNamed("adaptive"), WaitStrategy::kAdaptive);
  EXPECT_EQ(WaitStrategyNamed("block"), WaitStrategy::kBlock);
}

TEST(WaitStrategy, IsNotFoundByAnyOtherName) {
  for (const char* const name : {"", "Spin", "spin ", "blocking"}) {
    EXPECT_EQ(WaitStrategyNamed(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace tandem
