// The calls to an engine for each kind of exchange, with arrays, no region.
#include "engine_adapter/host/exchange_runner.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "engine_adapter/engine.h"
#include "schema/layout/field.h"
#include "schema/layout/lrbc.h"
#include "transport/step_arrays.h"

namespace tandem {
namespace {

constexpr uint32_t kEnvs = 3;

// Observes 100 times its resets plus the steps since; ends after two steps.
class FakeEngine final : public Engine {
 public:
  const EngineSchema& schema() const override { return schema_; }

  absl::Status Reset(std::span<const ResetRequest> requests,
                     const ResetIo& io) override {
    if (throws) throw std::runtime_error("no reset today");
    if (!fails_with.ok()) return fails_with;
    for (const ResetRequest& request : requests) {
      seeds.emplace_back(request.env, request.seed);
      ++resets[request.env];
      steps[request.env] = 0;
      io.obs[request.env] = Observation(request.env);
      io.infos[request.env] = 0.5 + resets[request.env];
    }
    return absl::OkStatus();
  }

  absl::Status Step(std::span<const uint32_t> envs, const StepIo& io) override {
    if (throws) throw std::runtime_error("no step today");
    if (!fails_with.ok()) return fails_with;
    for (const uint32_t i : envs) {
      ++steps[i];
      io.rewards[i] = io.actions[i];
      io.terminateds[i] = steps[i] == 2 ? 1 : 0;
      io.truncateds[i] = steps[i] == 2 && i == 1 ? 1 : 0;
      io.obs[i] = Observation(i);
      io.infos[i] = steps[i];
    }
    return absl::OkStatus();
  }

  float Observation(uint32_t i) const {
    return static_cast<float>(100 * resets[i] + steps[i]);
  }

  std::vector<int> resets = std::vector<int>(kEnvs);
  std::vector<int> steps = std::vector<int>(kEnvs);
  std::vector<std::pair<uint32_t, std::optional<uint64_t>>> seeds;
  bool throws = false;
  absl::Status fails_with = absl::OkStatus();

 private:
  EngineSchema schema_ = {
      .task = "Fake", .num_envs = kEnvs, .obs_size = 1, .act_size = 1};
};

class ExchangeRunnerTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(ResetAll(std::nullopt).ok());
    engine_.seeds.clear();
  }
  absl::Status ResetAll(std::optional<uint64_t> first_seed) {
    runner_.BeginResetAll(first_seed);
    RunAll(&runner_, &engine_);
    return runner_.status();
  }
  absl::Status TryToRun(ExchangeKind kind, AutoresetMode mode) {
    runner_.Begin(kind, mode);
    RunAll(&runner_, &engine_);
    return runner_.status();
  }
  void Run(ExchangeKind kind, AutoresetMode mode) {
    ASSERT_TRUE(TryToRun(kind, mode).ok());
    // EngineSide does this after each exchange.
    resets_.assign(kEnvs, 0);
  }
  void Step(AutoresetMode mode) { Run(ExchangeKind::kStep, mode); }

  std::vector<float> obs_ = std::vector<float>(kEnvs);
  std::vector<float> actions_ = {1, 2, 3};
  std::vector<float> rewards_ = std::vector<float>(kEnvs, 9);
  std::vector<uint8_t> dones_ = std::vector<uint8_t>(kEnvs, 9);
  std::vector<uint8_t> truncateds_ = std::vector<uint8_t>(kEnvs, 9);
  std::vector<uint8_t> terminateds_ = std::vector<uint8_t>(kEnvs, 9);
  std::vector<uint8_t> resets_ = std::vector<uint8_t>(kEnvs);
  std::vector<float> final_obs_ = std::vector<float>(kEnvs, -1);
  std::vector<uint64_t> reset_seeds_ = std::vector<uint64_t>(kEnvs);
  std::vector<double> infos_ = std::vector<double>(kEnvs);
  std::vector<double> final_infos_ = std::vector<double>(kEnvs, -1);
  StepArrays arrays_ = {.num_envs = kEnvs,
                        .obs_size = 1,
                        .act_size = 1,
                        .info_size = 1,
                        .obs = obs_,
                        .actions = actions_,
                        .rewards = rewards_,
                        .dones = dones_,
                        .truncateds = truncateds_,
                        .terminateds = terminateds_,
                        .resets = resets_,
                        .final_obs = final_obs_,
                        .reset_seeds = reset_seeds_,
                        .infos = infos_,
                        .final_infos = final_infos_,
                        .images = {}};
  FakeEngine engine_;
  ExchangeRunner runner_{&arrays_};
};

