// Either side killed at every system call of its birth, take-over, death,
// attach, reconnect and leaving, and at instructions drawn at random between.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <string>

#include "absl/status/statusor.h"
#include "tests/faults/counting_peers.h"
#include "tests/faults/victim.h"
#include "transport/memory/unique_region_name.h"
#include "transport/session/client_side.h"

namespace tandem {
namespace {

class LifecycleFaults : public testing::Test {
 protected:
  void SetUp() override { alarm(900); }  // a hang is a failure
  void TearDown() override {
    { const CountingServer next(UniqueRegionName("faults")); }
    ExpectNothingLeft(name_);
    alarm(0);
  }

  std::unique_ptr<Victim> StartEngine() {
    auto engine = std::make_unique<Victim>([this] {
      CountingServer side(name_);
      Victim::Mark();
      side.Serve();
    });
    EXPECT_TRUE(engine->RunToMark());
    engine->Release();
    return engine;
  }

  void LeaveADeadRegion() {
    Victim engine([this] {
      CountingServer side(name_);
      Victim::Mark();
    });
    EXPECT_TRUE(engine.RunToMark());
    engine.Kill();
  }

  // A new engine takes the name and serves a new client.
  void ExpectAFreshPair() {
    const std::unique_ptr<Victim> engine = StartEngine();
    absl::StatusOr<ClientSide> client = ClientSide::Attach(name_, {});
    ASSERT_TRUE(client.ok()) << client.status();
    ExpectFreshSession(*client);
  }

  // Runs `body` between its marks, dying at each of its system calls and at
  // random instructions; after each death, `check`.
  void KillEverywhere(const std::function<void()>& before,
                      const std::function<void()>& body,
                      const std::function<void()>& check) {
    int calls = 0;
    for (bool within = true; within && !HasFailure(); ++calls) {
      before();
      Victim victim(body);
      ASSERT_TRUE(victim.RunToMark());
      for (int i = 0; within && i < calls; ++i) {
        within = victim.Advance(Victim::kSystemCall);
      }
      victim.Kill();
      check();
    }
    const int length = CountInstructions(before, body);
    std::mt19937 random(7);
    constexpr int kDraws = 25;
    for (int draw = 0; draw < kDraws && !HasFailure(); ++draw) {
      const int at = std::uniform_int_distribution<>(0, length)(random);
      before();
      Victim victim(body);
      ASSERT_TRUE(victim.RunToMark());
      for (int i = 0; i < at && victim.Advance(Victim::kInstruction); ++i) {
      }
      victim.Kill();
      check();
    }
    std::printf("killed at %d system call stops and %d of %d instructions\n",
                calls, kDraws, length);
    EXPECT_GT(calls, 3);
  }

  int CountInstructions(const std::function<void()>& before,
                        const std::function<void()>& body) {
    before();
    Victim victim(body);
    EXPECT_TRUE(victim.RunToMark());
    int count = 0;
    while (victim.Advance(Victim::kInstruction)) ++count;
    return count;
  }

  const std::string name_ = UniqueRegionName("faults");
};

TEST_F(LifecycleFaults, AnEngineKilledAtBirthLeavesTheNameToTheNext) {
  KillEverywhere([] {},
                 [this] {
                   Victim::Mark();
                   CountingServer side(name_);
                   Victim::Mark();
                 },
                 [this] { ExpectAFreshPair(); });
}

TEST_F(LifecycleFaults, AnEngineKilledWhileItTakesOverLeavesTheNameToTheNext) {
  KillEverywhere([this] { LeaveADeadRegion(); },
                 [this] {
                   Victim::Mark();
                   CountingServer side(name_);
                   Victim::Mark();
                 },
                 [this] { ExpectAFreshPair(); });
}

TEST_F(LifecycleFaults, AnEngineKilledWhileItStopsLeavesTheNameToTheNext) {
  KillEverywhere([] {},
                 [this] {
                   auto side = std::make_unique<CountingServer>(name_);
                   Victim::Mark();
                   side.reset();
                   Victim::Mark();
                 },
                 [this] { ExpectAFreshPair(); });
}

TEST_F(LifecycleFaults, AClientKilledWhileItAttachesIsFollowedByAFreshOne) {
  const std::unique_ptr<Victim> engine = StartEngine();
  KillEverywhere([] {},
                 [this] {
                   Victim::Mark();
                   const auto client = ClientSide::Attach(name_, {});
                   Victim::Mark();
                 },
                 [this] {
                   auto client = ClientSide::Attach(name_, {});
                   ASSERT_TRUE(client.ok()) << client.status();
                   ExpectFreshSession(*client);
                 });
}

TEST_F(LifecycleFaults, AClientKilledWhileItLeavesIsFollowedByAFreshOne) {
  const std::unique_ptr<Victim> engine = StartEngine();
  KillEverywhere([] {},
                 [this] {
                   auto client = ClientSide::Attach(name_, {});
                   if (!client.ok()) _exit(1);
                   Victim::Mark();
                   (void)client->Close();
                   Victim::Mark();
                 },
                 [this] {
                   auto client = ClientSide::Attach(name_, {});
                   ASSERT_TRUE(client.ok()) << client.status();
                   ExpectFreshSession(*client);
                 });
}

TEST_F(LifecycleFaults, AClientKilledWhileItReconnectsIsFollowedByAFreshOne) {
  const std::unique_ptr<Victim> engine = StartEngine();
  KillEverywhere([] {},
                 [this] {
                   auto client = ClientSide::Attach(name_, {});
                   if (!client.ok()) _exit(1);
                   Victim::Mark();
                   (void)client->Reconnect(10);
                   Victim::Mark();
                 },
                 [this] {
                   auto client = ClientSide::Attach(name_, {});
                   ASSERT_TRUE(client.ok()) << client.status();
                   ExpectFreshSession(*client);
                 });
}

TEST_F(LifecycleFaults, AnEngineKilledWhileItWelcomesLetsTheClientTryTheNext) {
  int runs = 0;
  for (bool within = true; within && !HasFailure(); ++runs) {
    Victim engine([this] {
      CountingServer side(name_);
      Victim::Mark();
      side.Serve();
    });
    ASSERT_TRUE(engine.RunToMark());
    Victim client([this] {
      Victim::Mark();
      auto side = ClientSide::Attach(name_, {});
      if (!side.ok()) _exit(1);
      for (int step = 1; step <= 3; ++step) {
        const float count = static_cast<float>(step);
        if (StepAndCheck(*side, count, count) != ErrorCode::kOk) _exit(2);
      }
      if (testing::Test::HasFailure()) _exit(3);
    });
    ASSERT_TRUE(client.RunToMark());
    client.Release();
    // The engine sees a client arrive some instructions into its wait.
    for (int i = 0; i < 100 * runs; ++i) {
      if (!engine.Advance(Victim::kInstruction)) break;
    }
    engine.Kill();
    const std::unique_ptr<Victim> next = StartEngine();
    const int status = client.AwaitExit();
    // It was welcomed by the dead one (and then found it gone), or by the next.
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_TRUE(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 2)
        << WEXITSTATUS(status);
    within = runs < 60;
  }
}

}  // namespace
}  // namespace tandem
