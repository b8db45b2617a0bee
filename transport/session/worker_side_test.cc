// Workers, their supervisor and a client in one process, a thread each.
#include "transport/worker_side.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/error.h"
#include "schema/layout/lrbc.h"
#include "schema/layout/phase_word.h"
#include "schema/layout/worker_slot.h"
#include "transport/client_side.h"
#include "transport/memory/region_plan.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/session/engine_side.h"
#include "transport/session/supervisor_side.h"
#include "transport/session/testing/echo_engine.h"
#include "transport/session/testing/worker_rig.h"
#include "transport/session/testing/workers_fixture.h"
#include "transport/session/worker_error.h"

namespace tandem {
namespace {

using Workers = WorkersTest;

TEST_F(Workers, EachDoesItsRowsOnceInEachExchange) {
  ClientSide client = Begin(WorkerSpec(7, 3));
  ASSERT_EQ(client.workers().size(), 3u);
  EXPECT_EQ(client.workers()[1].first_env, 3u);
  constexpr int kSteps = 900;  // no action is kRaise
  for (int i = 1; i <= kSteps; ++i) {
    const float x = static_cast<float>(i);
    ASSERT_EQ(StepAll(client, -x), ErrorCode::kOk);
    ExpectRows(client, x, -x);
    ASSERT_FALSE(HasFailure()) << "in step " << i;
  }
  EXPECT_EQ(client.arrays().obs[2], 1);          // of the first worker
  EXPECT_EQ(client.arrays().obs[3 * 6 + 2], 3);  // of the last
  // The supervisor, which publishes for a worker that was preempted at the
  // wrong time, records no time.
  const uint64_t recorded = client.Stats().engine_steps.count();
  EXPECT_LE(recorded, static_cast<uint64_t>(kSteps));
  EXPECT_GT(recorded, static_cast<uint64_t>(kSteps / 2));
}

TEST_F(Workers, OneWorkerIsEnough) {
  ClientSide client = Begin(WorkerSpec(2, 1));
  EXPECT_EQ(StepAll(client, 5), ErrorCode::kOk);
  ExpectRows(client, 1, 5);
}

TEST_F(Workers, ResetsAreOfTheFlaggedEnvironmentsOnly) {
  ClientSide client = Begin(WorkerSpec(4, 2));
  ASSERT_EQ(StepAll(client, 5), ErrorCode::kOk);
  ASSERT_EQ(client.SendReset(std::vector<int64_t>{1, 2}, {}), ErrorCode::kOk);
  ASSERT_EQ(client.Recv(Deadline::After(20)), ErrorCode::kOk);
  const std::span<float> obs = client.arrays().obs;
  EXPECT_EQ(obs[0], 1);
  EXPECT_EQ(obs[3], 0);
  EXPECT_EQ(obs[6], 0);
  EXPECT_EQ(obs[9], 1);
  for (const uint8_t flag : client.arrays().resets) EXPECT_EQ(flag, 0);
  ASSERT_EQ(StepAll(client, 6), ErrorCode::kOk);
  EXPECT_EQ(obs[0], 2);
  EXPECT_EQ(obs[3], 1);
}

TEST_F(Workers, ASubsetStepsItsEnvironmentsOnly) {
  ClientSide client = Begin(WorkerSpec(4, 2));
  ASSERT_EQ(client.Send(std::vector<float>{7, 8}, std::vector<int64_t>{3, 0}),
            ErrorCode::kOk);
  ASSERT_EQ(client.Recv(Deadline::After(20)), ErrorCode::kOk);
  const std::span<float> obs = client.arrays().obs;
  EXPECT_EQ(obs[0], 1);
  EXPECT_EQ(obs[1], 8);
  EXPECT_EQ(obs[3], 0);
  EXPECT_EQ(obs[6], 0);
  EXPECT_EQ(obs[10], 7);
}

TEST_F(Workers, EachClientFindsFreshEnvironments) {
  rig_.emplace(name_, WorkerSpec(5, 2));
  for (int session = 1; session <= 5; ++session) {
    ClientSide client = AttachOrFail(name_);
    ExpectRows(client, 0, 0);
    ASSERT_EQ(StepAll(client, 3), ErrorCode::kOk);
    ASSERT_EQ(client.Send(std::vector<float>(5, 4)), ErrorCode::kOk);
    // It leaves, or reconnects, with an exchange pending.
    if (session % 2 == 0) {
      ASSERT_TRUE(client.Reconnect(20).ok());
      ExpectRows(client, 0, 0);
      ASSERT_EQ(StepAll(client, 5), ErrorCode::kOk);
      ExpectRows(client, 1, 5);
    }
  }
  EXPECT_EQ(rig_->arrivals(), 7);
}

TEST_F(Workers, AClientThatLeavesIsNoticed) {
  rig_.emplace(name_, WorkerSpec(2, 2));
  {
    ClientSide client = AttachOrFail(name_);
    ASSERT_EQ(StepAll(client, 1), ErrorCode::kOk);
  }
  AwaitTrue([&] { return rig_->departures() == 1; });
}

TEST_F(Workers, AnInvalidCountIsAnErrorAndAReconnectGoesOn) {
  ClientSide client = Begin(WorkerSpec(3, 3));
  for (int i = 0; i < 3; ++i) ASSERT_EQ(StepAll(client, 1), ErrorCode::kOk);
  // A lower count: the election of the next number is over already.
  // relaxed: as a foreign program would.
  client.mapping()->header()->action_seq.store(1, std::memory_order_relaxed);
  AwaitTrue([&] { return rig_->broken() == 1; });
  EXPECT_EQ(client.Recv(Deadline::Now()), ErrorCode::kNoStepPending);
  ASSERT_TRUE(client.Reconnect(20).ok());
  for (int i = 1; i <= 3; ++i) {
    ASSERT_EQ(StepAll(client, 2), ErrorCode::kOk);
    ExpectRows(client, static_cast<float>(i), 2);
  }
}

TEST_F(Workers, ScribbledWordsOfWorkersEndWithTheSession) {
  ClientSide client = Begin(WorkerSpec(2, 2));
  ASSERT_EQ(StepAll(client, 1), ErrorCode::kOk);
  const LrbcHeader& plan = client.plan();
  auto* const head = client.mapping()->At<WorkersHeader>(plan.workers_offset);
  auto* const slot =
      client.mapping()->At<WorkerSlot>(WorkerSlotOffset(plan, 1));
  // relaxed: as a foreign program would, here and below.
  slot->done.store(77, std::memory_order_relaxed);
  head->publisher.store(~uint64_t{0}, std::memory_order_relaxed);
  ASSERT_EQ(StepAll(client, 2), ErrorCode::kOk);  // each stores its own count
  slot->done.store(77, std::memory_order_relaxed);
  ASSERT_TRUE(client.Reconnect(20).ok());
  ExpectRows(client, 0, 0);
  ASSERT_EQ(StepAll(client, 3), ErrorCode::kOk);
  ExpectRows(client, 1, 3);
}

TEST_F(Workers, AFailureInWhichAPredecessorDiedIsForgotten) {
  ClientSide client = Begin(WorkerSpec(2, 2));
  auto* const slot =
      client.mapping()->At<WorkerSlot>(WorkerSlotOffset(client.plan(), 1));
  // relaxed: as of a predecessor that died before it stored the number, here
  // and below.
  slot->failed_exchange.store(slot->done.load(std::memory_order_relaxed) + 1,
                              std::memory_order_relaxed);
  EXPECT_EQ(StepAll(client, 1), ErrorCode::kOk);
  slot->failed_lane.store(slot->lane_done.load(std::memory_order_relaxed) + 1,
                          std::memory_order_relaxed);
  std::vector<uint32_t> ready = {0, 1};
  ASSERT_EQ(client.lanes().Send(ready, client.arrays().actions),
            ErrorCode::kOk);
  EXPECT_EQ(client.lanes().Recv(2, Deadline::After(20), &ready),
            ErrorCode::kOk);
}

TEST_F(Workers, AnExceptionIsAnErrorOfItsExchangeOnly) {
  ClientSide client = Begin(WorkerSpec(4, 2));
  EXPECT_EQ(client.Step(std::vector<float>{1, 2, kRaise, 4}, 20),
            ErrorCode::kEnvFailed);
  const std::string text = Explained(client, ErrorCode::kEnvFailed);
  EXPECT_TRUE(absl::StrContains(text, "environment 2 of worker 1")) << text;
  const std::optional<ClientSide::Failure> failure = client.LastFailure();
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->worker, 1);
  EXPECT_EQ(failure->env, 2);
  EXPECT_TRUE(absl::StrContains(text, "Traceback\n  line\nValueError: env 2"))
      << text;
  // The header has the exception itself, for other clients.
  const std::string line(client.mapping()->header()->error_text);
  EXPECT_EQ(line, "environment 2: ValueError: env 2");
  const std::span<float> obs = client.arrays().obs;
  EXPECT_EQ(obs[0], 1);
  EXPECT_EQ(obs[10], 4);  // the other environment of the same worker
  EXPECT_EQ(StepAll(client, 5), ErrorCode::kOk);
  EXPECT_EQ(client.Step(std::vector<float>{kRaise, 2, kRaise, kRaise}, 20),
            ErrorCode::kEnvFailed);
  EXPECT_TRUE(absl::StrContains(
      std::string(client.mapping()->header()->error_text), "1 other worker"));
}

TEST_F(Workers, ALongErrorTextKeepsItsEnd) {
  WorkerSlot slot = {};
  std::string text(5000, 'x');
  for (size_t i = 0; i < 2000; ++i) text += "\u00fc";
  StoreWorkerError(3, absl::StrCat(text, "\nKeyError: 50\n\n"), &slot);
  const WorkerError error = WorkerErrorOf(slot);
  EXPECT_EQ(error.env, 3u);
  EXPECT_EQ(error.last_line, "KeyError: 50");
  EXPECT_LE(error.text.size(), sizeof(slot.error_text));
  EXPECT_EQ(error.text.substr(0, 2), "\u00fc");
}

TEST_F(Workers, TheSupervisorSpreadsTheFirstSeed) {
  absl::StatusOr<SupervisorSide> side =
      SupervisorSide::Create(name_, WorkerSpec(2, 2), {});
  ASSERT_TRUE(side.ok()) << side.status();
  std::vector<std::unique_ptr<CountingWorker>> workers;
  for (uint32_t worker = 0; worker < 2; ++worker) {
    absl::StatusOr<WorkerSide> mine =
        WorkerSide::Attach(side->region().memory().handle(), worker, {});
    ASSERT_TRUE(mine.ok()) << mine.status();
    workers.push_back(std::make_unique<CountingWorker>(*std::move(mine)));
  }
  side->ResetWorkers(40);
  EXPECT_EQ(side->Next(Deadline::Now()), SupervisorEvent::kTimedOut);
  for (const auto& worker : workers) {
    EXPECT_FALSE(worker->side().restarted());
    EXPECT_EQ(worker->ServeOnce(Deadline::After(20)), WorkerEvent::kReset);
    EXPECT_EQ(worker->seeds().back(), 40u);
  }
  EXPECT_EQ(side->Next(Deadline::After(20)), SupervisorEvent::kWorkersReady);
  EXPECT_TRUE(side->Open().ok());
  EXPECT_EQ(workers[0]->ServeOnce(Deadline::After(0.001)),
            WorkerEvent::kTimedOut);  // it has taken the order to go
}

TEST_F(Workers, APauseHoldsExchanges) {
  ClientSide client = Begin(WorkerSpec(2, 2));
  rig_->OnSupervisor([](SupervisorSide& side) { side.ShowPaused(true); });
  AwaitHeldWorkers(client);
  ASSERT_EQ(client.Send(std::vector<float>{1, 2}), ErrorCode::kOk);
  EXPECT_EQ(client.Recv(Deadline::After(0.05)), ErrorCode::kStepTimeout);
  rig_->OnSupervisor([](SupervisorSide& side) { side.ShowPaused(false); });
  EXPECT_EQ(client.Recv(Deadline::After(20)), ErrorCode::kOk);
  EXPECT_EQ(client.arrays().obs[4], 2);
}

TEST_F(Workers, AMessageComesBetweenExchanges) {
  ClientSide client = Begin(WorkerSpec(2, 2));
  for (int i = 1; i <= 20; ++i) {
    rig_->OnSupervisor([](SupervisorSide& side) { side.MessageWorkers(); });
    ASSERT_EQ(StepAll(client, 1), ErrorCode::kOk);
    ExpectRows(client, static_cast<float>(i), 1);
  }
  AwaitTrue([&] { return rig_->answers() >= 1; });
}

TEST_F(Workers, ADeathEndsTheRegionWithItsText) {
  ClientSide client = Begin(WorkerSpec(4, 2));
  ASSERT_EQ(StepAll(client, 1), ErrorCode::kOk);
  EXPECT_EQ(client.Step(std::vector<float>{1, 1, 1, kDie}, 20),
            ErrorCode::kPeerGone);
  const std::string text = Explained(client, ErrorCode::kPeerGone);
  EXPECT_TRUE(absl::StrContains(text, "worker 1 (pid ")) << text;
  EXPECT_TRUE(absl::StrContains(text, "environments 2 to 3")) << text;
  EXPECT_TRUE(absl::StrContains(text, "died")) << text;
}

TEST_F(Workers, AReplacementResetsItsRowsAndCompletesTheExchange) {
  ClientSide client = Begin(WorkerSpec(4, 2), {.restarts = true});
  for (int round = 1; round <= 3; ++round) {
    ASSERT_EQ(StepAll(client, 1), ErrorCode::kOk);
    ASSERT_EQ(client.Send(std::vector<float>{2, 2, kDie, 2}), ErrorCode::kOk);
    ASSERT_EQ(client.Recv(Deadline::After(20)), ErrorCode::kOk);
    const std::span<float> obs = client.arrays().obs;
    EXPECT_EQ(obs[0], 2 * round);
    EXPECT_EQ(obs[6], 0);
    EXPECT_EQ(obs[9], 0);
    EXPECT_EQ(rig_->deaths(), round);
  }
  ASSERT_EQ(StepAll(client, 3), ErrorCode::kOk);
  EXPECT_EQ(client.arrays().obs[6], 1);
}

TEST_F(Workers, ATimeoutNamesTheWorkersThatAreNotDone) {
  ClientSide client = Begin(WorkerSpec(4, 2));
  rig_->OnSupervisor([](SupervisorSide& side) { side.ShowPaused(true); });
  AwaitHeldWorkers(client);
  ASSERT_EQ(client.Send(std::vector<float>(4, 1)), ErrorCode::kOk);
  ASSERT_EQ(client.Recv(Deadline::After(0.05)), ErrorCode::kStepTimeout);
  const std::string text = Explained(client, ErrorCode::kStepTimeout);
  EXPECT_TRUE(absl::StrContains(text, "of 2 workers are done")) << text;
  EXPECT_TRUE(absl::StrContains(text, "not done: worker ")) << text;
  EXPECT_EQ(client.AwaitedWorkers(), std::vector<uint32_t>({0, 1}));
  rig_->OnSupervisor([](SupervisorSide& side) { side.ShowPaused(false); });
  EXPECT_EQ(client.Recv(Deadline::After(20)), ErrorCode::kOk);
}

TEST_F(Workers, ASlotHasOneWorker) {
  absl::StatusOr<SupervisorSide> side =
      SupervisorSide::Create(name_, WorkerSpec(2, 2), {});
  ASSERT_TRUE(side.ok()) << side.status();
  const int fd = side->region().memory().handle();
  auto first =
      std::make_unique<WorkerSide>(WorkerSide::Attach(fd, 0, {}).value());
  EXPECT_EQ(CodeOf(WorkerSide::Attach(fd, 0, {}).status()),
            ErrorCode::kAlreadyAttached);
  EXPECT_EQ(CodeOf(WorkerSide::Attach(fd, 2, {}).status()),
            ErrorCode::kInvalidArgument);
  EXPECT_FALSE(side->ReplaceWorker(0));
  first.reset();
  EXPECT_TRUE(side->ReplaceWorker(0));
  EXPECT_TRUE(WorkerSide::Attach(fd, 0, {}).ok());
  absl::StatusOr<EngineSide> plain =
      EngineSide::Create(UniqueRegionName("workers"), EchoSpec(), {});
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(CodeOf(WorkerSide::Attach(plain->region().memory().handle(), 0, {})
                       .status()),
            ErrorCode::kUnsupported);
}

TEST_F(Workers, AWorkerSeesThatItsSupervisorIsGone) {
  auto side = std::make_unique<SupervisorSide>(
      SupervisorSide::Create(name_, WorkerSpec(1, 1), {}).value());
  WorkerSide worker =
      WorkerSide::Attach(side->region().memory().handle(), 0, {}).value();
  EXPECT_EQ(worker.Next(Deadline::After(0.01)), WorkerEvent::kTimedOut);
  side.reset();
  EXPECT_EQ(worker.Next(Deadline::After(20)), WorkerEvent::kSupervisorGone);
  EXPECT_EQ(worker.Next(Deadline::Now()), WorkerEvent::kSupervisorGone);
}

// A region whose workers' words the test writes itself.
class TakeOver : public testing::Test {
 protected:
  static constexpr uint32_t kWorkers = 3;