using Floats = std::vector<float>;
using Flags = std::vector<uint8_t>;

TEST_F(ExchangeRunnerTest, ResetAllZeroesRewardsAndFlags) {
  EXPECT_EQ(obs_, (Floats{100, 100, 100}));
  EXPECT_EQ(rewards_, (Floats{0, 0, 0}));
  EXPECT_EQ(dones_, (Flags{0, 0, 0}));
  EXPECT_EQ(terminateds_, (Flags{0, 0, 0}));
  EXPECT_EQ(truncateds_, (Flags{0, 0, 0}));
}

TEST_F(ExchangeRunnerTest, ResetAllSpreadsTheSeed) {
  ASSERT_TRUE(ResetAll(40).ok());
  for (uint32_t i = 0; i < kEnvs; ++i) {
    EXPECT_EQ(engine_.seeds[i],
              (std::pair<uint32_t, std::optional<uint64_t>>(i, 40 + i)));
  }
}

TEST_F(ExchangeRunnerTest, AStepStepsAllByTheirActions) {
  Step(AutoresetMode::kSameStep);
  EXPECT_EQ(obs_, (Floats{101, 101, 101}));
  EXPECT_EQ(rewards_, (Floats{1, 2, 3}));
  EXPECT_TRUE(engine_.seeds.empty());
}

TEST_F(ExchangeRunnerTest, AFlaggedEnvironmentIsResetAndNotStepped) {
  Step(AutoresetMode::kSameStep);
  resets_[1] = kResetRequested;
  Step(AutoresetMode::kDisabled);
  EXPECT_EQ(obs_, (Floats{102, 200, 102}));
  EXPECT_EQ(rewards_, (Floats{1, 0, 3}));
  EXPECT_EQ(dones_, (Flags{1, 0, 1}));
}

TEST_F(ExchangeRunnerTest, AnyFlagResetsAndSeedNeedsItsBit) {
  reset_seeds_ = {7, 8, 9};
  resets_ = {0x80, kResetSeeded, kResetRequested | kResetSeeded};
  Step(AutoresetMode::kSameStep);
  EXPECT_EQ(engine_.resets, (std::vector<int>{2, 2, 2}));
  EXPECT_EQ(engine_.seeds[0].second, std::nullopt);
  EXPECT_EQ(engine_.seeds[1].second, 8);
  EXPECT_EQ(engine_.seeds[2].second, 9);
}

TEST_F(ExchangeRunnerTest, ResetOnlyLeavesTheOthersAsTheyWere) {
  Step(AutoresetMode::kDisabled);
  Step(AutoresetMode::kDisabled);
  resets_[1] = kResetRequested;
  Run(ExchangeKind::kResetOnly, AutoresetMode::kDisabled);
  EXPECT_EQ(obs_, (Floats{102, 200, 102}));
  EXPECT_EQ(rewards_, (Floats{1, 0, 3}));
  EXPECT_EQ(dones_, (Flags{1, 0, 1}));
  EXPECT_EQ(terminateds_, (Flags{1, 0, 1}));
  EXPECT_EQ(truncateds_, (Flags{0, 0, 0}));
}

