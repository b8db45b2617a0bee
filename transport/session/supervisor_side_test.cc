// The supervisor's orders: what a new client, one that left, a scribbled word
// or a stop leads to.

#include "transport/session/supervisor_side.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/os/side_locks.h"
#include "schema/layout/lrbc.h"
#include "schema/layout/worker_slot.h"
#include "transport/client_side.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/session/testing/echo_engine.h"
#include "transport/session/testing/worker_rig.h"
#include "transport/session/testing/workers_fixture.h"
#include "transport/worker_side.h"

namespace tandem {
namespace {

using Supervision = WorkersTest;

TEST_F(Supervision, AFailureEndsWithItsExchangeIfTheCountIsLowered) {
  ClientSide client = Begin(WorkerSpec(2, 2));
  ASSERT_EQ(StepAll(client, 1), ErrorCode::kOk);
  ASSERT_EQ(StepAll(client, kRaise), ErrorCode::kEnvFailed);
  // relaxed: as a foreign program would.
  client.mapping()->header()->action_seq.store(1, std::memory_order_relaxed);
  AwaitTrue([&] { return rig_->broken() == 1; });
  ASSERT_TRUE(client.Reconnect(20).ok());
  // Exchange 2 again.
  EXPECT_EQ(StepAll(client, 3), ErrorCode::kOk);
  ExpectRows(client, 1, 3);
}

TEST_F(Supervision, EnvironmentsThatSteppedAfterALoweredCountAreReset) {
  ClientSide client = Begin(WorkerSpec(2, 2));
  for (int i = 0; i < 3; ++i) ASSERT_EQ(StepAll(client, 1), ErrorCode::kOk);
  // relaxed: as a foreign program would. The attach comes before the supervisor
  // has seen the number for 100 ms.
  client.mapping()->header()->action_seq.store(1, std::memory_order_relaxed);
  ASSERT_TRUE(client.Reconnect(20).ok());
  // frame_seq is then that of the reset before the attach.
  for (int i = 0; i < 2; ++i) ASSERT_EQ(StepAll(client, 2), ErrorCode::kOk);
  ASSERT_TRUE(client.Reconnect(20).ok());
  ExpectRows(client, 0, 0);
}

TEST_F(Supervision, AClientRingsForWhatItHasSentByOtherMeans) {
  ClientSide client = Begin(WorkerSpec(2, 2));
  LrbcHeader& header = *client.mapping()->header();
  // relaxed: the test's own words. A sleeper that never wakes.
  header.engine_sleepers.fetch_add(1, std::memory_order_relaxed);
  const uint32_t before =
      header.engine_doorbell.load(std::memory_order_relaxed);
  client.WakeEngine();
  // relaxed: as above.
  EXPECT_NE(header.engine_doorbell.load(std::memory_order_relaxed), before);
}

// The supervisor, two workers of one environment each, and a foreign client, on
// one thread: the test decides which of them acts.
class Orders : public testing::Test {
 protected:
  static constexpr uint32_t kWorkers = 2;

  void SetUp() override {
    absl::StatusOr<SupervisorSide> side = SupervisorSide::Create(
        UniqueRegionName("orders"), WorkerSpec(kWorkers, kWorkers), {});
    ASSERT_TRUE(side.ok()) << side.status();
    side_ = std::make_unique<SupervisorSide>(*std::move(side));
    header_ = side_->mapping()->header();
    head_ = side_->mapping()->At<WorkersHeader>(header_->workers_offset);
    for (uint32_t worker = 0; worker < kWorkers; ++worker) {
      workers_.push_back(AttachWorker(worker));
    }
    side_->ResetWorkers(std::nullopt);
    PumpUntil(SupervisorEvent::kWorkersReady);
    ASSERT_TRUE(side_->Open().ok());
    PumpUntilAll(WorkerOrder::kGo);
  }
  void TearDown() override { workers_.clear(); }

  std::unique_ptr<CountingWorker> AttachWorker(uint32_t worker) {
    absl::StatusOr<WorkerSide> side =
        WorkerSide::Attach(side_->region().memory().handle(), worker, {});
    EXPECT_TRUE(side.ok()) << side.status();
    return std::make_unique<CountingWorker>(*std::move(side));
  }

