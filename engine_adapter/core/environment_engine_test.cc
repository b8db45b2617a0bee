#include "engine_adapter/core/environment_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/error.h"

namespace tandem {
namespace {

constexpr uint32_t kEnvs = 5;
constexpr float kThrow = 13;

// Observes a random number drawn at the reset, plus the sum of the actions.
class Walk final : public CopiedEnvironment<Walk> {
 public:
  void Reset(EnvRandom& random, const EnvironmentRow& row) override {
    position_ = static_cast<float>(random.Uniform(0, 1));
    steps_ = 0;
    row.obs[0] = position_;
  }
  StepOutcome Step(std::span<const float> actions,
                   const EnvironmentRow& row) override {
    if (actions[0] == kThrow) throw std::runtime_error("fell over");
    position_ += actions[0];
    row.obs[0] = position_;
    row.infos[0] = ++steps_;
    return {.reward = actions[0], .terminated = position_ > 100};
  }

  template <typename Bytes, typename State>
  static void Transfer(Bytes& bytes, State& walk) {
    bytes.Values(walk.position_, walk.steps_);
  }

 private:
  float position_ = 0;
  int steps_ = 0;
};

class EnvironmentEngineTest : public testing::TestWithParam<int> {
 protected:
  EnvironmentEngineTest() {
    std::iota(all_.begin(), all_.end(), 0U);
    for (uint32_t i = 0; i < kEnvs; ++i) requests_.push_back({i, 40 + i});
  }
  static std::vector<std::unique_ptr<Environment>> Walks() {
    std::vector<std::unique_ptr<Environment>> walks;
    for (uint32_t i = 0; i < kEnvs; ++i) {
      walks.push_back(std::make_unique<Walk>());
    }
    return walks;
  }
  absl::Status Reset() { return engine_.Reset(requests_, {obs_, infos_}); }
  absl::Status Step() {
    return engine_.Step(all_, {.actions = actions_,
                               .obs = obs_,
                               .rewards = rewards_,
                               .terminateds = terminateds_,
                               .truncateds = truncateds_,
                               .infos = infos_});
  }

  EnvironmentEngine engine_{
      {.task = "Walk",
       .obs_size = 1,
       .act_size = 1,
       .description = {.max_episode_steps = 3, .infos = {{.name = "steps"}}}},
      Walks(),
      GetParam()};
  std::vector<ResetRequest> requests_;
  std::vector<uint32_t> all_ = std::vector<uint32_t>(kEnvs);
  std::vector<float> actions_ = {0, 1, 2, 3, 200};
  std::vector<float> obs_ = std::vector<float>(kEnvs);
  std::vector<double> infos_ = std::vector<double>(kEnvs);
  std::vector<float> rewards_ = std::vector<float>(kEnvs);
  std::vector<uint8_t> terminateds_ = std::vector<uint8_t>(kEnvs);
  std::vector<uint8_t> truncateds_ = std::vector<uint8_t>(kEnvs);
};

TEST_P(EnvironmentEngineTest, CountsItsEnvironments) {
  EXPECT_EQ(engine_.schema().num_envs, kEnvs);
}

TEST_P(EnvironmentEngineTest, GivesEachEnvironmentItsOwnRows) {
  ASSERT_TRUE(Reset().ok());
  const std::vector<float> start = obs_;
  ASSERT_TRUE(Step().ok());
  for (size_t i = 0; i < kEnvs; ++i) {
    EXPECT_EQ(obs_[i], start[i] + actions_[i]);
  }
  EXPECT_EQ(rewards_, actions_);
  EXPECT_EQ(infos_, std::vector<double>(kEnvs, 1));
  EXPECT_EQ(terminateds_, (std::vector<uint8_t>{0, 0, 0, 0, 1}));
}

TEST_P(EnvironmentEngineTest, TruncatesFromTheLimitOnUntilAReset) {
  ASSERT_TRUE(Reset().ok());
  for (const uint8_t truncated : std::vector<uint8_t>{0, 0, 1, 1}) {
    ASSERT_TRUE(Step().ok());
    EXPECT_EQ(truncateds_, std::vector<uint8_t>(kEnvs, truncated));
  }
  ASSERT_TRUE(Reset().ok());
  ASSERT_TRUE(Step().ok());
  EXPECT_EQ(truncateds_, std::vector<uint8_t>(kEnvs, 0));
}

TEST_P(EnvironmentEngineTest, ASeedRepeatsAnEpisodeAndNoSeedGoesOn) {
  ASSERT_TRUE(Reset().ok());
  const std::vector<float> first = obs_;
  ASSERT_TRUE(Reset().ok());
  EXPECT_EQ(obs_, first);
  for (ResetRequest& request : requests_) request.seed.reset();
  ASSERT_TRUE(Reset().ok());
  for (size_t i = 0; i < kEnvs; ++i) EXPECT_NE(obs_[i], first[i]);
}

TEST_P(EnvironmentEngineTest, ExceptionNamesItsEnvironmentAndEngineRecovers) {
  ASSERT_TRUE(Reset().ok());
  actions_[3] = kThrow;
  absl::Status status = Step();
  EXPECT_EQ(CodeOf(status), ErrorCode::kEngineFailed);
  EXPECT_TRUE(absl::StrContains(status.message(), "environment 3: fell over"))
      << status;
  actions_[1] = actions_[4] = kThrow;
  status = Step();
  EXPECT_TRUE(absl::StrContains(status.message(),
                                "environment 1: fell over (and 2 more)"))
      << status;
  std::ranges::fill(actions_, 1.0F);
  EXPECT_TRUE(Reset().ok());
  EXPECT_TRUE(Step().ok());
}

TEST_P(EnvironmentEngineTest, ResetContinuesFromAStagedStateOnce) {
  StatePort& states = *engine_.ports().states;
  ASSERT_TRUE(Reset().ok() && Step().ok());
  std::string state;
  ASSERT_TRUE(states.Save(1, &state).ok());
  ASSERT_TRUE(Step().ok());
  const float position = obs_[1];
  ASSERT_TRUE(states.Stage(3, state).ok());
  ASSERT_TRUE(Reset().ok());
  actions_[3] = actions_[1];
  ASSERT_TRUE(Step().ok());
  EXPECT_EQ(obs_[3], position);
  EXPECT_EQ(infos_[3], 2);  // the episode's second step; the others' first
  ASSERT_TRUE(Step().ok());
  EXPECT_TRUE(truncateds_[3]);
  EXPECT_FALSE(truncateds_[1]);
  ASSERT_TRUE(Reset().ok());
  EXPECT_NE(obs_[3], position);
}

TEST_P(EnvironmentEngineTest, InvalidStateIsRefusedAndADiscardedOneForgotten) {
  StatePort& states = *engine_.ports().states;
  ASSERT_TRUE(Reset().ok());
  const float first = obs_[2];
  std::string state;
  ASSERT_TRUE(Step().ok() && states.Save(2, &state).ok());
  for (const std::string& wrong :
       {state.substr(1), state + "x", std::string()}) {
    EXPECT_EQ(CodeOf(states.Stage(2, wrong)), ErrorCode::kInvalidArgument);
  }
  ASSERT_TRUE(states.Stage(2, state).ok());
  states.Discard(2);
  ASSERT_TRUE(Reset().ok());
  EXPECT_EQ(obs_[2], first);
}

INSTANTIATE_TEST_SUITE_P(Threads, EnvironmentEngineTest, testing::Values(1, 3));

}  // namespace
}  // namespace tandem
