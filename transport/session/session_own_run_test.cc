// The statistics of rewards that a client computes itself, between both ends of
// the protocol; the test is the engine's thread.

#include <gtest/gtest.h>

#include <optional>

#include "base/clock.h"
#include "schema/layout/lrbc.h"
#include "transport/client_side.h"
#include "transport/run_snapshot.h"
#include "transport/session/engine_side.h"
#include "transport/session/testing/echo_engine.h"

namespace tandem {
namespace {

constexpr RunSnapshot kRun = {.last_reward = 0.5,
                              .rolling_return = -3,
                              .episodes = 17,
                              .episode_length = 200};

class SessionOwnRun : public SessionTest {
 protected:
  EngineSide side_ = OpenSide(name_, EchoSpec());
};

TEST_F(SessionOwnRun, TheEngineReadsWhatTheClientShows) {
  ClientSide client = AttachTo(side_, name_);
  EXPECT_EQ(side_.OwnRun(), std::nullopt);
  ASSERT_EQ(client.ShowOwnRun(kRun), ErrorCode::kOk);
  EXPECT_EQ(side_.OwnRun(), kRun);
}

TEST_F(SessionOwnRun, ItIsShownDuringAStep) {
  ClientSide client = AttachTo(side_, name_);
  ASSERT_EQ(client.Send(kActions), ErrorCode::kOk);
  EXPECT_EQ(client.ShowOwnRun(kRun), ErrorCode::kOk);
  EXPECT_EQ(side_.OwnRun(), kRun);
}

TEST_F(SessionOwnRun, TheEngineKeepsItsCopyDuringAWrite) {
  ClientSide client = AttachTo(side_, name_);
  ASSERT_EQ(client.ShowOwnRun(kRun), ErrorCode::kOk);
  EXPECT_EQ(side_.OwnRun(), kRun);
  LrbcHeader* const header = client.mapping()->header();
  // relaxed: the test has one thread.
  header->own_seq.fetch_add(1, std::memory_order_relaxed);
  header->own_episodes.store(18, std::memory_order_relaxed);
  EXPECT_EQ(side_.OwnRun(), kRun);
}

TEST_F(SessionOwnRun, TheNextClientHasNone) {
  {
    ClientSide client = AttachTo(side_, name_);
    ASSERT_EQ(client.ShowOwnRun(kRun), ErrorCode::kOk);
    // relaxed: as above. It dies during a write.
    client.mapping()->header()->own_seq.fetch_add(1, std::memory_order_relaxed);
  }
  EXPECT_EQ(side_.Next(Deadline::After(20)), EngineEvent::kClientLeft);
  ClientSide next = AttachTo(side_, name_);
  EXPECT_EQ(side_.OwnRun(), std::nullopt);
  ASSERT_EQ(next.ShowOwnRun(kRun), ErrorCode::kOk);
  EXPECT_EQ(side_.OwnRun(), kRun);
}

TEST_F(SessionOwnRun, ItStaysWhenTheClientLeavesUntilAHeaderOnlyClientSteps) {
  {
    ClientSide client = AttachTo(side_, name_);
    ASSERT_EQ(client.ShowOwnRun(kRun), ErrorCode::kOk);
  }
  EXPECT_EQ(side_.Next(Deadline::After(20)), EngineEvent::kClientLeft);
  EXPECT_EQ(side_.OwnRun(), kRun);
  // relaxed: as above.
  side_.mapping()->header()->action_seq.fetch_add(1, std::memory_order_relaxed);
  EXPECT_EQ(side_.Next(Deadline::After(20)), EngineEvent::kExchange);
  side_.Publish();
  EXPECT_EQ(side_.OwnRun(), std::nullopt);
}

TEST_F(SessionOwnRun, AClosedClientShowsNothing) {
  ClientSide client = AttachTo(side_, name_);
  ASSERT_EQ(client.Close(), ErrorCode::kOk);
  EXPECT_EQ(client.ShowOwnRun(kRun), ErrorCode::kClientClosed);
  EXPECT_EQ(side_.OwnRun(), std::nullopt);
}

}  // namespace
}  // namespace tandem
