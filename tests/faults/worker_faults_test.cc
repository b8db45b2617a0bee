// Workers of one region, between real processes. Tests kill or freeze a worker
// at every access to shared memory of its part of an exchange, and at every
// system call of its attach; a client in all of its calls; and the supervisor
// at every access during an exchange and an attach.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/faults/every_access.h"
#include "tests/faults/fault_test.h"
#include "tests/faults/victim.h"
#include "transport/base/clock.h"
#include "transport/base/error.h"
#include "transport/memory/attached_region.h"
#include "transport/memory/region_mapping.h"
#include "transport/session/client_side.h"
#include "transport/session/engine_side.h"
#include "transport/session/testing/worker_rig.h"
#include "transport/session/worker_side.h"

namespace tandem {
namespace {

constexpr uint32_t kEnvs = 4;
constexpr uint32_t kWorkers = 2;
// The one that the tests kill: it has the environments 2 and 3.
constexpr uint32_t kPrey = 1;

std::unique_ptr<CountingWorker> AttachWorker(int fd, uint32_t worker) {
  absl::StatusOr<WorkerSide> side = WorkerSide::Attach(fd, worker, {});
  if (!side.ok()) {
    std::fprintf(stderr, "%s\n", side.status().ToString().c_str());
    _exit(97);
  }
  return std::make_unique<CountingWorker>(*std::move(side));
}

// Serves until an exchange is done. The process ends with its supervisor.
void ServeAnExchange(CountingWorker& worker) {
  for (;;) {
    const WorkerEvent event = worker.ServeOnce(Deadline::Infinite());
    if (event == WorkerEvent::kExchange) return;
    if (event == WorkerEvent::kSupervisorGone) _exit(0);
    if (event == WorkerEvent::kStop) _exit(0);
  }
}

// Serves until `stops`. A worker that died is replaced by the process that
// waits for `standby`; without one, the region ends.
void Supervise(std::unique_ptr<EngineSide>& side, SharedFlag* standby,
               const std::function<bool()>& stops) {
  while (!stops()) {
    switch (side->Next(Deadline::After(0.002))) {
      case EngineEvent::kClientArrived:
        side->AcknowledgeAttach(absl::OkStatus());
        break;
      case EngineEvent::kWorkerDied: {
        const uint32_t worker = side->dead_worker();
        if (standby == nullptr) {
          side->End(ErrorCode::kEngineFailed,
                    absl::StrCat(side->WorkerText(worker), ", died"));
          side.reset();
          return;
        }
        if (side->ReplaceWorker(worker)) standby->Set(true);
        break;
      }
      default:
        break;
    }
  }
}

std::unique_ptr<EngineSide> CreateSide(const std::string& name) {
  absl::StatusOr<EngineSide> side =
      EngineSide::Create(name, WorkerSpec(kEnvs, kWorkers), {});
  if (!side.ok()) {
    std::fprintf(stderr, "%s\n", side.status().ToString().c_str());
    std::abort();
  }
  return std::make_unique<EngineSide>(*std::move(side));
}

// The supervisor of this process, on a thread, and its workers in others. The
// prey holds before its second exchange, and after it.
class HeldWorkers {
 public:
  HeldWorkers(const std::string& name, bool restarts)
      : side_(CreateSide(name)) {
    const int fd = side_->region().fd();
    // All processes are forked before there is a thread.
    other_ = std::make_unique<Victim>(
        [fd] { AttachWorker(fd, 1 - kPrey)->Serve(); });
    other_->Release();
    if (restarts) {
      standby_ = std::make_unique<Victim>([this, fd] {
        while (!called_.Get()) usleep(200);
        AttachWorker(fd, kPrey)->Serve();
      });
      standby_->Release();
    }
    prey_ = std::make_unique<Victim>([fd] {
      const auto worker = AttachWorker(fd, kPrey);
      ServeAnExchange(*worker);
      Victim::Mark();
      ServeAnExchange(*worker);
      Victim::Mark();
      worker->Serve();
    });
    prey_->RunOn();
    side_->ResetWorkers(std::nullopt);
    while (side_->Next(Deadline::After(0.01)) != EngineEvent::kWorkersReady) {
    }
    EXPECT_TRUE(side_->Open().ok());
    thread_ = std::thread([this] {
      // relaxed: only the flag is used.
      Supervise(side_, standby_ == nullptr ? nullptr : &called_,
                [this] { return stops_.load(std::memory_order_relaxed); });
    });
    absl::StatusOr<ClientSide> client = ClientSide::Attach(name, {});
    EXPECT_TRUE(client.ok()) << client.status();
    client_ = std::make_unique<ClientSide>(*std::move(client));
    EXPECT_EQ(client_->Step(Actions(1), 20), ErrorCode::kOk);
    EXPECT_TRUE(prey_->AwaitMark());
  }
  HeldWorkers(const HeldWorkers&) = delete;
  HeldWorkers& operator=(const HeldWorkers&) = delete;
  ~HeldWorkers() {
    client_.reset();
    // relaxed: only the flag is used.
    stops_.store(true, std::memory_order_relaxed);
    thread_.join();
  }

