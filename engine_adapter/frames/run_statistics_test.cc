#include "engine_adapter/frames/run_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "schema/layout/lrbc.h"
#include "transport/run_snapshot.h"

namespace tandem {
namespace {

// Two environments; the frame shows the second.
class Rig {
 public:
  RunSnapshot Step(std::vector<float> rewards, std::vector<uint8_t> dones = {},
                   bool ended_are_reset = true) {
    dones.resize(2);
    const std::vector<uint8_t> resets(2);
    statistics_.Count({.stepped = true,
                       .ended_are_reset = ended_are_reset,
                       .resets = resets,
                       .rewards = rewards,
                       .dones = dones});
    return Now();
  }
  RunSnapshot Reset(std::vector<uint8_t> resets) {
    const std::vector<uint8_t> dones(2);
    const std::vector<float> rewards(2);
    statistics_.Count({.stepped = false,
                       .ended_are_reset = true,
                       .resets = resets,
                       .rewards = rewards,
                       .dones = dones});
    return Now();
  }
  // Steps the second environment only.
  RunSnapshot StepSecond(float reward) {
    const std::vector<uint8_t> resets = {kSkip, 0};
    const std::vector<float> rewards = {10, reward};
    const std::vector<uint8_t> dones = {1, 0};  // of an earlier exchange
    statistics_.Count({.stepped = true,
                       .ended_are_reset = true,
                       .resets = resets,
                       .rewards = rewards,
                       .dones = dones});
    return Now();
  }
  RunSnapshot Now() const { return statistics_.Now(shown_); }
  RunStatistics& statistics() { return statistics_; }