  void SetUp() override {
    absl::StatusOr<SupervisorSide> side = SupervisorSide::Create(
        UniqueRegionName("take-over"), WorkerSpec(kWorkers, kWorkers), {});
    ASSERT_TRUE(side.ok()) << side.status();
    side_ = std::make_unique<SupervisorSide>(*std::move(side));
    header_ = side_->mapping()->header();
    head_ = side_->mapping()->At<WorkersHeader>(header_->workers_offset);
    slots_ = side_->mapping()->At<WorkerSlot>(WorkerSlotOffset(*header_, 0));
    // relaxed: one thread, here and below.
    header_->exchange_kind.store(1, std::memory_order_relaxed);
  }
  void SetDone(uint32_t workers) {
    for (uint32_t worker = 0; worker < workers; ++worker) {
      slots_[worker].done.store(1, std::memory_order_relaxed);
    }
  }
  bool IsPublished() {
    return header_->frame_seq.load(std::memory_order_relaxed) == 1;
  }
  void AwaitPublished() {
    AwaitTrue([this] {
      EXPECT_EQ(side_->Next(Deadline::After(0.001)),
                SupervisorEvent::kTimedOut);
      return IsPublished();
    });
    EXPECT_EQ(header_->exchange_kind.load(std::memory_order_relaxed), 0u);
  }
  // Lets the supervisor look several times.
  void ExpectNotPublished() {
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(side_->Next(Deadline::After(0.01)), SupervisorEvent::kTimedOut);
      EXPECT_FALSE(IsPublished());
    }
    EXPECT_EQ(header_->exchange_kind.load(std::memory_order_relaxed), 1u);
  }

