#include "transport/session/worker_election.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "schema/layout/lrbc.h"
#include "schema/layout/worker_slot.h"
#include "transport/memory/owned_region.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/session/testing/worker_rig.h"

namespace tandem {
namespace {

class Election : public testing::Test {
 protected:
  Election()
      : region_(OwnedRegion::Create(UniqueRegionName("election"),
                                    WorkerSpec(2, 2), {})
                    .value()),
        header_(region_.mapping()->header()),
        head_(region_.mapping()->At<WorkersHeader>(header_->workers_offset)),
        worker_(*region_.mapping(), *header_, 0),
        supervisor_(*region_.mapping(), *header_, kSupervisorIndex) {}

  uint64_t publisher() const {
    return head_->publisher.load(std::memory_order_relaxed);
  }

  OwnedRegion region_;
  LrbcHeader* header_;
  WorkersHeader* head_;
  WorkerElection worker_;
  WorkerElection supervisor_;
};

TEST_F(Election, EachExchangeHasOneWinner) {
  uint64_t found = publisher();
  EXPECT_TRUE(worker_.Win(1));
  EXPECT_FALSE(worker_.Win(1));
  EXPECT_FALSE(supervisor_.Win(1));
  EXPECT_FALSE(supervisor_.WinFrom(&found, 1));
  EXPECT_EQ(found, PackPublisher(1, 0));
  EXPECT_TRUE(supervisor_.Win(2));
}

// The supervisor has read `publisher`, has found exchange 1 done by all, and is
// preempted for the length of an exchange.
TEST_F(Election, ASupervisorThatWasPreemptedDoesNotWinAPastExchange) {
  uint64_t found = publisher();
  for (uint64_t exchange = 1; exchange <= 2; ++exchange) {
    ASSERT_TRUE(worker_.Win(exchange));
    worker_.Publish(exchange);
  }
  EXPECT_FALSE(supervisor_.WinFrom(&found, 1));
  EXPECT_EQ(publisher(), PackPublisher(2, 0));
  EXPECT_EQ(header_->frame_seq.load(std::memory_order_relaxed), 2u);
}

}  // namespace
}  // namespace tandem