 private:
  RunStatistics statistics_{2};
  std::vector<uint32_t> shown_ = {1};
};

TEST(RunStatistics, ShowsTheReturnSoFarUntilAnEpisodeHasEnded) {
  Rig rig;
  rig.Step({10, 1});
  const RunSnapshot now = rig.Step({10, 2});
  EXPECT_EQ(now.last_reward, 2);
  EXPECT_EQ(now.rolling_return, 3);
  EXPECT_EQ(now.episodes, 0U);
  EXPECT_EQ(rig.statistics().env_steps(), 4U);
}

TEST(RunStatistics, NumbersEpisodesFromZeroInEachAutoresetMode) {
  for (const bool ended_are_reset : {true, false}) {
    Rig rig;
    const auto episode = [&rig] { return rig.statistics().EpisodeOf(1); };
    rig.Step({0, 1}, {}, ended_are_reset);
    rig.Step({0, 2}, {}, ended_are_reset);
    EXPECT_EQ(episode().number, 0U);
    EXPECT_EQ(episode().steps, 2U);
    EXPECT_EQ(episode().total_reward, 3);
    EXPECT_EQ(episode().last_reward, 2);
    rig.Step({0, 4}, {0, 1}, ended_are_reset);
    EXPECT_EQ(episode().number, 1U);
    EXPECT_EQ(episode().steps, 0U);
    EXPECT_EQ(episode().total_reward, 0);
    if (!ended_are_reset) rig.Reset({0, 1});
    rig.Step({0, 8}, {}, ended_are_reset);
    EXPECT_EQ(episode().number, 1U);
    EXPECT_EQ(episode().steps, 1U);
    rig.Reset({0, 1});
    EXPECT_EQ(episode().number, 2U);
    EXPECT_EQ(rig.statistics().EpisodeOf(0).number, 0U);
    rig.statistics().Clear();
    EXPECT_EQ(episode().number, 3U);
  }
}

TEST(RunStatistics, WithoutRewardsTheyAreUnknownAndEpisodesCount) {
  RunStatistics statistics(1, /*has_rewards=*/false);
  const std::vector<uint8_t> resets = {0}, dones = {1};
  const std::vector<float> rewards = {0};
  const std::vector<uint32_t> shown = {0};
  statistics.Count({.resets = resets, .rewards = rewards, .dones = dones});
  const RunSnapshot now = statistics.Now(shown);
  EXPECT_TRUE(std::isnan(now.last_reward));
  EXPECT_TRUE(std::isnan(now.rolling_return));
  EXPECT_EQ(now.episodes, 1U);
  EXPECT_EQ(now.episode_length, 1);
}

TEST(RunStatistics, ASkippedEnvironmentCountsNothing) {
  Rig rig;
  EXPECT_EQ(rig.Step({10, 1}, {1, 0}).episodes, 1U);
  const RunSnapshot now = rig.StepSecond(2);
  EXPECT_EQ(now.episodes, 1U);
  EXPECT_EQ(now.last_reward, 2);
  EXPECT_EQ(rig.statistics().env_steps(), 3U);
  EXPECT_DOUBLE_EQ(rig.Step({4, 1}, {1, 0}).rolling_return, (10.0 + 4) / 2);
}

TEST(RunStatistics, CountsTheEpisodesOfAllEnvironments) {
  Rig rig;
  rig.Step({10, 1});
  EXPECT_EQ(rig.Step({10, 1}, {1, 0}).rolling_return, 20);
  const RunSnapshot now = rig.Step({5, 4}, {1, 1});
  EXPECT_EQ(now.episodes, 3U);
  EXPECT_DOUBLE_EQ(now.rolling_return, (20.0 + 5 + 6) / 3);
}

TEST(RunStatistics, DropsOldEpisodes) {
  Rig rig;
  for (int i = 0; i < 50; ++i) rig.Step({1, 1}, {1, 1});
  for (int i = 0; i < 50; ++i) rig.Step({3, 3}, {1, 1});
  EXPECT_EQ(rig.Now().rolling_return, 3);
  EXPECT_EQ(rig.Now().episodes, 200U);
}

TEST(RunStatistics, AResetBeginsAnotherEpisode) {
  Rig rig;
  rig.Step({10, 10});
  EXPECT_EQ(rig.Reset({0, 1}).rolling_return, 0);
  rig.Step({1, 1});
  EXPECT_EQ(rig.Step({1, 1}, {1, 1}).rolling_return, (12.0 + 2) / 2);
}

TEST(RunStatistics, AnEpisodeThatGoesOnPastItsEndCountsOnce) {
  Rig rig;
  rig.Step({1, 1}, {0, 1}, /*ended_are_reset=*/false);
  rig.Step({1, 1}, {0, 1}, /*ended_are_reset=*/false);
  EXPECT_EQ(rig.Now().episodes, 1U);
  rig.Reset({0, 1});
  rig.Step({1, 5}, {0, 1}, /*ended_are_reset=*/false);
  EXPECT_EQ(rig.Now().episodes, 2U);
  EXPECT_EQ(rig.Now().rolling_return, 3);
}

TEST(RunStatistics, TheLengthIsTheMeanOfEndedEpisodes) {
  Rig rig;
  EXPECT_EQ(rig.Step({1, 1}).episode_length, 0);
  EXPECT_EQ(rig.Step({1, 1}, {1, 0}).episode_length, 2);
  EXPECT_EQ(rig.Step({1, 1}, {1, 1}).episode_length, (2.0 + 1 + 3) / 3);
}

TEST(RunStatistics, SkippedStepsAndStepsBeforeAResetHaveNoLength) {
  Rig rig;
  rig.StepSecond(1);
  rig.StepSecond(1);
  rig.Step({1, 1});
  EXPECT_EQ(rig.Step({1, 1}, {1, 0}).episode_length, 2);
  rig.Reset({0, 1});
  EXPECT_EQ(rig.Step({1, 1}, {0, 1}).episode_length, (2.0 + 1) / 2);
}

TEST(RunStatistics, TheLengthOfAnEpisodeThatGoesOnPastItsEndCountsOnce) {
  Rig rig;
  rig.Step({1, 1}, {0, 1}, /*ended_are_reset=*/false);
  rig.Step({1, 1}, {0, 1}, /*ended_are_reset=*/false);
  // Steps again without a flag: an episode that its client did not reset.
  rig.Step({1, 1}, {0, 0}, /*ended_are_reset=*/false);
  EXPECT_EQ(rig.Step({1, 1}, {0, 1}, false).episode_length, (1.0 + 2) / 2);
}

TEST(RunStatistics, NewClientStartsFromZero) {
  Rig rig;
  rig.Step({7, 7}, {1, 1});
  rig.statistics().Clear();
  EXPECT_EQ(rig.Now().episodes, 0U);
  EXPECT_EQ(rig.Now().last_reward, 0);
  EXPECT_EQ(rig.Step({2, 3}).rolling_return, 3);
  EXPECT_EQ(rig.Now().episode_length, 0);
  EXPECT_EQ(rig.Step({2, 3}, {1, 0}).episode_length, 2);
}

}  // namespace
}  // namespace tandem
