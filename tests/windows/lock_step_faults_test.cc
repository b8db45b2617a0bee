// Kills either side at any instruction of an exchange, and freezes it there, on
// Windows; then many steps, each exactly once. Each point takes the start of a
// process, which takes long under Wine: so the points are spread, closely
// first.

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/os/windows/testing/child_program.h"
#include "tests/faults/counting_peers.h"
#include "tests/windows/stepped_victim.h"
#include "transport/client_side.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/region.h"

namespace tandem {
namespace {

int NumberIn(const std::string& word) {
  int number = 0;
  EXPECT_TRUE(absl::SimpleAtoi(word, &number)) << word;
  return number;
}
Stop StopIn(const std::string& word) {
  return word == "kill" ? Stop::kKill : Stop::kFreeze;
}

// {name}: serves until it is killed.
const ChildBody kEngine("engine", [](const std::vector<std::string>& words) {
  CountingServer side(words[0]);
  SayLine("ready");
  side.Serve();
  return 0;
});

// {name, instructions, kill or freeze}: stops within its second exchange.
const ChildBody kHeldEngine("held", [](const std::vector<std::string>& words) {
  CountingServer side(words[0]);
  SayLine("ready");
  side.Serve(1);
  StepUntil(NumberIn(words[1]), StopIn(words[2]), words[0] + "-thaw");
  side.Serve(1);
  EndStepping();
  SayLine("within");
  side.Serve();
  return 0;
});

// The same within a client's second step.
const ChildBody kClient("client", [](const std::vector<std::string>& words) {
  absl::StatusOr<ClientSide> side = ClientSide::Attach(words[0], {});
  if (!side.ok() || StepAndCheck(*side, 1, 1) != ErrorCode::kOk) return 1;
  StepUntil(NumberIn(words[1]), StopIn(words[2]), words[0] + "-thaw");
  const ErrorCode code = StepAndCheck(*side, 2, 2);
  EndStepping();
  if (code != ErrorCode::kOk) return 2;
  SayLine("within");
  if (StepAndCheck(*side, 3, 3) != ErrorCode::kOk) return 3;
  return testing::Test::HasFailure() ? 4 : 0;
});

std::unique_ptr<ChildProgram> Start(const std::string& body,
                                    const std::vector<std::string>& words) {
  auto child = std::make_unique<ChildProgram>(body, words);
  if (body != "client") {
    EXPECT_EQ(child->ReadLine(), "ready");
  }
  return child;
}

// Every instruction at first, later every hundredth.
int Next(int at) { return at + 1 + at / 12; }

class LockStepFaults : public testing::Test {
 protected:
  void SetUp() override { alarm(800); }
  void TearDown() override { alarm(0); }

  void ExpectANewClientIsServed() {
    absl::StatusOr<ClientSide> client = ClientSide::Attach(name_, {});
    ASSERT_TRUE(client.ok()) << client.status();
    ExpectFreshSession(*client);
  }

  // A client of an engine that stops within its second exchange.
  absl::StatusOr<ClientSide> ClientOfHeld() {
    absl::StatusOr<ClientSide> client = ClientSide::Attach(name_, {});
    EXPECT_TRUE(client.ok()) << client.status();
    EXPECT_EQ(StepAndCheck(*client, 1, 1), ErrorCode::kOk);
    EXPECT_EQ(client->Send(second_actions_), ErrorCode::kOk);
    return client;
  }

