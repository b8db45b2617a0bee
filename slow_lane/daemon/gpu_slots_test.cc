#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "slow_lane/daemon/run_starter.h"

namespace tandem::slow_lane {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

TEST(GpuSlots, GivesEachSlotToOneRunAtATime) {
  GpuSlots slots(3);
  EXPECT_THAT(slots.Take(2, true), Optional(ElementsAre(0, 1)));
  EXPECT_EQ(slots.Take(2, true), std::nullopt);
  slots.Release({0});
  EXPECT_THAT(slots.Take(2, true), Optional(ElementsAre(0, 2)));
}

TEST(GpuSlots, GivesFewerSlotsIfTheyAreNotMandatory) {
  GpuSlots slots(1);
  EXPECT_THAT(slots.Take(4, false), Optional(ElementsAre(0)));
  EXPECT_THAT(slots.Take(4, false), Optional(IsEmpty()));
}

TEST(GpuSlots, MarksSlotsOfAnEarlierDaemon) {
  GpuSlots slots(2);
  slots.Mark({0, 5});  // the earlier daemon had more slots
  EXPECT_THAT(slots.Take(1, true), Optional(ElementsAre(1)));
  slots.Release({0, 5});
  EXPECT_THAT(slots.Take(8, false), Optional(ElementsAre(0)));
}

}  // namespace
}  // namespace tandem::slow_lane
