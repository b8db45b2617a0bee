// Kills either side at every system call of creation, take-over, stop, attach,
// reconnect and close; a client before every store of these calls, an engine
// at every 20th place, and at each in long runs.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "absl/status/statusor.h"
#include "base/error.h"
#include "tests/faults/counting_peers.h"
#include "tests/faults/every_access.h"
#include "tests/faults/fault_test.h"
#include "tests/faults/victim.h"
#include "transport/client_side.h"
#include "transport/session/engine_side.h"

namespace tandem {
namespace {

class LifecycleFaults : public FaultTest {
 protected:
  // Of a long case: a birth has 500 accesses, nearly all before the region has
  // a name, and 180,000 instructions, each of which takes 20 us by ptrace. To
  // stop at each access takes a minute, so only long runs do.
  static FaultPoints OfALongCase(EveryAccess::Kind kind) {
    if (DrawsTimes() > 1) return {.accesses = kind};
    return {.accesses = kind, .nth = 20, .draws = 0};
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
    ExpectANewClientIsServed();
  }

  // Starts an engine and stops it. Exits with the error's code on failure.
  void StartAndStop() {
    Victim::Mark();
    {
      absl::StatusOr<EngineSide> side = EngineSide::Create(
          name_, {.num_envs = 1, .obs_size = 1, .act_size = 1, .task = "f"},
          {});
      const absl::Status status = side.ok() ? side->Open() : side.status();
      if (!status.ok()) _exit(static_cast<int>(CodeOf(status)));
    }
    Victim::Mark();
  }

  // Kills a client wherever it does that.
  void KillAClient(void (*does)(ClientSide& client)) {
    const std::unique_ptr<Victim> engine = StartEngine();
    KillEverywhere([] {},
                   [this, does] {
                     auto client = ClientSide::Attach(name_, {});
                     if (!client.ok()) _exit(1);
                     Victim::Mark();
                     does(*client);
                     Victim::Mark();
                   },
                   [this] { ExpectANewClientIsServed(); });
  }

  // Starts an engine in this process; the name may be in use.
  void ExpectAnotherEngineIsServedOrRefused() {
    absl::StatusOr<EngineSide> side = EngineSide::Create(
        name_, {.num_envs = 1, .obs_size = 1, .act_size = 1, .task = "o"}, {});
    const absl::Status status = side.ok() ? side->Open() : side.status();
    EXPECT_TRUE(status.ok() || CodeOf(status) == ErrorCode::kAlreadyAttached)
        << status;
  }
};

TEST_F(LifecycleFaults, AnEngineKilledAtBirthLeavesTheNameToTheNext) {
  KillEverywhere([] {},
                 [this] {
                   Victim::Mark();
                   CountingServer side(name_);
                   Victim::Mark();
                 },
                 [this] { ExpectAFreshPair(); },
                 OfALongCase(EveryAccess::kStores));
}

TEST_F(LifecycleFaults, AnEngineKilledWhileItTakesOverLeavesTheNameToTheNext) {
  KillEverywhere([this] { LeaveADeadRegion(); },
                 [this] {
                   Victim::Mark();
                   CountingServer side(name_);
                   Victim::Mark();
                 },
                 [this] { ExpectAFreshPair(); },
                 OfALongCase(EveryAccess::kStores));
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
                 [this] { ExpectANewClientIsServed(); });
}

TEST_F(LifecycleFaults, AClientKilledWhileItLeavesIsFollowedByAFreshOne) {
  KillAClient([](ClientSide& client) { (void)client.Close(); });
}

TEST_F(LifecycleFaults, AClientKilledWhileItReconnectsIsFollowedByAFreshOne) {
  KillAClient([](ClientSide& client) { (void)client.Reconnect(10); });
}

TEST_F(LifecycleFaults, AnEngineFrozenFromBirthToEndStopsNoOther) {
  constexpr int kRefused = static_cast<int>(ErrorCode::kAlreadyAttached);
  FreezeEverywhere([] {}, [this] { StartAndStop(); },
                   [this] { ExpectAnotherEngineIsServedOrRefused(); },
                   {0, kRefused}, [this] { ExpectAFreshPair(); },
                   OfALongCase(EveryAccess::kLoadsAndStores));
}

TEST_F(LifecycleFaults, AnEngineFrozenWhileItTakesOverStopsNoOther) {
  constexpr int kRefused = static_cast<int>(ErrorCode::kAlreadyAttached);
  FreezeEverywhere([this] { LeaveADeadRegion(); }, [this] { StartAndStop(); },
                   [this] { ExpectAnotherEngineIsServedOrRefused(); },
                   {0, kRefused}, [this] { ExpectAFreshPair(); },
                   OfALongCase(EveryAccess::kLoadsAndStores));
}

TEST_F(LifecycleFaults, ClientFrozenFromAttachToCloseKeepsItsLock) {
  const std::unique_ptr<Victim> engine = StartEngine();
  FreezeEverywhere([] {},
                   [this] {
                     Victim::Mark();
                     {
                       auto client = ClientSide::Attach(name_, {});
                       if (!client.ok()) {
                         _exit(static_cast<int>(CodeOf(client.status())));
                       }
                       if (!client->Reconnect(10).ok()) _exit(99);
                     }
                     Victim::Mark();
                   },
                   [this] {
                     auto other = ClientSide::Attach(name_, {});
                     EXPECT_TRUE(other.ok() || CodeOf(other.status()) ==
                                                   ErrorCode::kAlreadyAttached)
                         << other.status();
                   },
                   {0}, [this] { ExpectANewClientIsServed(); },
                   OfALongCase(EveryAccess::kLoadsAndStores));
}

TEST_F(LifecycleFaults, ClientTriesNextEngineAfterKillDuringAttach) {
  constexpr int kRuns = 60;
  for (int run = 0; run < kRuns && !HasFailure(); ++run) {
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
        const ErrorCode code = StepAndCheck(*side, count, count);
        if (code != ErrorCode::kOk) {
          _exit(code == ErrorCode::kPeerGone ? 2 : 4);
        }
      }
      if (testing::Test::HasFailure()) _exit(3);
    });
    ASSERT_TRUE(client.RunToMark());
    client.Release();
    // The engine detects a client some instructions into its wait.
    engine.Advance(Victim::kInstruction, 100 * run);
    engine.Kill();
    const std::unique_ptr<Victim> next = StartEngine();
    const int status = client.AwaitExit();
    // Either the dead engine accepted the client, which then failed, or the
    // next engine accepted it.
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_TRUE(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 2)
        << WEXITSTATUS(status);
  }
}

}  // namespace
}  // namespace tandem
