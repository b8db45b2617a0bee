// Lanes: steps of one worker's environments, independent of the other workers.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "base/clock.h"
#include "base/os/side_locks.h"
#include "schema/layout/attendant_slot.h"
#include "schema/layout/lrbc.h"
#include "transport/client_side.h"
#include "transport/session/supervisor_side.h"
#include "transport/session/testing/echo_engine.h"
#include "transport/session/testing/worker_rig.h"
#include "transport/session/testing/workers_fixture.h"

namespace tandem {
namespace {

using Lanes = WorkersTest;

TEST_F(Lanes, EachStepsItsWorkerOnly) {
  ClientSide client = Begin(WorkerSpec(4, 2));
  const std::span<float> obs = client.arrays().obs;
  std::vector<uint32_t> ready;
  EXPECT_EQ(client.lanes().Recv(1, Deadline::Now(), &ready),
            ErrorCode::kNoStepPending);
  for (int i = 1; i <= 200; ++i) {
    const float x = static_cast<float>(i);
    ASSERT_EQ(client.lanes().Send(std::vector<uint32_t>{1},
                                  std::vector<float>{x, -x}),
              ErrorCode::kOk);
    ASSERT_EQ(client.lanes().Recv(1, Deadline::After(20), &ready),
              ErrorCode::kOk);
    ASSERT_EQ(ready, std::vector<uint32_t>{1});
    ASSERT_EQ(obs[6], x);
    ASSERT_EQ(obs[10], -x);
  }
  EXPECT_EQ(obs[0], 0);
  // Then all, by an exchange.
  ASSERT_EQ(StepAll(client, 9), ErrorCode::kOk);
  EXPECT_EQ(obs[0], 1);
  EXPECT_EQ(obs[6], 201);
}

TEST_F(Lanes, TheFirstThatAreReadyAreReceived) {
  ClientSide client = Begin(WorkerSpec(6, 3));
  const std::span<float> obs = client.arrays().obs;
  std::vector<uint32_t> all = {2, 0, 1};
  std::vector<float> counts(3);
  ASSERT_EQ(client.lanes().Send(all, std::vector<float>{4, 4, 0, 0, 2, 2}),
            ErrorCode::kOk);
  std::vector<uint32_t> ready;
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(client.lanes().Recv(1, Deadline::After(20), &ready),
              ErrorCode::kOk);
    ASSERT_FALSE(ready.empty());
    for (const uint32_t worker : ready) {
      ++counts[worker];
      ASSERT_EQ(obs[6 * worker], counts[worker]);
      ASSERT_EQ(obs[6 * worker + 4], static_cast<float>(2 * worker));
    }
    std::vector<float> actions;
    for (const uint32_t worker : ready) {
      actions.insert(actions.end(), 2, static_cast<float>(2 * worker));
    }
    ASSERT_EQ(client.lanes().Send(ready, actions), ErrorCode::kOk);
  }
  ASSERT_EQ(client.lanes().Recv(9, Deadline::After(20), &ready),
            ErrorCode::kOk);
  EXPECT_EQ(ready.size(), 3u);
  EXPECT_EQ(client.lanes().Ready(), 0u);
}

TEST_F(Lanes, AndExchangesExcludeEachOther) {
  ClientSide client = Begin(WorkerSpec(4, 2));
  const std::vector<uint32_t> first = {0};
  const std::vector<float> two = {1, 2};
  ASSERT_EQ(client.lanes().Send(first, two), ErrorCode::kOk);
  EXPECT_EQ(client.Send(std::vector<float>(4)), ErrorCode::kStepPending);
  EXPECT_EQ(client.SendReset({}, {}), ErrorCode::kStepPending);
  EXPECT_EQ(client.lanes().Send(first, two), ErrorCode::kStepPending);
  EXPECT_EQ(client.Recv(Deadline::Now()), ErrorCode::kNoStepPending);
  // The texts name_ the call that the trainer's author makes.
  for (const ErrorCode code :
       {ErrorCode::kStepPending, ErrorCode::kNoStepPending,
        ErrorCode::kInterrupted}) {
    const std::string text = Explained(client, code);
    EXPECT_TRUE(absl::StrContains(text, "of some workers")) << text;
    EXPECT_TRUE(absl::StrContains(text, "recv()")) << text;
    EXPECT_FALSE(absl::StrContains(text, "Lanes")) << text;
  }
  EXPECT_EQ(
      client.lanes().Send(std::vector<uint32_t>{1, 1}, std::vector<float>(4)),
      ErrorCode::kInvalidArgument);
  EXPECT_EQ(client.lanes().Send(std::vector<uint32_t>{2}, two),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(
      client.lanes().Send(std::vector<uint32_t>{1}, std::vector<float>(3)),
      ErrorCode::kInvalidAction);
  std::vector<uint32_t> ready;
  ASSERT_EQ(client.lanes().Recv(1, Deadline::After(20), &ready),
            ErrorCode::kOk);
  ASSERT_EQ(client.Send(std::vector<float>(4)), ErrorCode::kOk);
  EXPECT_EQ(client.lanes().Send(first, two), ErrorCode::kStepPending);
  EXPECT_EQ(client.lanes().Recv(1, Deadline::Now(), &ready),
            ErrorCode::kNoStepPending);
  EXPECT_TRUE(absl::StrContains(Explained(client, ErrorCode::kNoStepPending),
                                "call recv()"));
  EXPECT_EQ(client.Recv(Deadline::After(20)), ErrorCode::kOk);
}

TEST_F(Lanes, FlagsResetAndSkip) {
  ClientSide client = Begin(WorkerSpec(3, 1));
  ASSERT_EQ(StepAll(client, 1), ErrorCode::kOk);
  client.arrays().resets[0] = kResetRequested;
  client.arrays().resets[2] = kSkip;
  std::vector<uint32_t> ready = {0};
  ASSERT_EQ(client.lanes().Send(ready, client.arrays().actions),
            ErrorCode::kOk);
  ASSERT_EQ(client.lanes().Recv(1, Deadline::After(20), &ready),
            ErrorCode::kOk);
  EXPECT_EQ(client.arrays().obs[0], 0);
  EXPECT_EQ(client.arrays().obs[3], 2);
  EXPECT_EQ(client.arrays().obs[6], 1);
  for (const uint8_t flag : client.arrays().resets) EXPECT_EQ(flag, 0);
}

TEST_F(Lanes, ResetSomeWhileOthersAreOpen) {
  ClientSide client = Begin(WorkerSpec(4, 2));
  ASSERT_EQ(StepAll(client, 1), ErrorCode::kOk);
  const std::vector<uint32_t> first = {0};
  const std::vector<uint32_t> second = {1};
  ASSERT_EQ(client.lanes().Send(first, std::vector<float>{1, 1}),
            ErrorCode::kOk);
  const std::vector<int64_t> env = {3};
  EXPECT_EQ(client.lanes().SendResets(first, env, {}), ErrorCode::kStepPending);
  EXPECT_EQ(client.lanes().SendResets(second, std::vector<int64_t>{4}, {}),
            ErrorCode::kInvalidArgument);
  const std::vector<std::optional<uint64_t>> seeds(2, 1);
  EXPECT_EQ(client.lanes().SendResets(second, env, seeds),
            ErrorCode::kInvalidArgument);
  ASSERT_EQ(client.lanes().SendResets(second, env, {}), ErrorCode::kOk);
  std::vector<uint32_t> ready;
  ASSERT_EQ(client.lanes().Recv(2, Deadline::After(20), &ready),
            ErrorCode::kOk);
  EXPECT_EQ(client.arrays().obs[0], 2);
  EXPECT_EQ(client.arrays().obs[6], 1);
  EXPECT_EQ(client.arrays().obs[9], 0);
  for (const uint8_t flag : client.arrays().resets) EXPECT_EQ(flag, 0);
}

TEST_F(Lanes, AnExceptionIsAnErrorOfItsLane) {
  ClientSide client = Begin(WorkerSpec(2, 2));
  const std::vector<uint32_t> both = {0, 1};
  std::vector<uint32_t> ready;
  ASSERT_EQ(client.lanes().Send(both, std::vector<float>{1, kRaise}),
            ErrorCode::kOk);
  EXPECT_EQ(client.lanes().Recv(2, Deadline::After(20), &ready),
            ErrorCode::kEnvFailed);
  EXPECT_EQ(ready, both);
  const std::string text = Explained(client, ErrorCode::kEnvFailed);
  EXPECT_TRUE(absl::StrContains(text, "environment 1 of worker 1")) << text;
  EXPECT_EQ(client.lanes().Failure(std::vector<uint32_t>{0}), ErrorCode::kOk);
  EXPECT_EQ(client.lanes().Failure(std::vector<uint32_t>{1}),
            ErrorCode::kEnvFailed);
  ASSERT_EQ(client.lanes().Send(both, std::vector<float>{1, 1}),
            ErrorCode::kOk);
  EXPECT_EQ(client.lanes().Recv(2, Deadline::After(20), &ready),
            ErrorCode::kOk);
}

TEST_F(Lanes, OpenLanesEndWithTheSession) {
  rig_.emplace(name_, WorkerSpec(2, 2));
  std::vector<uint32_t> ready = {0, 1};
  for (int session = 0; session < 20; ++session) {
    ClientSide client = AttachOrFail(name_);
    ExpectRows(client, 0, 0);
    ASSERT_EQ(client.lanes().Send(std::vector<uint32_t>{0, 1},
                                  std::vector<float>{1, 1}),
              ErrorCode::kOk);
  }
  ClientSide client = AttachOrFail(name_);
  ExpectRows(client, 0, 0);
  ASSERT_EQ(StepAll(client, 1), ErrorCode::kOk);
  ExpectRows(client, 1, 1);
}

TEST_F(Lanes, AnAttendantsPauseExtendsTheDeadline) {
  RegionSpec spec = WorkerSpec(2, 2);
  spec.attendants = true;
  ClientSide client = Begin(spec);
  std::optional<SideLocks> attendant;  // that lives
  rig_->OnSupervisor([&](SupervisorSide& side) {
    attendant = SideLocks::On(side.region().memory()).value();
    EXPECT_TRUE(attendant->TryAcquire(AttendantLockByte(client.plan(), 0)));
    side.ShowPaused(true, /*by_attendant=*/true);
  });
  AwaitHeldWorkers(client);
  const std::vector<uint32_t> both = {0, 1};
  ASSERT_EQ(client.lanes().Send(both, std::vector<float>{1, 2}),
            ErrorCode::kOk);
  // The pause is longer than the wait would be.
  constexpr double kTimeoutSecs = 2;
  std::thread resumes([&] {
    std::this_thread::sleep_for(
        std::chrono::duration<double>(kTimeoutSecs + 0.5));
    rig_->OnSupervisor([](SupervisorSide& side) { side.ShowPaused(false); });
  });
  std::vector<uint32_t> ready;
  EXPECT_EQ(client.lanes().Recv(2, Deadline::After(kTimeoutSecs), &ready),
            ErrorCode::kOk);
  EXPECT_EQ(ready, both);
  resumes.join();
}

TEST_F(Lanes, EndIfTheEngineAcknowledgesAnotherClient) {
  ClientSide client = Begin(WorkerSpec(2, 2));
  // A pause, so that no worker begins its lane before it is dropped.
  rig_->OnSupervisor([](SupervisorSide& side) { side.ShowPaused(true); });
  AwaitHeldWorkers(client);
  std::vector<uint32_t> ready = {0, 1};
  ASSERT_EQ(client.lanes().Send(ready, std::vector<float>{1, 2}),
            ErrorCode::kOk);
  // relaxed: as a foreign program would.
  client.mapping()->header()->attach_request.fetch_add(
      1, std::memory_order_relaxed);
  EXPECT_EQ(client.lanes().Recv(2, Deadline::After(20), &ready),
            ErrorCode::kBrokenPeer);
  EXPECT_TRUE(ready.empty());
  EXPECT_EQ(
      client.lanes().Send(std::vector<uint32_t>{0}, std::vector<float>{1}),
      ErrorCode::kBrokenPeer);
}

TEST_F(Lanes, NeedWorkers) {
  EchoEngine engine(name_, EchoSpec());
  ClientSide client = AttachOrFail(name_);
  EXPECT_TRUE(client.workers().empty());
  EXPECT_EQ(client.lanes().Send(std::vector<uint32_t>{0}, kActions),
            ErrorCode::kUnsupported);
  EXPECT_TRUE(
      absl::StrContains(Explained(client, ErrorCode::kUnsupported), "workers"));
}

}  // namespace
}  // namespace tandem
