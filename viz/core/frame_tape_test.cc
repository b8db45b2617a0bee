#include "viz/core/frame_tape.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "transport/memory/testing/unique_region_name.h"
#include "viz/testing/pattern.h"

namespace tandem {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

KeptFrame FrameAt(int64_t at_ns, size_t bytes = 10) {
  KeptFrame frame;
  frame.at_ns = at_ns;
  frame.picture.file.resize(bytes);
  return frame;
}

TEST(FrameTape, ReturnsTheFrameThatWasShownAtATime) {
  FrameTape tape;
  EXPECT_EQ(tape.At(kSecond), nullptr);
  for (const int64_t secs : {10, 11, 12}) tape.Keep(FrameAt(secs * kSecond));
  EXPECT_EQ(tape.At(9 * kSecond)->at_ns, 10 * kSecond);  // the oldest
  EXPECT_EQ(tape.At(11 * kSecond)->at_ns, 11 * kSecond);
  EXPECT_EQ(tape.At(12 * kSecond - 1)->at_ns, 11 * kSecond);
  EXPECT_EQ(tape.At(99 * kSecond)->at_ns, 12 * kSecond);
  EXPECT_EQ(tape.begin_ns(), 10 * kSecond);
  EXPECT_EQ(tape.end_ns(), 12 * kSecond);
}

TEST(FrameTape, RemovesFramesOlderThanItsSpan) {
  FrameTape tape({.span_ns = 60 * kSecond});
  for (int64_t secs = 0; secs <= 100; ++secs) {
    tape.Keep(FrameAt(secs * kSecond));
  }
  EXPECT_EQ(tape.begin_ns(), 40 * kSecond);
  EXPECT_EQ(tape.size(), 61U);
  EXPECT_EQ(tape.bytes(), 610U);
}

TEST(FrameTape, RemovesFramesBeyondItsBytesAndKeepsTheNewest) {
  FrameTape tape({.bytes = 100});
  for (int64_t secs = 0; secs < 9; ++secs) {
    tape.Keep(FrameAt(secs * kSecond, 30));
  }
  EXPECT_EQ(tape.size(), 3U);
  EXPECT_EQ(tape.bytes(), 90U);
  tape.Keep(FrameAt(9 * kSecond, 1000));
  EXPECT_EQ(tape.size(), 1U);
  EXPECT_EQ(tape.bytes(), 1000U);
}

TEST(FrameTape, ManyTapesHaveLessEach) {
  FrameTape tape;
  for (int64_t secs = 0; secs < 32; ++secs) {
    tape.Keep(FrameAt(secs * kSecond, size_t{1} << 20));
  }
  EXPECT_EQ(tape.size(), 32U);
  tape.ShareWith(8);
  EXPECT_EQ(tape.size(), 32U);
  tape.ShareWith(64);
  EXPECT_EQ(tape.size(), 4U);
  EXPECT_EQ(tape.end_ns(), 31 * kSecond);
  tape.ShareWith(1000);
  EXPECT_EQ(tape.size(), 1U);
}

TEST(FrameTape, AReaderKeepsAFrameThatTheTapeHasRemoved) {
  FrameTape tape({.bytes = 10});
  tape.Keep(FrameAt(kSecond));
  const std::shared_ptr<const KeptFrame> kept = tape.At(kSecond);
  tape.Keep(FrameAt(2 * kSecond));
  EXPECT_EQ(tape.size(), 1U);
  EXPECT_EQ(kept->at_ns, kSecond);
}

TEST(FrameTape, KeepsAtMostOneFrameOfAGap) {
  const std::string run = UniqueRegionName("tape");
  const Publisher publisher({.run = run, .hz = 500});
  FrameWatch watch(run);
  FrameTape tape({.least_gap_ns = 100'000'000});
  // The test's times: each new frame is 10 ms after the one before.
  int64_t now_ns = 0;
  for (int frames = 0; frames < 31;) {
    if (!watch.Poll(MonotonicNanos())) continue;
    ++frames;
    now_ns += 10'000'000;
    tape.Record(watch, now_ns);
  }
  EXPECT_EQ(tape.size(), 4U);  // at 10, 110, 210 and 310 ms
  const std::shared_ptr<const KeptFrame> kept = tape.At(now_ns);
  EXPECT_EQ(kept->picture.width, 64U);
  EXPECT_EQ(kept->picture.height, 48U);
  EXPECT_TRUE(kept->metadata.step.has_value());
  ASSERT_GT(kept->picture.file.size(), 2U);
  EXPECT_EQ(kept->picture.file[0], 0xFF);  // a JPEG file's first bytes
  EXPECT_EQ(kept->picture.file[1], 0xD8);
}

}  // namespace
}  // namespace tandem