  // Lets all act once; returns the supervisor's event.
  SupervisorEvent Pump() {
    for (const auto& worker : workers_) {
      if (worker != nullptr) (void)worker->ServeOnce(Deadline::Now());
    }
    return side_->Next(Deadline::Now());
  }
  void PumpUntil(SupervisorEvent event) {
    while (Pump() != event) {
    }
  }
  WorkerSlot* slot(uint32_t worker) const {
    return side_->mapping()->At<WorkerSlot>(WorkerSlotOffset(*header_, worker));
  }
  WorkerOrder order_kind() const {
    return static_cast<WorkerOrder>(
        head_->order_kind.load(std::memory_order_relaxed));
  }
  // Until all have carried out this order, and the supervisor has seen that.
  void PumpUntilAll(WorkerOrder order) {
    const auto acknowledged = [&](uint32_t worker) {
      return slot(worker)->ack.load(std::memory_order_relaxed) ==
             head_->order.load(std::memory_order_relaxed);
    };
    while (order_kind() != order || !acknowledged(0) || !acknowledged(1)) {
      EXPECT_EQ(Pump(), SupervisorEvent::kTimedOut);
    }
    EXPECT_EQ(Pump(), SupervisorEvent::kTimedOut);
  }

  // What a client does before it waits for the acknowledgement.
  void TakeClientSlot(uint32_t pid) {
    client_ = std::make_unique<SideLocks>(
        SideLocks::On(side_->region().memory()).value());
    ASSERT_TRUE(client_->TryAcquire(kClientLockByte));
    header_->client_pid.store(pid, std::memory_order_relaxed);
  }
  void SayHello(AutoresetMode mode) {
    header_->autoreset_mode.store(static_cast<uint32_t>(mode),
                                  std::memory_order_relaxed);
    header_->attach_request.fetch_add(1, std::memory_order_relaxed);
  }
  void AdmitClient(AutoresetMode mode) {
    TakeClientSlot(1);
    SayHello(mode);
    PumpUntil(SupervisorEvent::kClientArrived);
    side_->AcknowledgeAttach(absl::OkStatus());
    PumpUntilAll(WorkerOrder::kGo);
  }
  void LeaveClientSlot() { client_.reset(); }
  // Sends an exchange; all do it.
  void Step(float action) {
    std::fill(side_->arrays().actions.begin(), side_->arrays().actions.end(),
              action);
    const uint64_t next =
        header_->frame_seq.load(std::memory_order_relaxed) + 1;
    header_->action_seq.store(next, std::memory_order_release);
    while (header_->frame_seq.load(std::memory_order_acquire) != next) {
      EXPECT_EQ(Pump(), SupervisorEvent::kTimedOut);
    }
  }
  float count(uint32_t env) const { return side_->arrays().obs[3 * env]; }

  std::unique_ptr<SupervisorSide> side_;
  LrbcHeader* header_ = nullptr;
  WorkersHeader* head_ = nullptr;
  std::vector<std::unique_ptr<CountingWorker>> workers_;
  std::unique_ptr<SideLocks> client_;
};

TEST_F(Orders, AScribbledCountAtAnAttachDropsThePendingExchange) {
  AdmitClient(AutoresetMode::kSameStep);
  Step(3);
  // A pause, so that no worker does the next exchange before the attach.
  side_->ShowPaused(true);
  PumpUntilAll(WorkerOrder::kHold);
  header_->action_seq.store(2, std::memory_order_release);
  slot(1)->done.store(77, std::memory_order_relaxed);
  LeaveClientSlot();
  TakeClientSlot(2);
  SayHello(AutoresetMode::kSameStep);
  PumpUntil(SupervisorEvent::kClientArrived);
  side_->AcknowledgeAttach(absl::OkStatus());
  EXPECT_EQ(header_->frame_seq.load(std::memory_order_relaxed), 2u);
  side_->ShowPaused(false);
  PumpUntilAll(WorkerOrder::kGo);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Pump(), SupervisorEvent::kTimedOut);
  EXPECT_EQ(count(0), 0);
  EXPECT_EQ(count(1), 0);
  Step(4);
  EXPECT_EQ(count(0), 1);
  EXPECT_EQ(count(1), 1);
}

TEST_F(Orders, NoExchangeIsDoneThatIsSentAfterAPause) {
  AdmitClient(AutoresetMode::kSameStep);
  side_->ShowPaused(true);
  EXPECT_EQ(order_kind(), WorkerOrder::kHold);
  header_->action_seq.store(1, std::memory_order_release);
  for (const auto& worker : workers_) {
    EXPECT_EQ(worker->ServeOnce(Deadline::Now()), WorkerEvent::kTimedOut);
  }
  EXPECT_EQ(count(0), 0);
  side_->ShowPaused(false);
  PumpUntilAll(WorkerOrder::kGo);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Pump(), SupervisorEvent::kTimedOut);
  EXPECT_EQ(count(0), 1);
}