  std::unique_ptr<SupervisorSide> side_;
  LrbcHeader* header_ = nullptr;
  WorkersHeader* head_ = nullptr;
  WorkerSlot* slots_ = nullptr;
};

TEST_F(TakeOver, WaitsForEachWorker) {
  SetDone(kWorkers - 1);
  ExpectNotPublished();
}

TEST_F(TakeOver, PublishesWhatNoWorkerPublishes) {
  SetDone(kWorkers);
  AwaitPublished();
  EXPECT_EQ(head_->publisher.load(std::memory_order_relaxed),
            PackPublisher(1, kSupervisorIndex));
}

TEST_F(TakeOver, PublishesForADeadWinner) {
  SetDone(kWorkers);
  head_->publisher.store(PackPublisher(1, 2), std::memory_order_relaxed);
  AwaitPublished();
}

TEST_F(TakeOver, LeavesTheExchangeToALiveWinner) {
  const WorkerSide winner =
      WorkerSide::Attach(side_->region().memory().handle(), 2, {}).value();
  SetDone(kWorkers);
  head_->publisher.store(PackPublisher(1, 2), std::memory_order_relaxed);
  ExpectNotPublished();
}

TEST_F(TakeOver, APublishedFailureHasItsText) {
  StoreWorkerError(1, "Traceback\nOSError: no\n", &slots_[1]);
  slots_[1].failed_exchange.store(1, std::memory_order_relaxed);
  header_->exchange_kind.store(0, std::memory_order_relaxed);
  SetDone(kWorkers);
  AwaitPublished();
  EXPECT_EQ(header_->exchange_status.load(std::memory_order_relaxed),
            static_cast<uint32_t>(ErrorCode::kEnvFailed));
  EXPECT_STREQ(header_->error_text, "environment 1: OSError: no");
}

TEST_F(TakeOver, AnUnknownKindIsUnsupported) {
  header_->exchange_kind.store(9, std::memory_order_relaxed);
  SetDone(kWorkers);
  AwaitPublished();
  EXPECT_EQ(header_->exchange_status.load(std::memory_order_relaxed),
            static_cast<uint32_t>(ErrorCode::kUnsupported));
}

}  // namespace
}  // namespace tandem