TEST_F(ExchangeRunnerTest, SameStepResetsAtOnceAndKeepsTheLastObservation) {
  Step(AutoresetMode::kSameStep);
  EXPECT_EQ(final_obs_, (Floats{-1, -1, -1}));
  Step(AutoresetMode::kSameStep);
  EXPECT_EQ(obs_, (Floats{200, 200, 200}));
  EXPECT_EQ(final_obs_, (Floats{102, 102, 102}));
  EXPECT_EQ(rewards_, (Floats{1, 2, 3}));
  EXPECT_EQ(dones_, (Flags{1, 1, 1}));
  EXPECT_EQ(terminateds_, (Flags{1, 1, 1}));
  EXPECT_EQ(truncateds_, (Flags{0, 1, 0}));
  Step(AutoresetMode::kSameStep);
  EXPECT_EQ(obs_, (Floats{201, 201, 201}));
  EXPECT_EQ(dones_, (Flags{0, 0, 0}));
}

TEST_F(ExchangeRunnerTest, SameStepKeepsRowsElsewhereBeforeTheReset) {
  std::vector<uint32_t> kept;
  Floats obs_then;
  runner_.AlsoChange({.keep_final =
                          [&](std::span<const uint32_t> envs) {
                            kept.assign(envs.begin(), envs.end());
                            obs_then = obs_;
                            return absl::OkStatus();
                          },
                      .zero_rewards = {}});
  resets_ = {0, kResetRequested, 0};
  Step(AutoresetMode::kSameStep);
  EXPECT_EQ(kept, std::vector<uint32_t>{});
  Step(AutoresetMode::kSameStep);
  EXPECT_EQ(kept, (std::vector<uint32_t>{0, 2}));
  EXPECT_EQ(obs_then[0], 102);
  EXPECT_EQ(obs_[0], 200);
  kept.clear();
  Step(AutoresetMode::kNextStep);
  EXPECT_EQ(kept, std::vector<uint32_t>{});
}

TEST_F(ExchangeRunnerTest, ResetsThatAreNoAutoresetsZeroRewardsElsewhere) {
  std::vector<uint32_t> zeroed;
  runner_.AlsoChange(
      {.keep_final = {}, .zero_rewards = [&](std::span<const uint32_t> envs) {
         zeroed.assign(envs.begin(), envs.end());
         return absl::OkStatus();
       }});
  Step(AutoresetMode::kSameStep);
  Step(AutoresetMode::kSameStep);  // autoresets
  EXPECT_EQ(zeroed, std::vector<uint32_t>{});
  resets_ = {0, kResetRequested, 0};
  Run(ExchangeKind::kResetOnly, AutoresetMode::kSameStep);
  EXPECT_EQ(zeroed, std::vector<uint32_t>{1});
}

TEST_F(ExchangeRunnerTest, AnErrorElsewhereFailsTheExchangeAndNoLaterOne) {
  absl::Status result = absl::InternalError("no room elsewhere");
  const auto change = [&](std::span<const uint32_t>) { return result; };
  runner_.AlsoChange({.keep_final = change, .zero_rewards = change});
  resets_ = {0, kResetRequested, 0};
  EXPECT_EQ(TryToRun(ExchangeKind::kResetOnly, AutoresetMode::kSameStep),
            result);
  resets_.assign(kEnvs, 0);
  Step(AutoresetMode::kSameStep);
  EXPECT_EQ(TryToRun(ExchangeKind::kStep, AutoresetMode::kSameStep), result);
  result = absl::OkStatus();
  Step(AutoresetMode::kSameStep);
}