  const std::string name_ = UniqueRegionName("faults");
  const std::vector<float> second_actions_ = {2, 2};
};

TEST_F(LockStepFaults, AClientKilledAnywhereIsFollowedByAFreshOne) {
  const auto engine = Start("engine", {name_});
  int runs = 0;
  bool killed = true;
  for (int at = 0; killed && !HasFailure(); at = Next(at), ++runs) {
    const auto client = Start("client", {name_, absl::StrCat(at), "kill"});
    killed = client->ExitCode() == ChildProgram::kKilled;
    EXPECT_TRUE(killed || client->ExitCode() == 0) << client->ExitCode();
    ExpectANewClientIsServed();
  }
  std::printf("killed the client at %d points of an exchange\n", runs);
  EXPECT_GT(runs, 20);
}

TEST_F(LockStepFaults, AClientFrozenAnywhereContinues) {
  const auto engine = Start("engine", {name_});
  int runs = 0;
  bool frozen = true;
  for (int at = 0; frozen && !HasFailure(); at = Next(at), ++runs) {
    Thaw thaw(name_ + "-thaw");
    const auto client = Start("client", {name_, absl::StrCat(at), "freeze"});
    frozen = client->ReadLine() == "frozen";
    if (frozen) {
      // It is still attached.
      EXPECT_EQ(CodeOf(ClientSide::Attach(name_, {.timeout_secs = 0}).status()),
                ErrorCode::kAlreadyAttached);
    }
    thaw.Now();
    EXPECT_EQ(client->ExitCode(), 0) << "frozen after " << at;
  }
  std::printf("froze the client at %d points of an exchange\n", runs);
  EXPECT_GT(runs, 20);
}

TEST_F(LockStepFaults, AnEngineKilledAnywhereHasAnsweredOrIsGone) {
  int runs = 0;
  int answered = 0;
  bool killed = true;
  for (int at = 0; killed && !HasFailure(); at = Next(at), ++runs) {
    const auto engine = Start("held", {name_, absl::StrCat(at), "kill"});
    absl::StatusOr<ClientSide> client = ClientOfHeld();
    const ErrorCode code = client->Recv(Deadline::After(20));
    if (code == ErrorCode::kOk) {
      ++answered;
      EXPECT_EQ(client->arrays().obs[0], 2);
    } else {
      EXPECT_EQ(code, ErrorCode::kPeerGone)
          << client->Explain(code) << " after " << at;
    }
    killed = engine->ReadLine() != "within";
    engine->Kill();
    // The name is free, although the client still has the memory.
    EXPECT_EQ(SharedRegion::At(name_), std::nullopt);
    const auto next = Start("engine", {name_});
    const absl::Status status = client->Reconnect(20);
    ASSERT_TRUE(status.ok()) << status;
    ExpectFreshSession(*client);
  }
  std::printf("killed the engine at %d points of an exchange; %d answered\n",
              runs, answered);
  EXPECT_GT(runs, 20);
  EXPECT_GT(answered, 0);
  EXPECT_LT(answered, runs);
}

TEST_F(LockStepFaults, AnEngineFrozenAnywhereTimesOutAndThenGoesOn) {
  int runs = 0;
  bool frozen = true;
  for (int at = 0; frozen && !HasFailure(); at = Next(Next(at)), ++runs) {
    Thaw thaw(name_ + "-thaw");
    const auto engine = Start("held", {name_, absl::StrCat(at), "freeze"});
    absl::StatusOr<ClientSide> client = ClientOfHeld();
    frozen = engine->ReadLine() == "frozen";
    ErrorCode code = client->Recv(Deadline::After(0.02));
    if (code != ErrorCode::kOk) {
      ASSERT_EQ(code, ErrorCode::kStepTimeout) << "after " << at;
      EXPECT_EQ(client->Send(second_actions_), ErrorCode::kStepPending);
      thaw.Now();
      code = client->Recv(Deadline::After(20));
    }
    thaw.Now();
    ASSERT_EQ(code, ErrorCode::kOk) << client->Explain(code);
    EXPECT_EQ(client->arrays().obs[0], 2);
    EXPECT_EQ(StepAndCheck(*client, 3, 3), ErrorCode::kOk);
  }
  std::printf("froze the engine at %d points of an exchange\n", runs);
  EXPECT_GT(runs, 10);
}

// All its threads at once, at a time of the system's choice.
TEST_F(LockStepFaults, ASuspendedEngineIsAliveAndAnswersLater) {
  const auto engine = Start("engine", {name_});
  absl::StatusOr<ClientSide> client = ClientSide::Attach(name_, {});
  ASSERT_TRUE(client.ok()) << client.status();
  for (int step = 1; step <= 20; ++step) {
    engine->Suspend();
    ASSERT_EQ(client->Send(second_actions_), ErrorCode::kOk);
    EXPECT_EQ(client->Recv(Deadline::After(0.02)), ErrorCode::kStepTimeout);
    engine->Resume();
    ASSERT_EQ(client->Recv(Deadline::After(20)), ErrorCode::kOk);
    EXPECT_EQ(client->arrays().obs[0], static_cast<float>(step));
  }
}

class ManySteps : public LockStepFaults,
                  public testing::WithParamInterface<WaitStrategy> {};

// An observation has the number of steps: one that is lost or made twice shows.
TEST_P(ManySteps, AreEachMadeExactlyOnce) {
  constexpr int kSteps = 100'000;
  const auto engine = Start("engine", {name_});
  absl::StatusOr<ClientSide> client =
      ClientSide::Attach(name_, {.wait = GetParam()});
  ASSERT_TRUE(client.ok()) << client.status();
  for (int step = 1; step <= kSteps && !HasFailure(); ++step) {
    const auto count = static_cast<float>(step);
    ASSERT_EQ(StepAndCheck(*client, count, count), ErrorCode::kOk) << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, ManySteps,
                         testing::Values(WaitStrategy::kSpin,
                                         WaitStrategy::kAdaptive,
                                         WaitStrategy::kBlock));

}  // namespace
}  // namespace tandem
