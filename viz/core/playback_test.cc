#include "viz/core/playback.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "viz/core/frame_tape.h"

namespace tandem {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// Frames at 10, 11, ... 20 s.
FrameTape TenSeconds() {
  FrameTape tape;
  for (int64_t secs = 10; secs <= 20; ++secs) {
    KeptFrame frame;
    frame.at_ns = secs * kSecond;
    frame.number = static_cast<uint64_t>(secs);
    tape.Keep(frame);
  }
  return tape;
}

TEST(Playback, AFrozenImageGrowsOlderWithTheClock) {
  Freshness freshness;
  freshness.SetLink(Freshness::Link::kAttached);
  freshness.SawNewFrame(9 * kSecond);
  Playback playback;
  playback.Freeze(10 * kSecond, freshness);
  freshness.SawNewFrame(15 * kSecond);  // the run goes on
  EXPECT_TRUE(playback.frozen());
  EXPECT_EQ(playback.AgeNsAt(16 * kSecond, freshness), 7 * kSecond);
  playback.Resume();
  EXPECT_EQ(playback.AgeNsAt(16 * kSecond, freshness), kSecond);
}

TEST(Playback, AFrozenImageOfUnknownAgeStaysSo) {
  Freshness freshness;
  freshness.SetLink(Freshness::Link::kAttached);
  freshness.SawOldFrame(9 * kSecond);
  Playback playback;
  playback.Freeze(10 * kSecond, freshness);
  freshness.SawNewFrame(11 * kSecond);
  EXPECT_EQ(playback.AgeTextAt(12 * kSecond, freshness), "over 3.0 s");
  playback.Resume();
  EXPECT_EQ(playback.AgeTextAt(12 * kSecond, freshness), "1.0 s");
}

TEST(Playback, SeeksToATimeBeforeTheTapesEnd) {
  const FrameTape tape = TenSeconds();
  Playback playback;
  EXPECT_EQ(playback.SeekTo(0, 30 * kSecond, tape)->number, 20U);
  EXPECT_TRUE(playback.frozen());
  EXPECT_EQ(playback.SeekTo(4 * kSecond, 25 * kSecond, tape)->number, 16U);
  EXPECT_EQ(playback.AgeNsAt(25 * kSecond, Freshness()), 9 * kSecond);
  EXPECT_EQ(playback.SeekTo(99 * kSecond, 25 * kSecond, tape)->number, 10U);
  EXPECT_EQ(playback.SeekTo(-99 * kSecond, 25 * kSecond, tape)->number, 20U);
}

TEST(Playback, AnEmptyTapeChangesNothing) {
  Playback playback;
  EXPECT_EQ(playback.SeekTo(0, kSecond, FrameTape()), nullptr);
  EXPECT_FALSE(playback.frozen());
}

}  // namespace
}  // namespace tandem