TEST_F(Orders, RequestsWaitUntilTheWorkersGo) {
  AdmitClient(AutoresetMode::kSameStep);
  side_->ShowPaused(true);
  PumpUntilAll(WorkerOrder::kHold);
  side_->ShowPaused(false);
  ASSERT_EQ(order_kind(), WorkerOrder::kGo);  // no worker has it yet
  side_->WakeStepThread();
  EXPECT_EQ(side_->Next(Deadline::After(0.05)), SupervisorEvent::kTimedOut);
  PumpUntil(SupervisorEvent::kFrameWanted);
}

TEST_F(Orders, NoEndAfterAStopIsADeath) {
  side_->StopWorkers();
  for (auto& worker : workers_) {
    EXPECT_EQ(worker->ServeOnce(Deadline::After(20)), WorkerEvent::kStop);
    worker.reset();
  }
  // Longer than the time between two tests of the locks.
  EXPECT_EQ(side_->Next(Deadline::After(0.3)), SupervisorEvent::kTimedOut);
}

TEST_F(Orders, AnInputIsAnEventWhileItIsReadable) {
  std::array<int, 2> ends;
  ASSERT_EQ(pipe(ends.data()), 0);
  side_->WatchInput(ends[0]);
  EXPECT_EQ(Pump(), SupervisorEvent::kTimedOut);
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(side_->Next(Deadline::After(20)), SupervisorEvent::kInput);
  }
  char byte;
  ASSERT_EQ(read(ends[0], &byte, 1), 1);
  EXPECT_EQ(Pump(), SupervisorEvent::kTimedOut);
  close(ends[1]);
  EXPECT_EQ(side_->Next(Deadline::After(20)), SupervisorEvent::kInput);
  side_->WatchInput(-1);
  EXPECT_EQ(Pump(), SupervisorEvent::kTimedOut);
  close(ends[0]);
}

TEST_F(Orders, AnInputComesWhileAnOrderIsNotCarriedOut) {
  std::array<int, 2> ends;
  ASSERT_EQ(pipe(ends.data()), 0);
  side_->WatchInput(ends[0]);
  side_->MessageWorkers();
  EXPECT_EQ(side_->Next(Deadline::Now()), SupervisorEvent::kTimedOut);
  ASSERT_EQ(order_kind(), WorkerOrder::kHold);
  close(ends[1]);
  EXPECT_EQ(side_->Next(Deadline::After(20)), SupervisorEvent::kInput);
  // An input that stays readable holds up no order.
  SupervisorEvent event = SupervisorEvent::kInput;
  while (event != SupervisorEvent::kWorkersAnswered) {
    event = Pump();
    EXPECT_TRUE(event == SupervisorEvent::kInput ||
                event == SupervisorEvent::kTimedOut ||
                event == SupervisorEvent::kWorkersAnswered);
  }
  close(ends[0]);
}

TEST_F(Orders, NoOrderFollowsAStop) {
  TakeClientSlot(1);
  SayHello(AutoresetMode::kSameStep);
  PumpUntil(SupervisorEvent::kClientArrived);
  side_->StopWorkers();
  side_->AcknowledgeAttach(absl::OkStatus());
  EXPECT_EQ(order_kind(), WorkerOrder::kStop);
  for (auto& worker : workers_) {
    EXPECT_EQ(worker->ServeOnce(Deadline::After(20)), WorkerEvent::kStop);
  }
  EXPECT_EQ(Pump(), SupervisorEvent::kTimedOut);
  EXPECT_EQ(order_kind(), WorkerOrder::kStop);
}