TEST_F(ExchangeRunnerTest, SameStepKeepsTheLastInfosAndShowsThoseOfTheReset) {
  EXPECT_EQ(infos_, (std::vector<double>{1.5, 1.5, 1.5}));
  Step(AutoresetMode::kSameStep);
  EXPECT_EQ(infos_, (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(final_infos_, (std::vector<double>{-1, -1, -1}));
  Step(AutoresetMode::kSameStep);
  EXPECT_EQ(infos_, (std::vector<double>{2.5, 2.5, 2.5}));
  EXPECT_EQ(final_infos_, (std::vector<double>{2, 2, 2}));
}

TEST_F(ExchangeRunnerTest, NextStepResetsInTheNextStepForAnyAction) {
  Step(AutoresetMode::kNextStep);
  Step(AutoresetMode::kNextStep);
  EXPECT_EQ(obs_, (Floats{102, 102, 102}));
  EXPECT_EQ(dones_, (Flags{1, 1, 1}));
  Step(AutoresetMode::kNextStep);
  EXPECT_EQ(obs_, (Floats{200, 200, 200}));
  EXPECT_EQ(rewards_, (Floats{0, 0, 0}));
  EXPECT_EQ(dones_, (Flags{0, 0, 0}));
  Step(AutoresetMode::kNextStep);
  EXPECT_EQ(obs_, (Floats{201, 201, 201}));
}

TEST_F(ExchangeRunnerTest, FlagReplacesPendingNextStepReset) {
  Step(AutoresetMode::kNextStep);
  Step(AutoresetMode::kNextStep);
  resets_[0] = kResetRequested;
  Run(ExchangeKind::kResetOnly, AutoresetMode::kNextStep);
  EXPECT_EQ(obs_, (Floats{200, 102, 102}));
  Step(AutoresetMode::kNextStep);
  EXPECT_EQ(obs_, (Floats{201, 200, 200}));
}

TEST_F(ExchangeRunnerTest, DisabledLeavesTheEndedEpisodeToTheClient) {
  Step(AutoresetMode::kDisabled);
  Step(AutoresetMode::kDisabled);
  EXPECT_EQ(dones_, (Flags{1, 1, 1}));
  Step(AutoresetMode::kDisabled);
  EXPECT_EQ(obs_, (Floats{103, 103, 103}));
}

TEST_F(ExchangeRunnerTest, ASkippedEnvironmentKeepsItsRows) {
  Step(AutoresetMode::kDisabled);
  actions_ = {7, 8, 9};
  resets_ = {kSkip, 0, kResetRequested};
  Step(AutoresetMode::kDisabled);
  EXPECT_EQ(obs_, (Floats{101, 102, 200}));
  EXPECT_EQ(rewards_, (Floats{1, 8, 0}));
  EXPECT_EQ(dones_, (Flags{0, 1, 0}));
  resets_ = {0, kSkip, kSkip};
  Step(AutoresetMode::kDisabled);
  EXPECT_EQ(obs_, (Floats{102, 102, 200}));
  EXPECT_EQ(dones_, (Flags{1, 1, 0}));
  EXPECT_EQ(truncateds_, (Flags{0, 1, 0}));
}

TEST_F(ExchangeRunnerTest, AnEndedEpisodeThatIsSkippedIsNotResetAgain) {
  Step(AutoresetMode::kSameStep);
  resets_ = {0, kSkip, kSkip};
  Step(AutoresetMode::kSameStep);  // the first ends, and is reset
  EXPECT_EQ(obs_, (Floats{200, 101, 101}));
  resets_ = {kSkip, 0, kSkip};
  Step(AutoresetMode::kSameStep);  // the first still has dones 1
  EXPECT_EQ(engine_.resets, (std::vector<int>{2, 2, 1}));
  EXPECT_EQ(obs_, (Floats{200, 200, 101}));
  EXPECT_EQ(dones_, (Flags{1, 1, 0}));
  EXPECT_EQ(final_obs_, (Floats{102, 102, -1}));
}

TEST_F(ExchangeRunnerTest, NextStepResetsASkippedEnvironmentLater) {
  Step(AutoresetMode::kNextStep);
  Step(AutoresetMode::kNextStep);
  resets_ = {kSkip, 0, 0};
  Step(AutoresetMode::kNextStep);
  EXPECT_EQ(obs_, (Floats{102, 200, 200}));
  Step(AutoresetMode::kNextStep);
  EXPECT_EQ(obs_, (Floats{200, 201, 201}));
  EXPECT_EQ(rewards_, (Floats{0, 2, 3}));
}

TEST_F(ExchangeRunnerTest, SkippingAllStepsNone) {
  resets_ = {kSkip, kSkip, kSkip};
  Step(AutoresetMode::kSameStep);
  EXPECT_EQ(obs_, (Floats{100, 100, 100}));
  EXPECT_EQ(engine_.resets, (std::vector<int>{1, 1, 1}));
}

TEST_F(ExchangeRunnerTest, UnrequestedResultsOfASkippedEnvironmentWait) {
  const std::vector<float> actions = {5, 6, 7};
  runner_.BeginUnrequestedStep(actions, AutoresetMode::kSameStep);
  RunAll(&runner_, &engine_);
  ASSERT_TRUE(runner_.status().ok());
  resets_ = {0, kSkip, kSkip};
  Step(AutoresetMode::kDisabled);  // the first environment's second step
  EXPECT_EQ(rewards_, (Floats{5 + 1, 0, 0}));
  EXPECT_EQ(dones_, (Flags{1, 0, 0}));
  Step(AutoresetMode::kDisabled);
  EXPECT_EQ(rewards_, (Floats{1, 6 + 2, 7 + 3}));
  EXPECT_EQ(dones_, (Flags{0, 1, 1}));
}

TEST_F(ExchangeRunnerTest, PassesTheEnginesErrorOn) {
  engine_.fails_with = absl::InternalError("broken");
  EXPECT_EQ(TryToRun(ExchangeKind::kStep, AutoresetMode::kSameStep),
            engine_.fails_with);
  resets_[0] = kResetRequested;
  EXPECT_EQ(TryToRun(ExchangeKind::kResetOnly, AutoresetMode::kSameStep),
            engine_.fails_with);
}

TEST_F(ExchangeRunnerTest, TurnsAnExceptionIntoAnErrorAndGoesOn) {
  engine_.throws = true;
  const absl::Status status =
      TryToRun(ExchangeKind::kStep, AutoresetMode::kSameStep);
  EXPECT_TRUE(absl::StrContains(status.message(), "no step today")) << status;
  EXPECT_FALSE(ResetAll(std::nullopt).ok());
  engine_.throws = false;
  EXPECT_TRUE(TryToRun(ExchangeKind::kStep, AutoresetMode::kSameStep).ok());
}

// Observes, in a field, its resets and its steps since; ends after two steps.
class FieldEngine final : public Engine {
 public:
  const EngineSchema& schema() const override { return schema_; }

  absl::Status Reset(std::span<const ResetRequest> requests,
                     const ResetIo& io) override {
    for (const ResetRequest& request : requests) {
      ++resets_[request.env];
      steps_[request.env] = 0;
      Observe(request.env, io.fields);
    }
    return absl::OkStatus();
  }

  absl::Status Step(std::span<const uint32_t> envs, const StepIo& io) override {
    for (const uint32_t i : envs) {
      ++steps_[i];
      Observe(i, io.fields);
      FindField(io.fields, FieldRole::kReward, "")->Values<double>()[i] = 0.1;
      io.terminateds[i] = steps_[i] == 2 ? 1 : 0;
    }
    return absl::OkStatus();
  }

 private:
  void Observe(uint32_t env, std::span<const FieldArray> fields) const {
    const std::span<uint16_t> pairs =
        FindField(fields, FieldRole::kObs, "/pair")->Values<uint16_t>();
    pairs[2 * env] = resets_[env];
    pairs[2 * env + 1] = steps_[env];
  }

  std::vector<uint16_t> resets_ = std::vector<uint16_t>(kEnvs);
  std::vector<uint16_t> steps_ = std::vector<uint16_t>(kEnvs);
  EngineSchema schema_ = {
      .task = "Fields", .num_envs = kEnvs, .obs_size = 0, .act_size = 0};
};

class FieldRunnerTest : public testing::Test {
 protected:
  void SetUp() override {
    runner_.BeginResetAll(std::nullopt);
    RunAll(&runner_, &engine_);
    ASSERT_TRUE(runner_.status().ok());
  }
  void Step(AutoresetMode mode) {
    runner_.Begin(ExchangeKind::kStep, mode);
    RunAll(&runner_, &engine_);
    ASSERT_TRUE(runner_.status().ok());
    resets_.assign(kEnvs, 0);
  }

  using Pairs = std::vector<uint16_t>;
  Pairs obs_ = Pairs(2 * kEnvs);
  Pairs final_obs_ = Pairs(2 * kEnvs, 9);
  std::vector<double> rewards64_ = std::vector<double>(kEnvs, 9);
  std::vector<float> rewards_ = std::vector<float>(kEnvs);
  std::vector<uint8_t> dones_ = std::vector<uint8_t>(kEnvs);
  std::vector<uint8_t> truncateds_ = std::vector<uint8_t>(kEnvs);
  std::vector<uint8_t> terminateds_ = std::vector<uint8_t>(kEnvs);
  std::vector<uint8_t> resets_ = std::vector<uint8_t>(kEnvs);
  std::vector<uint64_t> reset_seeds_ = std::vector<uint64_t>(kEnvs);
  StepArrays arrays_ = {
      .num_envs = kEnvs,
      .obs_size = 0,
      .act_size = 0,
      .info_size = 0,
      .obs = {},
      .actions = {},
      .rewards = rewards_,
      .dones = dones_,
      .truncateds = truncateds_,
      .terminateds = terminateds_,
      .resets = resets_,
      .final_obs = {},
      .reset_seeds = reset_seeds_,
      .infos = {},
      .final_infos = {},
      .images = {},
      .fields = {{.role = FieldRole::kObs,
                  .type = FieldType::kUint16,
                  .shape = {2},
                  .path = "/pair",
                  .row_bytes = 4,
                  .data = std::as_writable_bytes(std::span(obs_))},
                 {.role = FieldRole::kFinalObs,
                  .type = FieldType::kUint16,
                  .shape = {2},
                  .path = "/pair",
                  .row_bytes = 4,
                  .data = std::as_writable_bytes(std::span(final_obs_))},
                 {.role = FieldRole::kReward,
                  .type = FieldType::kFloat64,
                  .row_bytes = 8,
                  .data = std::as_writable_bytes(std::span(rewards64_))}}};
  FieldEngine engine_;
  ExchangeRunner runner_{&arrays_};
};

TEST_F(FieldRunnerTest, SameStepKeepsTheLastObservationOfEachField) {
  EXPECT_EQ(obs_, (Pairs{1, 0, 1, 0, 1, 0}));
  Step(AutoresetMode::kSameStep);
  resets_[1] = kResetRequested;
  EXPECT_EQ(final_obs_, Pairs(2 * kEnvs, 9));
  Step(AutoresetMode::kSameStep);
  EXPECT_EQ(dones_, (Flags{1, 0, 1}));
  EXPECT_EQ(obs_, (Pairs{2, 0, 2, 0, 2, 0}));
  EXPECT_EQ(final_obs_, (Pairs{1, 2, 9, 9, 1, 2}));
}

TEST_F(FieldRunnerTest, OtherModesLeaveFinalFieldsAlone) {
  for (const AutoresetMode mode :
       {AutoresetMode::kNextStep, AutoresetMode::kDisabled}) {
    for (int i = 0; i < 3; ++i) Step(mode);
  }
  EXPECT_EQ(final_obs_, Pairs(2 * kEnvs, 9));
}

TEST_F(FieldRunnerTest, TheRewardOfAResetEnvironmentIsZero) {
  EXPECT_EQ(rewards64_, (std::vector<double>{0, 0, 0}));
  Step(AutoresetMode::kDisabled);
  resets_[0] = kResetRequested;
  Step(AutoresetMode::kDisabled);
  EXPECT_EQ(rewards64_, (std::vector<double>{0, 0.1, 0.1}));
}

}  // namespace
}  // namespace tandem
