#include "viz/web/scene_pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>

#include "schema/layout/scene.h"

namespace tandem {
namespace {

constexpr int64_t kMs = 1'000'000;

TEST(ScenePace, TwoAreOnTheWayAndAnAcknowledgementCoversThoseBefore) {
  ScenePace pace;
  pace.Sent(3);
  EXPECT_TRUE(pace.MaySend());
  pace.Sent(7);
  EXPECT_FALSE(pace.MaySend());
  pace.Posed(2);  // an older one
  EXPECT_FALSE(pace.MaySend());
  pace.Posed(7);
  pace.Sent(8);
  EXPECT_TRUE(pace.MaySend());
}

// A link of 1 Mbit/s and 100 ms each way, and a writer of 30 snapshots a
// second.
struct OnTheLink {
  uint64_t number = 0;
  int64_t made_ns = 0;
  int64_t arrives_ns = 0;
};

// Returns the snapshots that arrive within 20 s.
std::deque<OnTheLink> Transfer(uint64_t bytes) {
  constexpr int64_t kLatencyNs = 100 * kMs;
  const int64_t line_ns = static_cast<int64_t>(bytes) * 8 * 1000;  // 1 Mbit/s
  ScenePace pace;
  std::deque<OnTheLink> on_the_way;
  std::deque<OnTheLink> arrived;
  uint64_t newest = 0;
  uint64_t sent = 0;
  int64_t free_ns = 0;  // when the line has sent what was given to it
  for (int64_t now_ns = 0; now_ns < 20'000 * kMs; now_ns += kMs) {
    newest = static_cast<uint64_t>(now_ns / (33 * kMs)) + 1;
    while (!on_the_way.empty() &&
           on_the_way.front().arrives_ns + kLatencyNs <= now_ns) {
      pace.Posed(on_the_way.front().number);
      arrived.push_back(on_the_way.front());
      on_the_way.pop_front();
    }
    if (newest > sent && pace.MaySend()) {
      sent = newest;
      pace.Sent(sent);
      free_ns = std::max(free_ns, now_ns) + line_ns;
      on_the_way.push_back({.number = sent,
                            .made_ns = now_ns,
                            .arrives_ns = free_ns + kLatencyNs});
    }
    EXPECT_LE(on_the_way.size(), ScenePace::kMostOnTheWay);
  }
  return arrived;
}

TEST(ScenePace, ASlowLinkGetsNewSnapshotsOnlyAndNoQueueGrows) {
  // One Humanoid (13 bodies): 416 bytes. 16 of them: 6.6 kB, 53 ms of the line.
  const uint64_t one = SceneRowBytes(13);
  EXPECT_EQ(one, 416U);
  for (const uint64_t bytes : {one, 16 * one}) {
    const std::deque<OnTheLink> arrived = Transfer(bytes);
    const int64_t line_ns = static_cast<int64_t>(bytes) * 8 * 1000;
    EXPECT_GE(arrived.size(), 100U) << bytes;
    for (size_t i = 0; i < arrived.size(); ++i) {
      // At most its own time on the line, and that of the one before.
      EXPECT_LE(arrived[i].arrives_ns - arrived[i].made_ns,
                100 * kMs + 2 * line_ns)
          << bytes;
      const uint64_t before = i == 0 ? 0 : arrived[i - 1].number;
      EXPECT_GT(arrived[i].number, before);
    }
    EXPECT_GT(arrived.back().number, 590U) << bytes;  // of 606
  }
}

}  // namespace
}  // namespace tandem
