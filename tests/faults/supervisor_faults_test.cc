// The supervisor of workers and their client, between real processes. Tests
// kill or freeze the supervisor before each access to shared memory during an
// exchange and an attach, and kill a client before each store of its calls.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/error.h"
#include "tests/faults/every_access.h"
#include "tests/faults/fault_test.h"
#include "tests/faults/victim.h"
#include "tests/faults/worker_fault_test.h"
#include "transport/client_side.h"
#include "transport/memory/attached_region.h"
#include "transport/region.h"
#include "transport/session/supervisor_side.h"

namespace tandem {
namespace {

class SupervisorFaults : public FaultTest {
 protected:
  // A process that is the supervisor of two others, which end with it. It
  // serves up to its second mark, which is at Hold, and then without end.
  std::unique_ptr<Victim> StartSupervisor() {
    hold_.Set(false);
    auto supervisor = std::make_unique<Victim>([this] {
      std::unique_ptr<SupervisorSide> side = CreateSide(name_);
      const int fd = side->region().memory().handle();
      for (uint32_t worker = 0; worker < kWorkers; ++worker) {
        if (fork() != 0) continue;
        AttachWorker(fd, worker)->Serve();
        _exit(0);
      }
      side->ResetWorkers(std::nullopt);
      while (side->Next(Deadline::After(0.01)) !=
             SupervisorEvent::kWorkersReady) {
      }
      if (!side->Open().ok()) _exit(98);
      Victim::Mark();
      Supervise(side, nullptr, [this] { return hold_.Get(); });
      Victim::Mark();
      Supervise(side, nullptr, [] { return false; });
    });
    EXPECT_TRUE(supervisor->RunToMark());
    return supervisor;
  }

  // A client steps once. Then the supervisor is held, and the client has sent
  // its second exchange.
  struct HeldSupervisor {
    std::unique_ptr<Victim> process;
    std::unique_ptr<ClientSide> client;
    bool IsAnswered() const {
      // relaxed: only compared.
      return client->mapping()->header()->frame_seq.load(
                 std::memory_order_relaxed) == 2;
    }
  };
  HeldSupervisor HoldInAnExchange() {
    std::unique_ptr<Victim> supervisor = StartSupervisor();
    supervisor->RunOn();
    absl::StatusOr<ClientSide> client = ClientSide::Attach(name_, {});
    EXPECT_TRUE(client.ok()) << client.status();
    EXPECT_EQ(client->Step(Actions(1), 20), ErrorCode::kOk);
    hold_.Set(true);
    EXPECT_TRUE(supervisor->AwaitMark());
    EXPECT_EQ(client->Send(Actions(2)), ErrorCode::kOk);
    return {std::move(supervisor),
            std::make_unique<ClientSide>(*std::move(client))};
  }

  // The supervisor is held, and a process attaches, steps, and exits with the
  // first error's code.
  struct HeldAttach {
    std::unique_ptr<Victim> supervisor;
    std::unique_ptr<Victim> client;
    std::shared_ptr<const RegionMapping> region;
    bool IsDone() const {
      // relaxed: only compared.
      return region->header()->frame_seq.load(std::memory_order_relaxed) > 0;
    }
    ErrorCode AwaitCode() {
      return static_cast<ErrorCode>(WEXITSTATUS(client->AwaitExit()));
    }
  };
  HeldAttach HoldInAnAttach() {
    std::unique_ptr<Victim> supervisor = StartSupervisor();
    supervisor->RunOn();
    hold_.Set(true);
    EXPECT_TRUE(supervisor->AwaitMark());
    auto client = std::make_unique<Victim>([this] {
      Victim::Mark();
      absl::StatusOr<ClientSide> side = ClientSide::Attach(name_, {});
      if (!side.ok()) _exit(static_cast<int>(CodeOf(side.status())));
      const ErrorCode code = side->Step(Actions(1), 20);
      _exit(static_cast<int>(code));
    });
    EXPECT_TRUE(client->RunToMark());
    client->Release();
    absl::StatusOr<AttachedRegion> region = AttachedRegion::Open(name_);
    EXPECT_TRUE(region.ok()) << region.status();
    return {std::move(supervisor), std::move(client), region->mapping()};
  }

