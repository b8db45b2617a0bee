#include "engine_adapter/frames/frame_pace.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

constexpr int64_t kMs = 1'000'000;

TEST(FramePace, KeepsTheRateWhileCoresAreFree) {
  FramePace pace(100);
  int64_t now = 5'000 * kMs;
  pace.Drew(now, now + 3 * kMs, 0);  // the first frame counts as late
  EXPECT_EQ(pace.due_ns(), now);
  for (int i = 1; i <= 10; ++i) {
    pace.Drew(pace.due_ns(), pace.due_ns() + 3 * kMs, 0);
    EXPECT_EQ(pace.due_ns(), now + i * 10 * kMs);
  }
}

TEST(FramePace, DoesNotMakeUpForLateFrames) {
  FramePace pace(100);
  pace.Drew(1'000 * kMs, 1'003 * kMs, 0);
  pace.Drew(1'500 * kMs, 1'503 * kMs, 0);
  EXPECT_EQ(pace.due_ns(), 1'500 * kMs);
}

TEST(FramePace, KeepsRateAfterABurst) {
  FramePace pace(10);
  int64_t now = 1'000 * kMs;
  for (int i = 0; i < 1'000; ++i, now += kMs) pace.Drew(now, now + kMs, 0);
  EXPECT_LE(pace.due_ns(), now + 100 * kMs);
}

TEST(FramePace, PausesAfterAFrameThatWaitedForACore) {
  FramePace pace(60);
  // 10 ms of work, and 10 ms of waiting for a core.
  pace.Drew(1'000 * kMs, 1'020 * kMs, 10 * kMs);
  EXPECT_EQ(pace.due_ns(), 1'170 * kMs);
  // The core is free again: the rate is back at once.
  pace.Drew(1'170 * kMs, 1'180 * kMs, kMs / 2);
  EXPECT_LT(pace.due_ns(), 1'187 * kMs);
}

TEST(FramePace, KeepsTheRateOnScarceCoresIfItIsComplete) {
  FramePace pace(100, /*complete=*/true);
  pace.Drew(1'000 * kMs, 1'020 * kMs, 10 * kMs);
  pace.Drew(1'020 * kMs, 1'028 * kMs, 7 * kMs);
  EXPECT_EQ(pace.due_ns(), 1'020 * kMs);
  pace.Drew(1'028 * kMs, 1'036 * kMs, 7 * kMs);
  EXPECT_EQ(pace.due_ns(), 1'030 * kMs);
}

TEST(FramePace, RestsASecondAtMost) {
  FramePace pace(60);
  pace.Drew(1'000 * kMs, 3'000 * kMs, 1'000 * kMs);
  EXPECT_EQ(pace.due_ns(), 4'000 * kMs);
}

TEST(FramePace, CountsAnyNumberOfFramesWithoutARate) {
  FramePace pace(0);
  for (int i = 0; i < 1'000; ++i) pace.Drew(i * kMs, i * kMs + kMs, 0);
  EXPECT_LE(pace.due_ns(), 1'000 * kMs);
}

}  // namespace
}  // namespace tandem