  static std::vector<float> Actions(float action) {
    return std::vector<float>(kEnvs, action);
  }
  Victim& prey() { return *prey_; }
  ClientSide& client() { return *client_; }

  // Checks the results of step `count`.
  void ExpectRows(float count) {
    const std::span<float> obs = client_->arrays().obs;
    for (uint32_t env = 0; env < kEnvs; ++env) {
      const bool is_preys = env >= kEnvs / kWorkers;
      const float found = obs[3 * env];
      const bool reset = is_preys && restarted_;
      EXPECT_EQ(found, reset ? count - reset_at_ : count) << env;
    }
  }
  // Whether the prey's rows were reset in step `count`, by a replacement.
  bool NoteRestart(float count) {
    restarted_ = client_->arrays().obs[3 * (kEnvs - 1)] == 0;
    reset_at_ = count;
    return restarted_;
  }

 private:
  SharedFlag called_;  // the standby process attaches
  std::unique_ptr<EngineSide> side_;
  std::unique_ptr<Victim> other_;
  std::unique_ptr<Victim> standby_;
  std::unique_ptr<Victim> prey_;
  std::thread thread_;
  std::atomic<bool> stops_{false};
  std::unique_ptr<ClientSide> client_;
  bool restarted_ = false;
  float reset_at_ = 0;
};

class WorkerFaults : public FaultTest {
 protected:
  static constexpr int kDraws = 2 * kEachAccess.draws;

  // The instructions of the prey's part of an exchange.
  int CountPreysInstructions() {
    HeldWorkers held(name_, /*restarts=*/false);
    EXPECT_EQ(held.client().Send(HeldWorkers::Actions(2)), ErrorCode::kOk);
    int count = 0;
    while (held.prey().Advance(Victim::kInstruction)) ++count;
    held.prey().Release();
    EXPECT_EQ(held.client().Recv(Deadline::After(20)), ErrorCode::kOk);
    return count;
  }

  struct Runs {
    int count;
    std::string text;
  };
  // Calls `there` for points spread over the prey's part of an exchange, and
  // for each of its accesses.
  Runs AtPoints(EveryAccess::Kind kind,
                const std::function<void(const Advance& advance)>& there) {
    const int length = CountPreysInstructions();
    const int places = AtPlaces(
        kDraws, length, [&](int place) { there(ByInstructions(place)); });
    const size_t accesses = AtEachAccess(kind, there);
    return {.count = places + static_cast<int>(accesses),
            .text = absl::StrCat(places, " of ", length,
                                 " instructions, and each of ", accesses,
                                 " places")};
  }

