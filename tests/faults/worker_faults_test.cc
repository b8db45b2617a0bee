// Workers of one region, between real processes. Tests kill or freeze a worker
// before each access to shared memory of its part of an exchange, and kill it
// before each store of its attach.

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/error.h"
#include "tests/faults/every_access.h"
#include "tests/faults/fault_test.h"
#include "tests/faults/victim.h"
#include "tests/faults/worker_fault_test.h"
#include "transport/client_side.h"
#include "transport/session/supervisor_side.h"
#include "transport/session/testing/worker_rig.h"
#include "transport/worker_side.h"

namespace tandem {
namespace {

// The one that the tests kill: it has the environments 2 and 3.
constexpr uint32_t kPrey = 1;

// Serves until an exchange is done. The process ends with its supervisor.
void ServeAnExchange(CountingWorker& worker) {
  for (;;) {
    const WorkerEvent event = worker.ServeOnce(Deadline::Infinite());
    if (event == WorkerEvent::kExchange) return;
    if (event == WorkerEvent::kSupervisorGone) _exit(0);
    if (event == WorkerEvent::kStop) _exit(0);
  }
}

// The supervisor of this process, on a thread, and its workers in others. The
// prey holds before its second exchange, and after it.
class HeldWorkers {
 public:
  HeldWorkers(const std::string& name, bool restarts)
      : side_(CreateSide(name)) {
    const int fd = side_->region().memory().handle();
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
    while (side_->Next(Deadline::After(0.01)) !=
           SupervisorEvent::kWorkersReady) {
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
  std::unique_ptr<SupervisorSide> side_;
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
    EXPECT_EQ(held.client().Send(Actions(2)), ErrorCode::kOk);
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
};

TEST_F(WorkerFaults, AWorkerKilledAnywhereIsReplaced) {
  int restarted = 0;
  const Runs runs = AtPoints(EveryAccess::kStores, [&](const Advance& advance) {
    HeldWorkers held(name_, /*restarts=*/true);
    ASSERT_EQ(held.client().Send(Actions(2)), ErrorCode::kOk);
    advance(held.prey(), nullptr);
    held.prey().Kill();
    ErrorCode code = held.client().Recv(Deadline::After(20));
    ASSERT_EQ(code, ErrorCode::kOk) << held.client().Explain(code);
    // It did its part, or its replacement has reset its rows instead.
    const bool in_this_step = held.NoteRestart(2);
    held.ExpectRows(2);
    code = held.client().Step(Actions(3), 20);
    ASSERT_EQ(code, ErrorCode::kOk) << held.client().Explain(code);
    if (in_this_step) {
      ++restarted;
    } else {
      EXPECT_TRUE(held.NoteRestart(3));
    }
    held.ExpectRows(3);
    EXPECT_EQ(held.client().Step(Actions(4), 20), ErrorCode::kOk);
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
    ASSERT_EQ(held.client().Send(Actions(2)), ErrorCode::kOk);
    advance(held.prey(), nullptr);
    held.prey().Kill();
    ErrorCode code = held.client().Recv(Deadline::After(20));
    if (code == ErrorCode::kOk) {
      ++published;
      held.ExpectRows(2);
      code = held.client().Step(Actions(3), 20);
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
        ASSERT_EQ(held.client().Send(Actions(2)), ErrorCode::kOk);
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
        EXPECT_EQ(held.client().Step(Actions(3), 20), ErrorCode::kOk);
        held.ExpectRows(3);
      });
  std::printf("froze a worker at %s; %d were late\n", runs.text.c_str(), late);
  EXPECT_GT(late, 0);
}

TEST_F(WorkerFaults, AWorkerKilledWhileItAttachesLeavesItsSlot) {
  const std::unique_ptr<SupervisorSide> side = CreateSide(name_);
  const int fd = side->region().memory().handle();
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

}  // namespace
}  // namespace tandem