TEST_F(Orders, ADepartureLeavesTheLabelsOfTheNextClient) {
  AdmitClient(AutoresetMode::kSameStep);
  LeaveClientSlot();
  // The supervisor alone, until it has seen that.
  while (order_kind() != WorkerOrder::kHold) {
    EXPECT_EQ(side_->Next(Deadline::Now()), SupervisorEvent::kTimedOut);
  }
  TakeClientSlot(77);
  PumpUntil(SupervisorEvent::kClientLeft);
  EXPECT_EQ(header_->client_pid.load(std::memory_order_relaxed), 77u);
  // Without a next client they are cleared.
  SayHello(AutoresetMode::kSameStep);
  PumpUntil(SupervisorEvent::kClientArrived);
  side_->AcknowledgeAttach(absl::OkStatus());
  LeaveClientSlot();
  PumpUntil(SupervisorEvent::kClientLeft);
  EXPECT_EQ(header_->client_pid.load(std::memory_order_relaxed), 0u);
}

TEST_F(Orders, ARefusedClientDoesNotHideADeparture) {
  AdmitClient(AutoresetMode::kSameStep);
  Step(4);
  EXPECT_EQ(count(1), 1);
  // Both, before the supervisor looks.
  LeaveClientSlot();
  SayHello(static_cast<AutoresetMode>(7));
  PumpUntil(SupervisorEvent::kClientLeft);
  EXPECT_EQ(count(0), 0);
  EXPECT_EQ(count(1), 0);
  EXPECT_EQ(header_->attach_ack.load(std::memory_order_relaxed),
            header_->attach_request.load(std::memory_order_relaxed));
  EXPECT_EQ(header_->exchange_status.load(std::memory_order_relaxed),
            static_cast<uint32_t>(ErrorCode::kUnsupported));
  EXPECT_EQ(side_->autoreset_mode(), AutoresetMode::kSameStep);
  AdmitClient(AutoresetMode::kNextStep);
  Step(5);
  EXPECT_EQ(count(1), 1);
}

TEST_F(Orders, AReplacementContinuesTheOrderToGo) {
  AdmitClient(AutoresetMode::kNextStep);
  workers_[1].reset();
  ASSERT_TRUE(side_->ReplaceWorker(1));
  workers_[1] = AttachWorker(1);
  EXPECT_EQ(workers_[1]->side().autoreset_mode(), AutoresetMode::kNextStep);
  EXPECT_TRUE(workers_[1]->side().restarted());
  Step(4);
  EXPECT_EQ(count(0), 1);
  EXPECT_EQ(count(1), 0);  // reset instead
}

TEST_F(Orders, AReplacementDoesNotGoByAnOrderThatIsNotWrittenYet) {
  AdmitClient(AutoresetMode::kNextStep);
  workers_[1].reset();
  ASSERT_TRUE(side_->ReplaceWorker(1));
  // The supervisor writes the next order's value.
  head_->order_kind.store(static_cast<uint32_t>(WorkerOrder::kHold),
                          std::memory_order_relaxed);
  head_->order_value.store(2, std::memory_order_relaxed);
  header_->action_seq.store(1, std::memory_order_release);
  workers_[1] = AttachWorker(1);
  EXPECT_EQ(workers_[1]->side().autoreset_mode(), AutoresetMode::kSameStep);
  EXPECT_EQ(workers_[1]->ServeOnce(Deadline::After(0.01)),
            WorkerEvent::kTimedOut);
  // It takes the exchange by the next order.
  head_->order_kind.store(static_cast<uint32_t>(WorkerOrder::kGo),
                          std::memory_order_release);
  head_->order.fetch_add(1, std::memory_order_release);
  EXPECT_EQ(workers_[1]->ServeOnce(Deadline::After(20)),
            WorkerEvent::kExchange);
  EXPECT_EQ(workers_[1]->side().autoreset_mode(), AutoresetMode::kDisabled);
}

}  // namespace
}  // namespace tandem
