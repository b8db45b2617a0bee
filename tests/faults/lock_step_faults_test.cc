// Kills either side at every instruction of an exchange, and freezes it there.
// The engine is frozen at every fifth only, since each such run waits for a
// deadline. An emulator takes some 40 points.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/error.h"
#include "tests/faults/counting_peers.h"
#include "tests/faults/fault_test.h"
#include "tests/faults/victim.h"
#include "transport/client_side.h"

namespace tandem {
namespace {

class LockStepFaults : public FaultTest {
 protected:
  // The client has stepped once, and holds before and after its second step.
  // Exits with 0 if its second and third step returned correct results.
  std::unique_ptr<Victim> StartClient() {
    auto client = std::make_unique<Victim>([this] {
      absl::StatusOr<ClientSide> side = ClientSide::Attach(name_, {});
      if (!side.ok() || StepAndCheck(*side, 1, 1) != ErrorCode::kOk) _exit(1);
      Victim::Mark();
      if (StepAndCheck(*side, 2, 2) != ErrorCode::kOk) _exit(2);
      Victim::Mark();
      if (StepAndCheck(*side, 3, 3) != ErrorCode::kOk) _exit(3);
      if (testing::Test::HasFailure()) _exit(4);
    });
    EXPECT_TRUE(client->RunToMark());
    return client;
  }

  // An engine that holds before its second exchange, and its client.
  struct HeldPair {
    std::unique_ptr<Victim> engine;
    absl::StatusOr<ClientSide> client;
  };
  HeldPair StartPair() {
    auto engine = std::make_unique<Victim>([this] {
      CountingServer side(name_);
      Victim::Mark();
      side.Serve(1);
      Victim::Mark();
      side.Serve(1);
      Victim::Mark();
      side.Serve();
    });
    EXPECT_TRUE(engine->RunToMark());
    engine->RunOn();
    absl::StatusOr<ClientSide> client = ClientSide::Attach(name_, {});
    EXPECT_TRUE(client.ok()) << client.status();
    EXPECT_EQ(StepAndCheck(*client, 1, 1), ErrorCode::kOk);
    EXPECT_TRUE(engine->AwaitMark());
    return {std::move(engine), std::move(client)};
  }

  static int Stride() { return getenv("TANDEM_EMULATED") == nullptr ? 1 : 20; }

  const std::vector<float> second_actions_ = {2, 2};
};

TEST_F(LockStepFaults, AClientKilledAnywhereIsFollowedByAFreshOne) {
  const std::unique_ptr<Victim> engine = StartEngine();
  int runs = 0;
  bool within = true;
  for (int at = 0; within && !HasFailure(); at += Stride(), ++runs) {
    const std::unique_ptr<Victim> client = StartClient();
    within = client->Advance(Victim::kInstruction, at);
    client->Kill();
    absl::StatusOr<ClientSide> next = ClientSide::Attach(name_, {});
    ASSERT_TRUE(next.ok()) << next.status() << " after " << at;
    ExpectFreshSession(*next);
  }
  std::printf("killed the client at %d points of an exchange\n", runs);
  EXPECT_GT(runs, 20);
}

TEST_F(LockStepFaults, AClientFrozenAnywhereContinues) {
  const std::unique_ptr<Victim> engine = StartEngine();
  int runs = 0;
  bool within = true;
  for (int at = 0; within && !HasFailure(); at += Stride(), ++runs) {
    const std::unique_ptr<Victim> client = StartClient();
    within = client->Advance(Victim::kInstruction, at);
    // The frozen client is still attached.
    EXPECT_EQ(CodeOf(ClientSide::Attach(name_, {.timeout_secs = 0}).status()),
              ErrorCode::kAlreadyAttached);
    if (within) {
      ASSERT_TRUE(client->RunToMark());
    }
    client->Release();
    EXPECT_EQ(client->AwaitExit(), 0) << "frozen after " << at;
  }
  std::printf("froze the client at %d points of an exchange\n", runs);
  EXPECT_GT(runs, 20);
}

TEST_F(LockStepFaults, AnEngineKilledAnywhereHasAnsweredOrIsGone) {
  int runs = 0;
  int answered = 0;
  bool within = true;
  for (int at = 0; within && !HasFailure(); at += Stride(), ++runs) {
    HeldPair pair = StartPair();
    ASSERT_EQ(pair.client->Send(second_actions_), ErrorCode::kOk);
    within = pair.engine->Advance(Victim::kInstruction, at);
    pair.engine->Kill();
    const ErrorCode code = pair.client->Recv(Deadline::After(20));
    if (code == ErrorCode::kOk) {
      ++answered;
      EXPECT_EQ(pair.client->arrays().obs[0], 2);
    } else {
      EXPECT_EQ(code, ErrorCode::kPeerGone)
          << pair.client->Explain(code) << " after " << at;
    }
    const std::unique_ptr<Victim> next = StartEngine();
    const absl::Status status = pair.client->Reconnect(20);
    ASSERT_TRUE(status.ok()) << status;
    ExpectFreshSession(*pair.client);
  }
  std::printf("killed the engine at %d points of an exchange; %d answered\n",
              runs, answered);
  EXPECT_GT(runs, 20);
  EXPECT_GT(answered, 0);
  EXPECT_LT(answered, runs);
}

TEST_F(LockStepFaults, AnEngineFrozenAnywhereTimesOutAndThenGoesOn) {
  int runs = 0;
  bool within = true;
  for (int at = 0; within && !HasFailure(); at += 5 * Stride(), ++runs) {
    HeldPair pair = StartPair();
    ASSERT_EQ(pair.client->Send(second_actions_), ErrorCode::kOk);
    within = pair.engine->Advance(Victim::kInstruction, at);
    ErrorCode code = pair.client->Recv(Deadline::After(0.02));
    if (code != ErrorCode::kOk) {
      ASSERT_EQ(code, ErrorCode::kStepTimeout) << "after " << at;
      EXPECT_EQ(pair.client->Send(second_actions_), ErrorCode::kStepPending);
      pair.engine->RunOn();
      code = pair.client->Recv(Deadline::After(20));
      EXPECT_TRUE(pair.engine->AwaitMark());
    } else if (within) {
      EXPECT_TRUE(pair.engine->RunToMark());
    }
    ASSERT_EQ(code, ErrorCode::kOk) << pair.client->Explain(code);
    EXPECT_EQ(pair.client->arrays().obs[0], 2);
    pair.engine->Release();
    EXPECT_EQ(StepAndCheck(*pair.client, 3, 3), ErrorCode::kOk);
  }
  std::printf("froze the engine at %d points of an exchange\n", runs);
  EXPECT_GT(runs, 5);
}

}  // namespace
}  // namespace tandem
