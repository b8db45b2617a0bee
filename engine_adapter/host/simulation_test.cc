#include "engine_adapter/host/simulation.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "schema/layout/phase_word.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/session/engine_side.h"
#include "transport/step_times.h"

namespace tandem {
namespace {

using rpc::SimulationMode;

// One environment: observes its steps since the reset, has reward 1 for each
// step, and ends with the third.
class CountingEngine final : public Engine {
 public:
  const EngineSchema& schema() const override { return schema_; }
  absl::Status Reset(std::span<const ResetRequest> requests,
                     const ResetIo& io) override {
    seed_ = requests[0].seed;
    ++resets_;
    since_reset_ = 0;
    io.obs[0] = 0;
    return absl::OkStatus();
  }
  absl::Status Step(std::span<const uint32_t>, const StepIo& io) override {
    if (fails_) return absl::InternalError("fell over");
    ++steps_;
    action_ = io.actions[0];
    io.obs[0] = static_cast<float>(++since_reset_);
    io.rewards[0] = 1;
    io.terminateds[0] = since_reset_ == 3 ? 1 : 0;
    return absl::OkStatus();
  }
  double step_secs() const override { return step_secs_; }
  void AddField() {
    schema_.fields.push_back(
        {.role = FieldRole::kStatus, .type = FieldType::kUint8});
  }

  std::optional<uint64_t> seed_;
  int resets_ = 0;
  int steps_ = 0;
  int since_reset_ = 0;
  float action_ = 0;
  bool fails_ = false;
  double step_secs_ = 0.002;

 private:
  EngineSchema schema_ = {
      .task = "Counting", .num_envs = 1, .obs_size = 1, .act_size = 1};
};

// One iteration of the host's loop at a time, and a header-only client, which
// counts exchanges in the header itself.
class SimulationTest : public testing::Test {
 protected:
  void SetUp() override {
    alarm(60);
    absl::StatusOr<EngineSide> side = EngineSide::Create(
        UniqueRegionName("simulation"),
        {.num_envs = 1, .obs_size = 1, .act_size = 1, .task = "Counting"}, {});
    ASSERT_TRUE(side.ok()) << side.status();
    side_ = std::make_unique<EngineSide>(*std::move(side));
    ASSERT_TRUE(side_->Open().ok());
    header_ = side_->mapping()->header();
    runner_ = std::make_unique<ExchangeRunner>(&side_->arrays());
    runner_->BeginResetAll(std::nullopt);
    RunAll(runner_.get(), &engine_);
    ASSERT_TRUE(runner_->status().ok());
    simulation_ = std::make_unique<Simulation>(
        &engine_, side_.get(), runner_.get(), SimulationMode::FAST, [this] {
          RunAll(runner_.get(), &engine_);
          simulation_->EndReset(runner_->status());
        });
  }
  void TearDown() override { alarm(0); }

  void Send(ExchangeKind kind = ExchangeKind::kStep) {
    // relaxed: here and below, one thread plays both sides.
    header_->exchange_kind.store(static_cast<uint32_t>(kind),
                                 std::memory_order_relaxed);
    header_->action_seq.store(side_->frame_seq() + 1,
                              std::memory_order_relaxed);
  }
  // Returns whether the iteration did any work.
  bool Turn() {
    const EngineEvent event = side_->Poll();
    if (event == EngineEvent::kExchange) {
      if (!simulation_->Admits(side_->kind())) {
        side_->HoldExchange();
      } else {
        const ExchangeKind kind = side_->kind();
        runner_->Begin(kind, side_->autoreset_mode());
        RunAll(runner_.get(), &engine_);
        EXPECT_TRUE(runner_->status().ok());
        side_->Publish();
        simulation_->Served(kind);
        return true;
      }
    }
    failure_ = absl::OkStatus();
    if (!simulation_->BeginDueStep()) return false;
    RunAll(runner_.get(), &engine_);
    failure_ = runner_->status();
    simulation_->EndDueStep(failure_);
    return failure_.ok();
  }
  absl::Status Reset(uint64_t seed) {
    absl::Status result = absl::UnknownError("no result");
    simulation_->Reset(std::array<uint32_t, 1>{0}, seed,
                       [&](absl::Status status) { result = status; });
    return result;
  }
  uint64_t Answered() const { return side_->frame_seq(); }
  PhaseSince EnginePhase() const {
    return UnpackPhase(header_->engine_phase.load(std::memory_order_relaxed));
  }
  void SingleStep(uint32_t steps) {
    told_.reset();
    const absl::Status status = simulation_->SingleStep(
        steps, [this](absl::StatusOr<uint32_t> done) { told_ = done; });
    ASSERT_TRUE(status.ok()) << status;
  }

