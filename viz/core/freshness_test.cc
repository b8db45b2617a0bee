#include "viz/core/freshness.h"

#include <gtest/gtest.h>

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

TEST(Freshness, SaysUnavailableBeforeAnything) {
  const Freshness freshness;
  EXPECT_EQ(freshness.StateAt(0), FreshnessState::kUnavailable);
  EXPECT_FALSE(freshness.AgeNsAt(0).has_value());
}

TEST(Freshness, IsNotConnectedByAttachingAlone) {
  Freshness freshness;
  freshness.SetLink(Link::kAttached);
  EXPECT_EQ(freshness.StateAt(0), FreshnessState::kStale);
}

TEST(Freshness, NeverCallsLiveWhatWasThereBefore) {
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

// The look before was a second ago: so may the frame be.
TEST(Freshness, TakesALateLookForALateFrame) {
  EXPECT_EQ(Live(0).StateAt(1'000 * kMs), FreshnessState::kStale);
}

TEST(Freshness, LetsALostLinkOutweighAYoungPicture) {
  Freshness freshness = Live(0);
  freshness.SetLink(Link::kLost);
  EXPECT_EQ(freshness.StateAt(1), FreshnessState::kReconnecting);
  freshness.SetLink(Link::kNoRun);
  EXPECT_EQ(freshness.StateAt(1), FreshnessState::kUnavailable);
  EXPECT_EQ(freshness.AgeNsAt(5), 5);  // of the picture that is left
}

TEST(Freshness, NamesTheStatesAsTheSeedDoes) {
  EXPECT_EQ(FreshnessName(FreshnessState::kConnected), "connected");
  EXPECT_EQ(FreshnessName(FreshnessState::kReconnecting), "reconnecting");
  EXPECT_EQ(FreshnessName(FreshnessState::kUnavailable),
            "fastlane-unavailable");
  EXPECT_EQ(FreshnessName(FreshnessState::kStale), "stale");
}

}  // namespace
}  // namespace tandem
