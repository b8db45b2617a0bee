// Both ends of the protocol in one process: the engine on its own thread.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/os/shared_region.h"
#include "transport/client_side.h"
#include "transport/region.h"
#include "transport/session/engine_side.h"
#include "transport/session/testing/echo_engine.h"

namespace tandem {
namespace {

TEST_F(EchoSession, EachExchangeMovesActionsOnceAndCountsByOne) {
  for (int i = 1; i <= 1000; ++i) {
    const float x = static_cast<float>(i);
    ASSERT_EQ(Step(client_, {x, 0, 0, 0, 0, -x}), ErrorCode::kOk);
    ASSERT_EQ(client_.arrays().obs[0], x);
    ASSERT_EQ(client_.arrays().obs[5], -x);
    // relaxed: the exchange is over.
    ASSERT_EQ(
        client_.mapping()->header()->frame_seq.load(std::memory_order_relaxed),
        static_cast<uint64_t>(i));
  }
  EXPECT_EQ(engine_.steps(), 1000);
  const ClientStats stats = client_.Stats();
  EXPECT_EQ(stats.exchanges, 1000u);
  EXPECT_EQ(stats.round_trips.count(), 1000u);
  EXPECT_GE(stats.round_trips.total_ns, stats.engine_steps.total_ns / 2);
}

TEST_F(EchoSession, ResetOnlyStepsNoEnvironmentAndClearsFlags) {
  const std::vector<int64_t> envs = {0, 2};
  const std::vector<std::optional<uint64_t>> seeds = {std::nullopt, 42};
  ASSERT_EQ(client_.SendReset(envs, seeds), ErrorCode::kOk);
  EXPECT_EQ(client_.arrays().reset_seeds[2], 42u);
  ASSERT_EQ(client_.Recv(Deadline::After(20)), ErrorCode::kOk);
  EXPECT_EQ(engine_.steps(), 0);
  EXPECT_EQ(engine_.resets(), 2);
  for (const uint8_t flag : client_.arrays().resets) EXPECT_EQ(flag, 0);
  const std::vector<int64_t> beyond = {3};
  EXPECT_EQ(client_.SendReset(beyond, {}), ErrorCode::kInvalidArgument);
  const std::vector<std::optional<uint64_t>> one_seed = {42};
  EXPECT_EQ(client_.SendReset(envs, one_seed), ErrorCode::kInvalidArgument);
  for (const absl::string_view part : {"indices in 0 .. 2", "seeds"}) {
    EXPECT_NE(client_.Explain(ErrorCode::kInvalidArgument).message().find(part),
              absl::string_view::npos);
  }
  EXPECT_EQ(Step(client_, kActions), ErrorCode::kOk);
  EXPECT_EQ(engine_.steps(), 1);
}

TEST_F(EchoSession, RefusesActionsThatAreNotFiniteOrOfAnotherSize) {
  EXPECT_EQ(client_.Send(std::vector<float>(5)), ErrorCode::kInvalidAction);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(client_.Send(std::vector<float>{0, 0, 0, bad, 0, 0}),
              ErrorCode::kInvalidAction);
    EXPECT_NE(
        client_.Explain(ErrorCode::kInvalidAction).message().find("[1, 1]"),
        absl::string_view::npos);
  }
  client_.arrays().actions[4] = std::nanf("");
  EXPECT_EQ(client_.Send(client_.arrays().actions), ErrorCode::kInvalidAction);
  EXPECT_EQ(Step(client_, kActions), ErrorCode::kOk);
  EXPECT_EQ(engine_.steps(), 1);
}

using Session = SessionTest;

TEST_F(Session, ASubsetCopiesItsRowsAndSkipsAllOthers) {
  RegionSpec spec = EchoSpec();
  spec.subsets = true;
  EngineSide side = OpenSide(name_, spec);
  ClientSide client = AttachTo(side, name_);
  const std::span<float> actions = client.arrays().actions;
  const std::vector<int64_t> envs = {2, 0};
  client.arrays().resets[0] = kResetRequested;
  client.arrays().resets[1] = kResetRequested;
  ASSERT_EQ(client.Send(std::vector<float>{5, 6, 1, 2}, envs), ErrorCode::kOk);
  EXPECT_EQ(std::vector<float>(actions.begin(), actions.end()),
            (std::vector<float>{1, 2, 0, 0, 5, 6}));
  ASSERT_EQ(side.Next(Deadline::After(20)), EngineEvent::kExchange);
  EXPECT_EQ(side.kind(), ExchangeKind::kStep);
  const std::span<uint8_t> flags = side.arrays().resets;
  EXPECT_EQ(std::vector<uint8_t>(flags.begin(), flags.end()),
            (std::vector<uint8_t>{kResetRequested, kSkip, 0}));
  side.Publish();
  ASSERT_EQ(client.Recv(Deadline::After(20)), ErrorCode::kOk);
  for (const uint8_t flag : flags) EXPECT_EQ(flag, 0);

  ASSERT_EQ(client.Send(actions, envs), ErrorCode::kOk);  // in place
  ASSERT_EQ(side.Next(Deadline::After(20)), EngineEvent::kExchange);
  EXPECT_EQ(flags[1], kSkip);
  side.Publish();
  ASSERT_EQ(client.Recv(Deadline::After(20)), ErrorCode::kOk);

  const auto send = [&](std::vector<float> values, std::vector<int64_t> ids) {
    return client.Send(values, ids);
  };
  EXPECT_EQ(send({1, 2}, {0, 1}), ErrorCode::kInvalidAction);
  EXPECT_EQ(send({1, 2}, {3}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(send({1, 2}, {-1}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(send({1, 2, 3, 4}, {1, 1}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(send({1, std::nanf("")}, {1}), ErrorCode::kInvalidAction);
  for (const uint8_t flag : flags) EXPECT_EQ(flag, 0);
}

TEST_F(EchoSession, ASubsetNeedsAnEngineThatKnowsSubsets) {
  EXPECT_EQ(client_.Send(std::vector<float>{1, 2}, std::vector<int64_t>{0}),
            ErrorCode::kUnsupported);
  EXPECT_NE(client_.Explain(ErrorCode::kUnsupported).message().find("subsets"),
            absl::string_view::npos);
  EXPECT_EQ(Step(client_, kActions), ErrorCode::kOk);
}

TEST_F(EchoSession, SendAndRecvAlternate) {
  EXPECT_EQ(client_.Recv(Deadline::Now()), ErrorCode::kNoStepPending);
  ASSERT_EQ(client_.Send(kActions), ErrorCode::kOk);
  EXPECT_EQ(client_.Send(kActions), ErrorCode::kStepPending);
  EXPECT_EQ(client_.SendReset({}, {}), ErrorCode::kStepPending);
  EXPECT_EQ(client_.Recv(Deadline::After(20)), ErrorCode::kOk);
  EXPECT_EQ(client_.Close(), ErrorCode::kOk);
  EXPECT_EQ(client_.Close(), ErrorCode::kOk);
  EXPECT_EQ(client_.Send(kActions), ErrorCode::kClientClosed);
  EXPECT_EQ(client_.Recv(Deadline::Now()), ErrorCode::kClientClosed);
}

TEST_F(EchoSession, AnEngineFailureReachesTheClientWithItsText) {
  engine_.FailNext();
  EXPECT_EQ(Step(client_, kActions), ErrorCode::kEngineFailed);
  const absl::Status status = client_.Explain(ErrorCode::kEngineFailed);
  EXPECT_EQ(CodeOf(status), ErrorCode::kEngineFailed);
  EXPECT_NE(status.message().find("joint 3 \\x01 exploded"),
            absl::string_view::npos)
      << status;
  EXPECT_EQ(Step(client_, kActions), ErrorCode::kOk);
}

TEST_F(Session, ARefusedClientGetsTheEnginesReasonAndTheNextIsLetIn) {
  EchoEngine engine(name_, EchoSpec());
  engine.RefuseNext();
  const absl::StatusOr<ClientSide> refused = ClientSide::Attach(name_, {});
  EXPECT_EQ(CodeOf(refused.status()), ErrorCode::kEngineFailed);
  ClientSide client = AttachOrFail(name_);
  EXPECT_EQ(Step(client, kActions), ErrorCode::kOk);
}

TEST_F(Session, ASecondClientIsRefusedUntilTheFirstLeaves) {
  EchoEngine engine(name_, EchoSpec());
  ClientSide first = AttachOrFail(name_);
  const absl::StatusOr<ClientSide> second = ClientSide::Attach(name_, {});
  EXPECT_EQ(CodeOf(second.status()), ErrorCode::kAlreadyAttached);
  EXPECT_NE(second.status().message().find(absl::StrCat(getpid())),
            absl::string_view::npos);
  EXPECT_EQ(first.Close(), ErrorCode::kOk);
  ClientSide third = AttachOrFail(name_);
  EXPECT_EQ(Step(third, kActions), ErrorCode::kOk);
}

TEST_F(Session, TheEngineNoticesAClientThatLeaves) {
  EchoEngine engine(name_, EchoSpec());
  {
    ClientSide client = AttachOrFail(name_);
    EXPECT_EQ(Step(client, kActions), ErrorCode::kOk);
  }
  AwaitTrue([&] { return engine.departures() == 1; });
  EXPECT_EQ(engine.arrivals(), 1);
}

TEST_F(Session, AnEngineThatStopsIsGoneForTheClientAtOnceAndForGood) {
  auto engine = std::make_unique<EchoEngine>(name_, EchoSpec());
  ClientSide client = AttachOrFail(name_);
  engine.reset();
  EXPECT_EQ(access(RegionPath(name_).c_str(), F_OK), -1);
  EXPECT_EQ(access(RegionPath(name_, SharedRegion::Link::kSpare).c_str(), F_OK),
            -1);
  ASSERT_EQ(client.Send(kActions), ErrorCode::kOk);
  EXPECT_EQ(client.Recv(Deadline::After(20)), ErrorCode::kPeerGone);
  EXPECT_NE(client.Explain(ErrorCode::kPeerGone).message().find("stopped"),
            absl::string_view::npos);
  EXPECT_EQ(client.Send(kActions), ErrorCode::kPeerGone);
  EXPECT_EQ(client.Recv(Deadline::After(20)), ErrorCode::kPeerGone);
}

TEST_F(Session, ReconnectsToARestartedEngineOfTheSameSchemaOnly) {
  auto engine = std::make_unique<EchoEngine>(name_, EchoSpec());
  ClientSide client = AttachOrFail(name_);
  const std::span<float> old_obs = client.arrays().obs;
  const std::shared_ptr<const RegionMapping> old_mapping = client.mapping();
  engine.reset();
  EXPECT_EQ(CodeOf(client.Reconnect(0)), ErrorCode::kNotReady);
  EXPECT_EQ(client.Send(kActions), ErrorCode::kClientClosed);

  engine = std::make_unique<EchoEngine>(name_, EchoSpec());
  ASSERT_TRUE(client.Reconnect(20).ok());
  EXPECT_EQ(Step(client, kActions), ErrorCode::kOk);
  EXPECT_EQ(client.arrays().obs[5], 6);
  EXPECT_EQ(old_obs[5], 0);  // The shared reference keeps the old mapping.

  engine.reset();
  RegionSpec wider = EchoSpec();
  wider.obs_size = 4;
  engine = std::make_unique<EchoEngine>(name_, wider);
  EXPECT_EQ(CodeOf(client.Reconnect(20)), ErrorCode::kLayoutMismatch);
  engine.reset();
  RegionSpec other = EchoSpec();
  other.task = "other";
  engine = std::make_unique<EchoEngine>(name_, other);
  EXPECT_EQ(CodeOf(client.Reconnect(20)), ErrorCode::kLayoutMismatch);
  ClientSide next = AttachOrFail(name_);  // The client freed the place.
}

TEST_F(Session, AReconnectFindsWhetherTheNewEngineKnowsSubsets) {
  RegionSpec with = EchoSpec();
  with.subsets = true;
  auto engine = std::make_unique<EchoEngine>(name_, with);
  ClientSide client = AttachOrFail(name_);
  const auto restart = [&](const RegionSpec& spec) {
    engine.reset();
    engine = std::make_unique<EchoEngine>(name_, spec);
    EXPECT_TRUE(client.Reconnect(20).ok());
  };
  const auto send = [&] {
    return client.Send(std::vector<float>{1, 2}, std::vector<int64_t>{0});
  };
  restart(EchoSpec());
  EXPECT_EQ(send(), ErrorCode::kUnsupported);
  restart(with);
  EXPECT_EQ(send(), ErrorCode::kOk);
}

TEST_F(EchoSession, ReconnectToALiveEngineAbandonsThePendingExchange) {
  ASSERT_EQ(client_.Send(kActions), ErrorCode::kOk);
  ASSERT_TRUE(client_.Reconnect(20).ok());
  EXPECT_EQ(client_.Recv(Deadline::Now()), ErrorCode::kNoStepPending);
  EXPECT_EQ(Step(client_, kActions), ErrorCode::kOk);
  EXPECT_EQ(engine_.steps(), 2);
}

TEST_F(Session, AStuckEngineTimesOutWithItsPhaseAndTheExchangeStaysPending) {
  EngineSide side = OpenSide(name_, EchoSpec());
  EXPECT_EQ(CodeOf(ClientSide::Attach(name_, {.timeout_secs = 0.05}).status()),
            ErrorCode::kStepTimeout);
  // The engine first welcomes the timed-out client, which does not answer.
  EXPECT_EQ(side.Next(Deadline::After(20)), EngineEvent::kClientArrived);
  side.AcknowledgeAttach(absl::OkStatus());
  EXPECT_EQ(side.Next(Deadline::After(20)), EngineEvent::kClientLeft);
  ClientSide client = AttachTo(side, name_);
  ASSERT_EQ(client.Send(kActions), ErrorCode::kOk);
  ASSERT_EQ(side.Next(Deadline::After(20)), EngineEvent::kExchange);
  EXPECT_EQ(client.Recv(Deadline::After(0.05)), ErrorCode::kStepTimeout);
  EXPECT_NE(client.Explain(ErrorCode::kStepTimeout).message().find("stepping"),
            absl::string_view::npos);
  EXPECT_TRUE(client.pending());
  EXPECT_EQ(client.Step(kActions, 20), ErrorCode::kStepPending);
  side.Publish();
  EXPECT_EQ(client.Recv(Deadline::After(20)), ErrorCode::kOk);
  // The same result in one call.
  EXPECT_EQ(client.Step(kActions, 0.05), ErrorCode::kStepTimeout);
  EXPECT_TRUE(client.pending());
  ASSERT_EQ(side.Next(Deadline::After(20)), EngineEvent::kExchange);
  side.Publish();
  EXPECT_EQ(client.Recv(Deadline::After(20)), ErrorCode::kOk);
  EXPECT_EQ(client.Step({}, 20), ErrorCode::kInvalidAction);
  EXPECT_FALSE(client.pending());
}

TEST_F(EchoSession, AForkedChildIsRefusedAndLeavesTheParentsSessionAlone) {
  const pid_t child = fork();
  if (child == 0) {
    bool refused = client_.Send(kActions) == ErrorCode::kForkedChild &&
                   client_.Recv(Deadline::Now()) == ErrorCode::kForkedChild &&
                   client_.Close() == ErrorCode::kForkedChild;
    { const ClientSide dying = std::move(client_); }
    { const EngineSide dying = std::move(engine_.side()); }
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(access(RegionPath(name_).c_str(), F_OK), 0);
  EXPECT_EQ(Step(client_, kActions), ErrorCode::kOk);
}

TEST_F(Session, PollServesAnEngineThatOwnsItsLoop) {
  EngineSide side = OpenSide(name_, EchoSpec());
  EXPECT_EQ(side.Poll(), EngineEvent::kTimedOut);
  std::thread trainer([&] {
    ClientSide client = AttachOrFail(name_);
    EXPECT_EQ(Step(client, kActions), ErrorCode::kOk);
  });
  int exchanges = 0;
  for (bool left = false; !left;) {
    switch (side.Poll()) {
      case EngineEvent::kExchange:
        ++exchanges;
        side.Publish();
        break;
      case EngineEvent::kClientArrived:
        side.AcknowledgeAttach(absl::OkStatus());
        break;
      case EngineEvent::kClientLeft:
        left = true;
        break;
      default:
        std::this_thread::yield();
    }
  }
  trainer.join();
  EXPECT_EQ(exchanges, 1);
}

}  // namespace
}  // namespace tandem