  // A process that is the supervisor of two others, which end with it. It
  // serves up to its second mark, which is at Hold, and then without end.
  std::unique_ptr<Victim> StartSupervisor() {
    hold_.Set(false);
    auto supervisor = std::make_unique<Victim>([this] {
      std::unique_ptr<EngineSide> side = CreateSide(name_);
      const int fd = side->region().fd();
      for (uint32_t worker = 0; worker < kWorkers; ++worker) {
        if (fork() != 0) continue;
        AttachWorker(fd, worker)->Serve();
        _exit(0);
      }
      side->ResetWorkers(std::nullopt);
      while (side->Next(Deadline::After(0.01)) != EngineEvent::kWorkersReady) {
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
    EXPECT_EQ(client->Step(HeldWorkers::Actions(1), 20), ErrorCode::kOk);
    hold_.Set(true);
    EXPECT_TRUE(supervisor->AwaitMark());
    EXPECT_EQ(client->Send(HeldWorkers::Actions(2)), ErrorCode::kOk);
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
      const ErrorCode code = side->Step(HeldWorkers::Actions(1), 20);
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
      const ErrorCode code = client->Step(HeldWorkers::Actions(count), 20);
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

TEST_F(WorkerFaults, AWorkerKilledAnywhereIsReplaced) {
  int restarted = 0;
  const Runs runs = AtPoints(EveryAccess::kStores, [&](const Advance& advance) {
    HeldWorkers held(name_, /*restarts=*/true);
    ASSERT_EQ(held.client().Send(HeldWorkers::Actions(2)), ErrorCode::kOk);
    advance(held.prey(), nullptr);
    held.prey().Kill();
    ErrorCode code = held.client().Recv(Deadline::After(20));
    ASSERT_EQ(code, ErrorCode::kOk) << held.client().Explain(code);
    // It did its part, or its replacement has reset its rows instead.
    const bool in_this_step = held.NoteRestart(2);
    held.ExpectRows(2);
    code = held.client().Step(HeldWorkers::Actions(3), 20);
    ASSERT_EQ(code, ErrorCode::kOk) << held.client().Explain(code);
    if (in_this_step) {
      ++restarted;
    } else {
      EXPECT_TRUE(held.NoteRestart(3));
    }
    held.ExpectRows(3);
    EXPECT_EQ(held.client().Step(HeldWorkers::Actions(4), 20), ErrorCode::kOk);
    held.ExpectRows(4);
  });
  std::printf("killed a worker at %s; %d before its end\n", runs.text.c_str(),
              restarted);
  EXPECT_GT(restarted, 0);
  EXPECT_LT(restarted, runs.count);
}

TEST_F(WorkerFaults, AWorkerKilledAnywhereEndsTheRegionWithItsText) {
  int published = 0;
  const Runs runs = AtPoints(EveryAccess::kStores, [&](const Advance& advance) {
    HeldWorkers held(name_, /*restarts=*/false);
    ASSERT_EQ(held.client().Send(HeldWorkers::Actions(2)), ErrorCode::kOk);
    advance(held.prey(), nullptr);
    held.prey().Kill();
    ErrorCode code = held.client().Recv(Deadline::After(20));
    if (code == ErrorCode::kOk) {
      ++published;
      held.ExpectRows(2);
      code = held.client().Step(HeldWorkers::Actions(3), 20);
    }
    ASSERT_EQ(code, ErrorCode::kPeerGone) << held.client().Explain(code);
    const std::string text(held.client().Explain(code).message());
    EXPECT_TRUE(absl::StrContains(text, "worker 1 (pid ")) << text;
    EXPECT_TRUE(absl::StrContains(text, "environments 2 to 3")) << text;
  });
  std::printf("killed a worker at %s; %d published\n", runs.text.c_str(),
              published);
  EXPECT_GT(published, 0);
  EXPECT_LT(published, runs.count);
}

TEST_F(WorkerFaults, AWorkerFrozenAnywhereTimesOutAndThenGoesOn) {
  int late = 0;
  const Runs runs =
      AtPoints(EveryAccess::kLoadsAndStores, [&](const Advance& advance) {
        HeldWorkers held(name_, /*restarts=*/true);
        ASSERT_EQ(held.client().Send(HeldWorkers::Actions(2)), ErrorCode::kOk);
        const bool within = advance(held.prey(), nullptr);
        ErrorCode code = held.client().Recv(Deadline::After(0.03));
        if (within) {
          EXPECT_TRUE(held.prey().RunToMark());
        }
        held.prey().Release();
        if (code != ErrorCode::kOk) {
          ++late;
          ASSERT_EQ(code, ErrorCode::kStepTimeout);
          const std::string text(held.client().Explain(code).message());
          EXPECT_TRUE(absl::StrContains(text, "workers are done")) << text;
          code = held.client().Recv(Deadline::After(20));
        }
        ASSERT_EQ(code, ErrorCode::kOk) << held.client().Explain(code);
        held.ExpectRows(2);
        EXPECT_EQ(held.client().Step(HeldWorkers::Actions(3), 20),
                  ErrorCode::kOk);
        held.ExpectRows(3);
      });
  std::printf("froze a worker at %s; %d were late\n", runs.text.c_str(), late);
  EXPECT_GT(late, 0);
}

TEST_F(WorkerFaults, AWorkerKilledWhileItAttachesLeavesItsSlot) {
  const std::unique_ptr<EngineSide> side = CreateSide(name_);
  const int fd = side->region().fd();
  KillEverywhere([] {},
                 [fd] {
                   Victim::Mark();
                   {
                     const absl::StatusOr<WorkerSide> worker =
                         WorkerSide::Attach(fd, kPrey, {});
                     if (!worker.ok()) _exit(96);
                   }
                   Victim::Mark();
                 },
                 [&] {
                   EXPECT_TRUE(side->ReplaceWorker(kPrey));
                   EXPECT_TRUE(WorkerSide::Attach(fd, kPrey, {}).ok());
                 });
}

TEST_F(WorkerFaults, AClientKilledAnywhereIsFollowedByAFreshOne) {
  const std::unique_ptr<Victim> supervisor = StartSupervisor();
  supervisor->Release();
  KillEverywhere(
      [] {},
      [this] {
        Victim::Mark();
        absl::StatusOr<ClientSide> client = ClientSide::Attach(name_, {});
        if (!client.ok()) _exit(96);
        if (client->Step(HeldWorkers::Actions(7), 20) != ErrorCode::kOk) {
          _exit(95);
        }
        if (client->Send(HeldWorkers::Actions(8)) != ErrorCode::kOk) {
          _exit(94);
        }
        Victim::Mark();
      },
      [this] { ExpectAFreshSession(); });
}

TEST_F(WorkerFaults, AClientKilledInALaneIsFollowedByAFreshOne) {
  const std::unique_ptr<Victim> supervisor = StartSupervisor();
  supervisor->Release();
  KillEverywhere([] {},
                 [this] {
                   absl::StatusOr<ClientSide> client =
                       ClientSide::Attach(name_, {});
                   if (!client.ok()) _exit(96);
                   const std::vector<uint32_t> workers = {1, 0};
                   std::vector<uint32_t> ready;
                   Victim::Mark();
                   if (client->SendLanes(workers, HeldWorkers::Actions(7)) !=
                       ErrorCode::kOk) {
                     _exit(95);
                   }
                   if (client->RecvLanes(1, Deadline::After(20), &ready) !=
                       ErrorCode::kOk) {
                     _exit(94);
                   }
                   Victim::Mark();
                 },
                 [this] { ExpectAFreshSession(); });
}

TEST_F(WorkerFaults, ASupervisorsDeathEndsItsWorkersAndFreesTheName) {
  for (int run = 0; run < 20 && !HasFailure(); ++run) {
    const std::unique_ptr<Victim> supervisor = StartSupervisor();
    supervisor->Release();
    absl::StatusOr<ClientSide> client = ClientSide::Attach(name_, {});
    ASSERT_TRUE(client.ok()) << client.status();
    ASSERT_EQ(client->Step(HeldWorkers::Actions(1), 20), ErrorCode::kOk);
    ASSERT_EQ(client->Send(HeldWorkers::Actions(2)), ErrorCode::kOk);
    supervisor->Kill();
    // The workers publish this exchange without it, and then end.
    ErrorCode code = client->Recv(Deadline::After(20));
    for (float count = 3; code == ErrorCode::kOk; ++count) {
      code = client->Step(HeldWorkers::Actions(count), 20);
    }
    EXPECT_EQ(code, ErrorCode::kPeerGone) << client->Explain(code);
    EXPECT_EQ(client->Close(), ErrorCode::kOk);
    const std::unique_ptr<Victim> next = StartSupervisor();
    next->Release();
    ExpectAFreshSession();
  }
}

TEST_F(WorkerFaults, ASupervisorKilledAnywhereInAnExchangeIsGone) {
  int answered = 0;
  const size_t stores =
      AtEachAccess(EveryAccess::kStores, [&](const Advance& advance) {
        const HeldSupervisor held = HoldInAnExchange();
        advance(*held.process, [&] { return held.IsAnswered(); });
        held.process->Kill();
        ErrorCode code = held.client->Recv(Deadline::After(20));
        for (float count = 3; code == ErrorCode::kOk; ++count) {
          if (count == 3) ++answered;
          code = held.client->Step(HeldWorkers::Actions(count), 20);
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

TEST_F(WorkerFaults, ASupervisorFrozenAnywhereInAnExchangeContinues) {
  int late = 0;
  const size_t accesses =
      AtEachAccess(EveryAccess::kLoadsAndStores, [&](const Advance& advance) {
        const HeldSupervisor held = HoldInAnExchange();
        advance(*held.process, [&] { return held.IsAnswered(); });
        ErrorCode code = held.client->Recv(Deadline::After(0.05));
        if (code == ErrorCode::kOk) {
          // Workers do exchanges without it.
          EXPECT_EQ(held.client->Step(HeldWorkers::Actions(3), 20),
                    ErrorCode::kOk);
        }
        held.process->Release();
        if (code != ErrorCode::kOk) {
          ++late;  // it has won the election
          ASSERT_EQ(code, ErrorCode::kStepTimeout);
          code = held.client->Recv(Deadline::After(20));
        }
        ASSERT_EQ(code, ErrorCode::kOk) << held.client->Explain(code);
        EXPECT_EQ(held.client->Step(HeldWorkers::Actions(4), 20),
                  ErrorCode::kOk);
        EXPECT_EQ(held.client->Close(), ErrorCode::kOk);
        ExpectAFreshSession();
      });
  std::printf("froze a supervisor at each of %zu places; %d were late\n",
              accesses, late);
}

TEST_F(WorkerFaults, ASupervisorKilledAnywhereInAnAttachIsFollowedByAnother) {
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

TEST_F(WorkerFaults, ASupervisorFrozenAnywhereInAnAttachThenAcknowledges) {
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
