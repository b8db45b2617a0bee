#include "transport/session/engine_workers.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "schema/layout/lrbc.h"
#include "schema/layout/worker_slot.h"
#include "transport/memory/owned_region.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/session/testing/worker_rig.h"

namespace tandem {
namespace {

constexpr int64_t kMs = 1'000'000;

// A region whose workers' words the test writes itself.
struct Slots {
  explicit Slots(uint32_t workers)
      : region(OwnedRegion::Create(UniqueRegionName("slots"),
                                   WorkerSpec(workers, workers), {})
                   .value()),
        header(region.mapping()->header()),
        slots(region.mapping()->At<WorkerSlot>(WorkerSlotOffset(*header, 0))),
        supervisor(region) {}

  void SetDone(uint64_t exchange) {
    for (uint32_t worker = 0; worker < supervisor.size(); ++worker) {
      // relaxed: one thread, here and below.
      slots[worker].done.store(exchange, std::memory_order_relaxed);
    }
  }

  OwnedRegion region;
  LrbcHeader* header;
  WorkerSlot* slots;
  EngineWorkers supervisor;
};

TEST(EngineWorkers, LeavesAnExchangeToALastFinisherThatLives) {
  Slots slots(2);
  int64_t now = 1000 * kMs;
  for (uint64_t exchange = 1; exchange <= 2; ++exchange) {
    slots.SetDone(exchange);
    EXPECT_FALSE(slots.supervisor.TakeOver(slots.region, now));
    EXPECT_FALSE(slots.supervisor.TakeOver(slots.region, now + kMs));
    EXPECT_TRUE(slots.supervisor.TakeOver(slots.region, now + 5 * kMs));
    EXPECT_EQ(slots.header->frame_seq.load(std::memory_order_relaxed),
              exchange);
    now += 5 * kMs;
  }
}

TEST(EngineWorkers, PublishesForADeadWinnerAtOnce) {
  Slots slots(2);
  slots.SetDone(1);
  slots.region.mapping()
      ->At<WorkersHeader>(slots.header->workers_offset)
      ->publisher.store(PackPublisher(1, 1), std::memory_order_relaxed);
  EXPECT_TRUE(slots.supervisor.TakeOver(slots.region, 1000 * kMs));
}

TEST(EngineWorkers, TestsTheLocksOfManyWorkersInSeveralCalls) {
  Slots slots(100);
  slots.slots[99].pid.store(7, std::memory_order_relaxed);
  EXPECT_EQ(slots.supervisor.FindDead(slots.region), std::nullopt);
  EXPECT_FALSE(slots.supervisor.TestedAll());
  EXPECT_EQ(slots.supervisor.FindDead(slots.region), 99u);
  EXPECT_TRUE(slots.supervisor.TestedAll());
  // It was returned.
  EXPECT_EQ(slots.supervisor.FindDead(slots.region), std::nullopt);
  EXPECT_EQ(slots.supervisor.FindDead(slots.region), std::nullopt);
  EXPECT_TRUE(slots.supervisor.TestedAll());
}

}  // namespace
}  // namespace tandem