  // A new client's environments count from 1.
  void ExpectAFreshSession() {
    absl::StatusOr<ClientSide> client = ClientSide::Attach(name_, {});
    ASSERT_TRUE(client.ok()) << client.status();
    for (int step = 1; step <= 3; ++step) {
      const float count = static_cast<float>(step);
      const ErrorCode code = client->Step(Actions(count), 20);
      ASSERT_EQ(code, ErrorCode::kOk) << client->Explain(code);
      for (uint32_t env = 0; env < kEnvs; ++env) {
        EXPECT_EQ(client->arrays().obs[3 * env], count) << env;
        EXPECT_EQ(client->arrays().obs[3 * env + 1], count) << env;
      }
    }
  }

 private:
  SharedFlag hold_;
};

TEST_F(SupervisorFaults, AClientKilledAnywhereIsFollowedByAFreshOne) {
  const std::unique_ptr<Victim> supervisor = StartSupervisor();
  supervisor->Release();
  KillEverywhere([] {},
                 [this] {
                   Victim::Mark();
                   absl::StatusOr<ClientSide> client =
                       ClientSide::Attach(name_, {});
                   if (!client.ok()) _exit(96);
                   if (client->Step(Actions(7), 20) != ErrorCode::kOk) {
                     _exit(95);
                   }
                   if (client->Send(Actions(8)) != ErrorCode::kOk) {
                     _exit(94);
                   }
                   Victim::Mark();
                 },
                 [this] { ExpectAFreshSession(); });
}

TEST_F(SupervisorFaults, AClientKilledInALaneIsFollowedByAFreshOne) {
  const std::unique_ptr<Victim> supervisor = StartSupervisor();
  supervisor->Release();
  KillEverywhere(
      [] {},
      [this] {
        absl::StatusOr<ClientSide> client = ClientSide::Attach(name_, {});
        if (!client.ok()) _exit(96);
        const std::vector<uint32_t> workers = {1, 0};
        std::vector<uint32_t> ready;
        Victim::Mark();
        if (client->lanes().Send(workers, Actions(7)) != ErrorCode::kOk) {
          _exit(95);
        }
        if (client->lanes().Recv(1, Deadline::After(20), &ready) !=
            ErrorCode::kOk) {
          _exit(94);
        }
        Victim::Mark();
      },
      [this] { ExpectAFreshSession(); });
}

TEST_F(SupervisorFaults, ASupervisorsDeathEndsItsWorkersAndFreesTheName) {
  for (int run = 0; run < 20 && !HasFailure(); ++run) {
    const std::unique_ptr<Victim> supervisor = StartSupervisor();
    supervisor->Release();
    absl::StatusOr<ClientSide> client = ClientSide::Attach(name_, {});
    ASSERT_TRUE(client.ok()) << client.status();
    ASSERT_EQ(client->Step(Actions(1), 20), ErrorCode::kOk);
    ASSERT_EQ(client->Send(Actions(2)), ErrorCode::kOk);
    supervisor->Kill();
    // The workers publish this exchange without it, and then end.
    ErrorCode code = client->Recv(Deadline::After(20));
    for (float count = 3; code == ErrorCode::kOk; ++count) {
      code = client->Step(Actions(count), 20);
    }
    EXPECT_EQ(code, ErrorCode::kPeerGone) << client->Explain(code);
    EXPECT_EQ(client->Close(), ErrorCode::kOk);
    const std::unique_ptr<Victim> next = StartSupervisor();
    next->Release();
    ExpectAFreshSession();
  }
}

TEST_F(SupervisorFaults, ASupervisorKilledAnywhereInAnExchangeIsGone) {
  int answered = 0;
  const size_t stores =
      AtEachAccess(EveryAccess::kStores, [&](const Advance& advance) {
        const HeldSupervisor held = HoldInAnExchange();
        advance(*held.process, [&] { return held.IsAnswered(); });
        held.process->Kill();
        ErrorCode code = held.client->Recv(Deadline::After(20));
        for (float count = 3; code == ErrorCode::kOk; ++count) {
          if (count == 3) ++answered;
          code = held.client->Step(Actions(count), 20);
        }
        EXPECT_EQ(code, ErrorCode::kPeerGone) << held.client->Explain(code);
        EXPECT_EQ(held.client->Close(), ErrorCode::kOk);
        const std::unique_ptr<Victim> next = StartSupervisor();
        next->Release();
        ExpectAFreshSession();
      });
  std::printf("killed a supervisor at each of %zu places; %d answered\n",
              stores, answered);
}

TEST_F(SupervisorFaults, ASupervisorFrozenAnywhereInAnExchangeContinues) {
  int late = 0;
  const size_t accesses =
      AtEachAccess(EveryAccess::kLoadsAndStores, [&](const Advance& advance) {
        const HeldSupervisor held = HoldInAnExchange();
        advance(*held.process, [&] { return held.IsAnswered(); });
        ErrorCode code = held.client->Recv(Deadline::After(0.05));
        if (code == ErrorCode::kOk) {
          // Workers do exchanges without it.
          EXPECT_EQ(held.client->Step(Actions(3), 20), ErrorCode::kOk);
        }
        held.process->Release();
        if (code != ErrorCode::kOk) {
          ++late;  // it has won the election
          ASSERT_EQ(code, ErrorCode::kStepTimeout);
          code = held.client->Recv(Deadline::After(20));
        }
        ASSERT_EQ(code, ErrorCode::kOk) << held.client->Explain(code);
        EXPECT_EQ(held.client->Step(Actions(4), 20), ErrorCode::kOk);
        EXPECT_EQ(held.client->Close(), ErrorCode::kOk);
        ExpectAFreshSession();
      });
  std::printf("froze a supervisor at each of %zu places; %d were late\n",
              accesses, late);
}

TEST_F(SupervisorFaults,
       ASupervisorKilledAnywhereInAnAttachIsFollowedByAnother) {
  int lost = 0;
  const size_t stores =
      AtEachAccess(EveryAccess::kStores, [&](const Advance& advance) {
        HeldAttach held = HoldInAnAttach();
        advance(*held.supervisor, [&] { return held.IsDone(); });
        held.supervisor->Kill();
        const std::unique_ptr<Victim> next = StartSupervisor();
        next->Release();
        // A client that was not acknowledged attaches to the next region.
        const ErrorCode code = held.AwaitCode();
        if (code != ErrorCode::kOk) {
          ++lost;
          EXPECT_EQ(code, ErrorCode::kPeerGone) << NameOf(code);
        }
        ExpectAFreshSession();
      });
  std::printf("killed a supervisor at each of %zu places; %d PeerGone\n",
              stores, lost);
  EXPECT_GT(stores, 5u);
}

TEST_F(SupervisorFaults, ASupervisorFrozenAnywhereInAnAttachThenAcknowledges) {
  const size_t accesses =
      AtEachAccess(EveryAccess::kLoadsAndStores, [&](const Advance& advance) {
        HeldAttach held = HoldInAnAttach();
        advance(*held.supervisor, [&] { return held.IsDone(); });
        usleep(2000);  // the others do what they can
        held.supervisor->Release();
        const ErrorCode code = held.AwaitCode();
        EXPECT_EQ(code, ErrorCode::kOk) << NameOf(code);
        ExpectAFreshSession();
      });
  std::printf("froze a supervisor at each of %zu places\n", accesses);
  EXPECT_GT(accesses, 5u);
}

}  // namespace
}  // namespace tandem