  CountingEngine engine_;
  std::unique_ptr<EngineSide> side_;
  LrbcHeader* header_ = nullptr;
  std::unique_ptr<ExchangeRunner> runner_;
  std::unique_ptr<Simulation> simulation_;
  absl::Status failure_;
  std::optional<absl::StatusOr<uint32_t>> told_;
};

TEST_F(SimulationTest, StepsOnlyByExchangesAtFirst) {
  for (int i = 1; i <= 5; ++i) {
    Send();
    EXPECT_TRUE(Turn());
    EXPECT_FALSE(Turn());
    EXPECT_EQ(engine_.steps_, i);
  }
  EXPECT_EQ(simulation_->DueNs(), std::nullopt);
  EXPECT_EQ(simulation_->steps(), 5u);
}

TEST_F(SimulationTest, WhilePausedExchangesWait) {
  simulation_->SetPaused(true);
  Send();
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(Turn());
  EXPECT_EQ(Answered(), 0u);
  EXPECT_EQ(EnginePhase().phase, Phase::kPaused);
  simulation_->SetPaused(false);
  EXPECT_TRUE(Turn());
  EXPECT_EQ(Answered(), 1u);
  EXPECT_EQ(engine_.steps_, 1);
}

TEST_F(SimulationTest, APauseDoesNotCountAsStepTimeOfADroppedExchange) {
  simulation_->SetPaused(true);
  Send();
  EXPECT_FALSE(Turn());
  const int64_t held_at_ns = MonotonicNanos();
  while (MonotonicNanos() - held_at_ns < 10'000'000) {
  }
  const int64_t dropped_at_ns = MonotonicNanos();
  // relaxed: as above. Another client attaches.
  header_->attach_request.store(1, std::memory_order_relaxed);
  ASSERT_EQ(side_->Poll(), EngineEvent::kClientArrived);
  EXPECT_EQ(Answered(), 1u);
  EXPECT_LE(SnapshotOf(header_->engine_step_times).total_ns,
            static_cast<uint64_t>(MonotonicNanos() - dropped_at_ns));
}

TEST_F(SimulationTest, WhilePausedResetsAreServed) {
  simulation_->SetPaused(true);
  side_->arrays().resets[0] = kResetRequested;
  Send(ExchangeKind::kResetOnly);
  EXPECT_TRUE(Turn());
  EXPECT_EQ(engine_.resets_, 2);
}

TEST_F(SimulationTest, SingleStepsServeTheExchangeThatWaitsThenGoOnWithout) {
  simulation_->SetPaused(true);
  side_->arrays().actions[0] = 0.5F;
  Send();
  EXPECT_FALSE(Turn());
  SingleStep(2);
  EXPECT_EQ(simulation_->DueNs(), 0);
  for (int turns = 0; turns < 5; ++turns) (void)Turn();
  EXPECT_EQ(engine_.steps_, 2);
  EXPECT_EQ(Answered(), 1u);
  EXPECT_EQ(engine_.action_, 0.5F);
  ASSERT_TRUE(told_.has_value() && told_->ok());
  EXPECT_EQ(**told_, 2u);
  EXPECT_EQ(simulation_->DueNs(), std::nullopt);
}

TEST_F(SimulationTest, NextExchangeReportsAccumulatedSteps) {
  simulation_->SetPaused(true);
  SingleStep(4);  // the third step ends the episode
  for (int turns = 0; turns < 6; ++turns) (void)Turn();
  EXPECT_EQ(engine_.steps_, 4);
  const StepArrays& arrays = side_->arrays();
  EXPECT_EQ(arrays.obs[0], 0);  // unchanged until the client's next exchange
  simulation_->SetPaused(false);
  Send();
  EXPECT_TRUE(Turn());
  EXPECT_EQ(arrays.obs[0], 2);
  EXPECT_EQ(arrays.rewards[0], 5);
  EXPECT_EQ(arrays.dones[0], 1);
  EXPECT_EQ(arrays.terminateds[0], 1);
  EXPECT_EQ(arrays.final_obs[0], 3);
  Send();
  EXPECT_TRUE(Turn());  // the third step since then
  EXPECT_EQ(arrays.rewards[0], 1);
  EXPECT_EQ(arrays.dones[0], 1);
  Send();
  EXPECT_TRUE(Turn());
  EXPECT_EQ(arrays.dones[0], 0);
}

TEST_F(SimulationTest, ResetClearsAccumulatedSteps) {
  simulation_->SetPaused(true);
  for (const bool by_command : {true, false}) {
    SingleStep(3);
    for (int turns = 0; turns < 5; ++turns) (void)Turn();
    if (by_command) {
      ASSERT_TRUE(Reset(7).ok());
      EXPECT_EQ(engine_.seed_, 7u);
    } else {
      side_->arrays().resets[0] = kResetRequested;
      Send(ExchangeKind::kResetOnly);
      EXPECT_TRUE(Turn());
    }
    simulation_->SetPaused(false);
    Send();
    EXPECT_TRUE(Turn());
    EXPECT_EQ(side_->arrays().rewards[0], 1);
    EXPECT_EQ(side_->arrays().dones[0], 0);
    EXPECT_EQ(side_->arrays().obs[0], 1);
    simulation_->SetPaused(true);
  }
}

TEST_F(SimulationTest, AnEngineWithFieldsStepsAndResetsOnlyByExchanges) {
  engine_.AddField();
  EXPECT_EQ(CodeOf(simulation_->SetMode(SimulationMode::REALTIME, 1)),
            ErrorCode::kUnsupported);
  simulation_->SetPaused(true);
  EXPECT_EQ(CodeOf(simulation_->SingleStep(
                1, [](const absl::StatusOr<uint32_t>&) {})),
            ErrorCode::kUnsupported);
  EXPECT_EQ(CodeOf(Reset(7)), ErrorCode::kUnsupported);
  EXPECT_EQ(engine_.resets_, 1);
  Send();
  EXPECT_FALSE(Turn());
  simulation_->SetPaused(false);
  EXPECT_TRUE(Turn());
  EXPECT_EQ(engine_.steps_, 1);
}

TEST_F(SimulationTest, CountsEachChangeOnce) {
  uint64_t changes = simulation_->changes();
  EXPECT_FALSE(Turn());
  EXPECT_EQ(simulation_->changes(), changes);
  for (const ExchangeKind kind :
       {ExchangeKind::kStep, ExchangeKind::kResetOnly}) {
    Send(kind);
    EXPECT_TRUE(Turn());
    EXPECT_EQ(simulation_->changes(), ++changes);
  }
  simulation_->SetPaused(true);
  EXPECT_EQ(simulation_->changes(), changes);
  SingleStep(1);
  EXPECT_TRUE(Turn());
  EXPECT_EQ(simulation_->changes(), ++changes);
  ASSERT_TRUE(Reset(7).ok());
  EXPECT_EQ(simulation_->changes(), ++changes);
  simulation_->NoteChange();
  EXPECT_EQ(simulation_->changes(), ++changes);
  simulation_->Restart();
  EXPECT_EQ(simulation_->changes(), ++changes);
}

TEST_F(SimulationTest, InRealTimeStepsComeByTheClock) {
  const int64_t begin_ns = MonotonicNanos();
  ASSERT_TRUE(simulation_->SetMode(SimulationMode::REALTIME, 1).ok());
  // relaxed: as above.
  EXPECT_EQ(header_->mode.load(std::memory_order_relaxed), 1);
  while (engine_.steps_ < 10) {
    if (Turn()) {
      // No step comes before its time.
      EXPECT_GE(MonotonicNanos() - begin_ns, engine_.steps_ * 1'999'000);
    }
  }
  Send();
  while (Answered() == 0) (void)Turn();
  EXPECT_EQ(side_->arrays().rewards[0], static_cast<float>(engine_.steps_));
  ASSERT_TRUE(simulation_->SetMode(SimulationMode::FAST, 1).ok());
  EXPECT_EQ(header_->mode.load(std::memory_order_relaxed), 0);
  const int steps = engine_.steps_;
  Send();
  EXPECT_TRUE(Turn());
  EXPECT_EQ(engine_.steps_, steps + 1);
}

TEST_F(SimulationTest, TheFactorChangesTheTimeBetweenSteps) {
  // Of a step of 2 ms.
  for (const auto& [factor, period_ns] :
       {std::pair<double, int64_t>{0.1, 20'000'000}, {10, 200'000}}) {
    const int64_t before_ns = MonotonicNanos();
    ASSERT_TRUE(simulation_->SetMode(SimulationMode::REALTIME, factor).ok());
    EXPECT_EQ(simulation_->realtime_factor(), factor);
    EXPECT_GE(*simulation_->DueNs(), before_ns + period_ns);
    EXPECT_LE(*simulation_->DueNs(), MonotonicNanos() + period_ns);
    const int64_t due_ns = *simulation_->DueNs();
    // The same again changes nothing.
    ASSERT_TRUE(simulation_->SetMode(SimulationMode::REALTIME, factor).ok());
    EXPECT_EQ(*simulation_->DueNs(), due_ns);
  }
  ASSERT_TRUE(simulation_->SetMode(SimulationMode::FAST, 7).ok());
  EXPECT_EQ(simulation_->realtime_factor(), 1);
  ASSERT_TRUE(simulation_->SetMode(SimulationMode::REALTIME, 7).ok());
  simulation_->Restart();
  EXPECT_EQ(simulation_->realtime_factor(), 1);
}

TEST_F(SimulationTest, SkipsMissedRealTimeSteps) {
  ASSERT_TRUE(simulation_->SetMode(SimulationMode::REALTIME, 1).ok());
  usleep(400'000);  // 200 steps; the engine makes up for 100 ms of them
  const int64_t before_ns = MonotonicNanos();
  EXPECT_TRUE(Turn());
  EXPECT_GE(*simulation_->DueNs(), before_ns - 100'000'000);
}

TEST_F(SimulationTest, LeavingRealTimeServesTheExchangeThatWaits) {
  engine_.step_secs_ = 3600;
  Simulation slow(&engine_, side_.get(), runner_.get(),
                  SimulationMode::REALTIME, [] {});
  Send();
  ASSERT_EQ(side_->Poll(), EngineEvent::kExchange);
  ASSERT_FALSE(slow.Admits(ExchangeKind::kStep));
  side_->HoldExchange();
  EXPECT_EQ(side_->Poll(), EngineEvent::kTimedOut);
  ASSERT_TRUE(slow.SetMode(SimulationMode::DETERMINISTIC, 1).ok());
  EXPECT_EQ(side_->Poll(), EngineEvent::kExchange);
  EXPECT_TRUE(slow.Admits(ExchangeKind::kStep));
  side_->Publish();
}

TEST_F(SimulationTest, PausedRealTimeShowsInThePhaseOfAHeldExchange) {
  engine_.step_secs_ = 3600;
  Simulation slow(&engine_, side_.get(), runner_.get(),
                  SimulationMode::REALTIME, [] {});
  Send();
  ASSERT_EQ(side_->Poll(), EngineEvent::kExchange);
  side_->HoldExchange();
  EXPECT_NE(EnginePhase().phase, Phase::kPaused);
  slow.SetPaused(true);
  EXPECT_EQ(EnginePhase().phase, Phase::kPaused);
}

TEST_F(SimulationTest, EachClientStartsFromInitialState) {
  ASSERT_TRUE(simulation_->SetMode(SimulationMode::REALTIME, 1).ok());
  simulation_->SetPaused(true);
  SingleStep(1'000'000);
  simulation_->Restart();
  EXPECT_EQ(simulation_->mode(), SimulationMode::FAST);
  EXPECT_FALSE(simulation_->paused());
  EXPECT_EQ(**told_, 0u);
}

TEST_F(SimulationTest, PausingAgainEndsSingleSteps) {
  simulation_->SetPaused(true);
  SingleStep(1'000'000'000);
  EXPECT_TRUE(Turn());
  EXPECT_TRUE(Turn());
  simulation_->SetPaused(true);
  ASSERT_TRUE(told_.has_value() && told_->ok());
  EXPECT_EQ(**told_, 2u);
  EXPECT_EQ(simulation_->DueNs(), std::nullopt);
  Send();
  EXPECT_FALSE(Turn());
  EXPECT_FALSE(Turn());
  EXPECT_EQ(engine_.steps_, 2);
  EXPECT_TRUE(simulation_->paused());
  EXPECT_EQ(EnginePhase().phase, Phase::kPaused);
  SingleStep(1);  // executes the held exchange
  EXPECT_FALSE(Turn());
  EXPECT_TRUE(Turn());
  EXPECT_EQ(Answered(), 1u);
  EXPECT_EQ(**told_, 1u);
}

TEST_F(SimulationTest, RefusesInvalidRequests) {
  const auto ignore = [](const absl::StatusOr<uint32_t>&) {};
  EXPECT_EQ(CodeOf(simulation_->SingleStep(1, ignore)),
            ErrorCode::kInvalidArgument);
  simulation_->SetPaused(true);
  SingleStep(2);
  const absl::Status second = simulation_->SingleStep(1, ignore);
  EXPECT_EQ(CodeOf(second), ErrorCode::kInvalidArgument);
  EXPECT_NE(second.message().find("pause()"), absl::string_view::npos);
  engine_.step_secs_ = 0;
  EXPECT_EQ(CodeOf(simulation_->SetMode(SimulationMode::REALTIME, 1)),
            ErrorCode::kUnsupported);
}

TEST_F(SimulationTest, AStepThatFailsEndsSingleSteps) {
  engine_.fails_ = true;
  simulation_->SetPaused(true);
  SingleStep(3);
  EXPECT_FALSE(Turn());
  EXPECT_EQ(failure_.message(), "fell over");
  ASSERT_TRUE(told_.has_value());
  EXPECT_EQ(told_->status().message(), "fell over");
  EXPECT_FALSE(Turn());
  EXPECT_TRUE(failure_.ok());
}

}  // namespace
}  // namespace tandem
