// Steps: observations, rewards, seeds, and resets without a step.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine_adapter/conformance/engine_rule.h"
#include "engine_adapter/conformance/header_only_client.h"
#include "nlohmann/json.hpp"
#include "transport/region.h"

namespace tandem {
namespace {

using Steps = RulesFor<Capability::kHostObservations>;

TEST_F(Steps, AClientFindsSizesAndAFirstObservation) {
  Begin();
  EXPECT_EQ(arrays().num_envs, kEnvs);
  EXPECT_FALSE(FieldsOf(arrays(), FieldRole::kObs).empty());
  EXPECT_FALSE(FieldsOf(arrays(), FieldRole::kAction).empty());
  EXPECT_NE(engine_.client->plan().task[0], '\0');
  EXPECT_TRUE(ObsIsFinite());
  EXPECT_EQ(Copy(arrays().rewards), Floats(kEnvs, 0));
  EXPECT_EQ(Copy(arrays().dones), Flags(kEnvs, 0));
}

TEST_F(Steps, TheDescriptionFitsTheArrays) {
  Begin();
  const absl::string_view text =
      DescriptionOf(engine_.client->plan(), *engine_.client->mapping());
  if (text.empty()) {
    EXPECT_EQ(arrays().info_size, 0);
    return;
  }
  const auto description = nlohmann::json::parse(text);
  if (arrays().obs_size > 0) {
    EXPECT_EQ(description.at("observation_space").at("shape").at(0),
              arrays().obs_size);
  }
  uint32_t columns = 0;
  for (const auto& info : description.at("infos")) {
    const auto& length = info.at("length");
    columns += length.is_null() ? 1 : length.get<uint32_t>();
  }
  EXPECT_EQ(columns, arrays().info_size);
}

TEST_F(Steps, ResetKeepsTheInfosOfOtherEnvironments) {
  Begin();
  Step();
  const std::vector<double> before = Copy(arrays().infos);
  Reset({0}, 7);
  const std::vector<double> after = Copy(arrays().infos);
  const auto others = static_cast<ptrdiff_t>(arrays().info_size);
  EXPECT_TRUE(std::equal(before.begin() + others, before.end(),
                         after.begin() + others));
}

// Float32 rows change with each step. Fields may be such that a step changes
// nothing, such as a place beside a wall.
TEST_F(Steps, AStepStepsEveryEnvironment) {
  constexpr int kSteps = 20;
  Begin();
  Reset({0, 1, 2}, 1);
  std::array<int, kEnvs> changes{};
  for (int step = 0; step < kSteps; ++step) {
    std::vector<Observation> before;
    for (uint32_t env = 0; env < kEnvs; ++env) before.push_back(Obs(env));
    Step(arrays().obs_size > 0 ? 0 : static_cast<size_t>(step));
    for (uint32_t env = 0; env < kEnvs; ++env) {
      if (Obs(env) != before[env]) ++changes[env];
    }
    ASSERT_TRUE(ObsIsFinite());
  }
  for (uint32_t env = 0; env < kEnvs; ++env) {
    EXPECT_GE(changes[env], arrays().obs_size > 0 ? kSteps : 1)
        << "environment " << env;
  }
}

TEST_F(Steps, ResetOnlyLeavesTheOthersUntouched) {
  Begin();
  for (int step = 0; step < 5; ++step) Step();
  const std::vector<Observation> before = {Obs(0), Obs(1), Obs(2)};
  const Floats rewards = Copy(arrays().rewards);
  Reset({1}, std::nullopt);
  EXPECT_EQ(Obs(0), before[0]);
  EXPECT_NE(Obs(1), before[1]);
  EXPECT_EQ(Obs(2), before[2]);
  EXPECT_EQ(arrays().rewards[0], rewards[0]);
  EXPECT_EQ(arrays().rewards[1], 0);
  EXPECT_EQ(arrays().rewards[2], rewards[2]);
  EXPECT_EQ(Copy(arrays().resets), Flags(kEnvs, 0));
}

TEST_F(Steps, ResetOfNoEnvironmentChangesNothing) {
  Begin();
  Step();
  const Observation before = AllObs();
  Reset({}, std::nullopt);
  EXPECT_EQ(AllObs(), before);
}

TEST_F(Steps, TheSameSeedStartsTheSameTrajectory) {
  Begin();
  const auto trajectory = [&] {
    std::vector<std::pair<Observation, float>> all;
    const auto add = [&] { all.emplace_back(Obs(1), arrays().rewards[1]); };
    Reset({1}, 17);
    add();
    for (size_t step = 0; step < 10; ++step) {
      Step(step);
      add();
    }
    return all;
  };
  const auto first = trajectory();
  Step();
  EXPECT_EQ(trajectory(), first);
}

TEST_F(Steps, ServersWithTheSameSeedStartAlike) {
  engine_.Start({"--seed=5"});
  Attach();
  const Observation first = AllObs();
  engine_.client.reset();
  engine_.server->Signal(SIGTERM);
  ASSERT_EQ(engine_.server->ExitCode(), 0);
  engine_.Start({"--seed", "5"});
  Attach();
  EXPECT_EQ(AllObs(), first);
}

TEST_F(Steps, SurvivesActionsOfAnyValue) {
  engine_.Start();
  Attach();  // waits for the region
  engine_.client.reset();
  {
    HeaderOnlyClient foreign(engine_.name);
    const float infinity = std::numeric_limits<float>::infinity();
    for (const float bad : {std::nanf(""), infinity, -infinity, 1e38F}) {
      FillActions(foreign.arrays(), bad);
      foreign.Step();
      foreign.Step();
    }
  }
  Attach();
  Reset({0, 1, 2}, 3);
  EXPECT_TRUE(ObsIsFinite());
  for (int step = 0; step < 5; ++step) {
    Step();
    EXPECT_TRUE(ObsIsFinite());
  }
}

}  // namespace
}  // namespace tandem
