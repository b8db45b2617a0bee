#include "viz/core/freshness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace tandem {
namespace {

using Link = Freshness::Link;

constexpr int64_t kMs = 1'000'000;

Freshness Live(int64_t since_ns) {
  Freshness freshness;
  freshness.SetLink(Link::kAttached);
  freshness.SawNewFrame(since_ns);
  return freshness;
}

TEST(Freshness, IsUnavailableAtFirst) {
  const Freshness freshness;
  EXPECT_EQ(freshness.StateAt(0), FreshnessState::kUnavailable);
  EXPECT_FALSE(freshness.AgeNsAt(0).has_value());
}

TEST(Freshness, IsNotConnectedByAttachingAlone) {
  Freshness freshness;
  freshness.SetLink(Link::kAttached);
  EXPECT_EQ(freshness.StateAt(0), FreshnessState::kStale);
}

TEST(Freshness, FrameFromBeforeAttachIsNotLive) {
  Freshness freshness;
  freshness.SetLink(Link::kAttached);
  freshness.SawOldFrame(0);
  EXPECT_EQ(freshness.StateAt(0), FreshnessState::kStale);
  EXPECT_EQ(freshness.StateAt(1), FreshnessState::kStale);
  EXPECT_TRUE(freshness.AgeIsAtLeast());
}

TEST(Freshness, IsConnectedWhileFramesAreYoung) {
  const Freshness freshness = Live(1'000 * kMs);
  EXPECT_EQ(freshness.StateAt(1'000 * kMs + Freshness::kMaxLiveAgeNs),
            FreshnessState::kConnected);
  EXPECT_FALSE(freshness.AgeIsAtLeast());
}

TEST(Freshness, GoesStaleByItsAge) {
  const Freshness freshness = Live(1'000 * kMs);
  const int64_t later = 1'000 * kMs + Freshness::kMaxLiveAgeNs + 1;
  EXPECT_EQ(freshness.StateAt(later), FreshnessState::kStale);
  EXPECT_EQ(freshness.AgeNsAt(later), Freshness::kMaxLiveAgeNs + 1);
}

TEST(Freshness, ComesBackWithTheNextFrame) {
  Freshness freshness = Live(0);
  EXPECT_EQ(freshness.StateAt(10'000 * kMs), FreshnessState::kStale);
  freshness.SawNewFrame(10'000 * kMs);
  EXPECT_EQ(freshness.StateAt(10'001 * kMs), FreshnessState::kConnected);
}

// The states that a view shows for a writer of `hz` frames a second, polled
// every `look_ms`. `steady`: connected from the first new frame for 20 s.
// `live_for_ms`: how long it stays connected after the last frame.
struct Course {
  bool steady = true;
  int64_t live_for_ms = 0;
};
Course Watch(int64_t hz, int64_t look_ms) {
  constexpr int64_t kEndMs = 20'000;
  Freshness freshness;
  freshness.SetLink(Link::kAttached);
  int64_t taken = 0;
  Course course;
  for (int64_t now_ms = 0; now_ms < kEndMs + 2'000; now_ms += look_ms) {
    const int64_t frames = std::min(now_ms, kEndMs) * hz / 1'000;
    if (frames > taken) freshness.SawNewFrame((now_ms - look_ms) * kMs);
    taken = frames;
    const bool live =
        freshness.StateAt(now_ms * kMs) == FreshnessState::kConnected;
    if (taken > 0 && now_ms < kEndMs) course.steady &= live;
    if (live) course.live_for_ms = now_ms - kEndMs;
  }
  return course;
}

TEST(Freshness, IsLiveAtThreeFramesASecondAndStaleAfterThem) {
  for (const int64_t look_ms : {7, 16, 30}) {
    const Course course = Watch(/*hz=*/3, look_ms);
    EXPECT_TRUE(course.steady) << look_ms;
    EXPECT_LE(course.live_for_ms, 400) << look_ms;
    EXPECT_GT(course.live_for_ms, 300) << look_ms;
  }
  EXPECT_TRUE(Watch(/*hz=*/4, /*look_ms=*/50).steady);  // A hidden tab.
  EXPECT_FALSE(Watch(/*hz=*/2, /*look_ms=*/16).steady);
}

// The previous poll was a second ago: the frame may be that old.
TEST(Freshness, LatePollCountsAsLateFrame) {
  EXPECT_EQ(Live(0).StateAt(1'000 * kMs), FreshnessState::kStale);
}

TEST(Freshness, LostWriterOutweighsRecentFrame) {
  Freshness freshness = Live(0);
  freshness.SetLink(Link::kLost);
  EXPECT_EQ(freshness.StateAt(1), FreshnessState::kReconnecting);
  freshness.SetLink(Link::kNoRun);
  EXPECT_EQ(freshness.StateAt(1), FreshnessState::kUnavailable);
  EXPECT_EQ(freshness.AgeNsAt(5), 5);  // The age of the last image.
}

TEST(Freshness, NamesStatesAsMosaicDoes) {
  EXPECT_EQ(FreshnessName(FreshnessState::kConnected), "connected");
  EXPECT_EQ(FreshnessName(FreshnessState::kReconnecting), "reconnecting");
  EXPECT_EQ(FreshnessName(FreshnessState::kUnavailable),
            "fastlane-unavailable");
  EXPECT_EQ(FreshnessName(FreshnessState::kStale), "stale");
}

}  // namespace
}  // namespace tandem
