#include "transport/wait/core_sharing.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <utility>

#include "schema/layout/shared_word.h"

namespace tandem {
namespace {

constexpr int64_t kLong = CoreSharing::kLongNs;
constexpr int kWaits = CoreSharing::kWaitsToChange;

class CoreSharingTest : public testing::Test {
 protected:
  CoreSharingTest() {
    // relaxed: here and below, there is one thread.
    peer_.store(1 + 3, std::memory_order_relaxed);
    own_.store(77, std::memory_order_relaxed);
    sharing_.Share(&peer_, &own_);
  }
  // Returns how many of these waits turned the sharing off.
  int Wait(int times, int64_t length_ns, bool slept) {
    int turned_off = 0;
    for (int i = 0; i < times; ++i) {
      now_ns_ += length_ns;
      turned_off += sharing_.Waited(length_ns, slept, now_ns_);
    }
    return turned_off;
  }
  int WaitLong(int times) { return Wait(times, kLong, /*slept=*/true); }
  int WaitShort(int times) { return Wait(times, 1'000, /*slept=*/true); }

  SharedWord<uint32_t> peer_{}, own_{};
  CoreSharing sharing_;
  int64_t now_ns_ = 1'000'000'000;
};

TEST_F(CoreSharingTest, BeginsAfterLongSleeps) {
  WaitLong(kWaits - 1);
  EXPECT_FALSE(sharing_.on());
  EXPECT_EQ(sharing_.CoreAt(now_ns_), -1);
  WaitLong(1);
  EXPECT_TRUE(sharing_.on());
  EXPECT_EQ(sharing_.CoreAt(now_ns_), 3);
}

TEST_F(CoreSharingTest, DoesNotBeginWhereSpinsSeeTheRequest) {
  Wait(100, kLong, /*slept=*/false);
  Wait(100, kLong - 1, /*slept=*/true);
  EXPECT_FALSE(sharing_.on());
  EXPECT_TRUE(sharing_.IsIdle());
}

TEST_F(CoreSharingTest, DoesNotBeginWithoutWords) {
  CoreSharing none;
  for (int i = 0; i < 100; ++i) none.Waited(kLong, /*slept=*/true, now_ns_);
  EXPECT_FALSE(none.on());
  none.Tell(3);
}

TEST_F(CoreSharingTest, EndsAfterAsManyShortWaits) {
  WaitLong(100);
  EXPECT_EQ(WaitShort(kWaits - 1), 0);
  EXPECT_TRUE(sharing_.on());
  EXPECT_EQ(WaitShort(1), 1);
  EXPECT_FALSE(sharing_.on());
  EXPECT_EQ(WaitShort(1), 0);
}

// Such as a policy for several steps.
TEST_F(CoreSharingTest, IsOffWhereMostWaitsAreShort) {
  WaitLong(kWaits);
  for (int i = 0; i < 10; ++i) {
    WaitShort(3);
    WaitLong(1);
  }
  EXPECT_FALSE(sharing_.on());
}

TEST_F(CoreSharingTest, NamesTheCoreUntilThePeerIsAwayForLong) {
  WaitLong(kWaits);
  EXPECT_EQ(sharing_.CoreAt(now_ns_ + CoreSharing::kSharesForNs - 1), 3);
  EXPECT_EQ(sharing_.CoreAt(now_ns_ + CoreSharing::kSharesForNs), -1);
}

TEST_F(CoreSharingTest, TakesAnyWordOfThePeer) {
  WaitLong(kWaits);
  constexpr int kMost = std::numeric_limits<int>::max();
  for (const auto& [word, core] :
       {std::pair(0U, -1), {1U, 0}, {~0U, -2}, {1U << 31, kMost}}) {
    peer_.store(word, std::memory_order_relaxed);
    sharing_.Tell(sharing_.CoreAt(now_ns_));
    EXPECT_EQ(own_.load(std::memory_order_relaxed), word);
    EXPECT_EQ(sharing_.CoreAt(now_ns_), core);
    EXPECT_EQ(sharing_.Shares(), core >= 0);
  }
}

TEST_F(CoreSharingTest, TellsItsCore) {
  EXPECT_EQ(own_.load(std::memory_order_relaxed), 0U) << "from the start";
  sharing_.Tell(3);
  EXPECT_EQ(own_.load(std::memory_order_relaxed), 4U);
  sharing_.Tell(-1);
  EXPECT_EQ(own_.load(std::memory_order_relaxed), 0U);
}

}  // namespace
}  // namespace tandem
