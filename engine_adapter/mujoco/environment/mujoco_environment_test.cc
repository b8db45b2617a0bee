#include "engine_adapter/mujoco/environment/mujoco_environment.h"

#include <gtest/gtest.h>
#include <mujoco/mujoco.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "engine_adapter/core/env_random.h"
#include "engine_adapter/core/state_bytes.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/mujoco/model/mujoco_log.h"
#include "engine_adapter/mujoco/mujoco_tasks.h"
#include "engine_adapter/testing/engine_rig.h"

namespace {

// Counts the whole program's allocations by `new`.
std::atomic<int64_t> allocations = 0;

}  // namespace

// Not inlined: gcc would warn about a mismatch of malloc and delete.
[[gnu::noinline]] void* operator new(size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace tandem {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

EngineRig Cheetahs(uint32_t num_envs, int threads) {
  return EngineRig(MakeMujocoEngine("HalfCheetah-v5",
                                    {.num_envs = num_envs, .threads = threads})
                       .value());
}

EngineRig Models(const std::string& path, uint32_t num_envs) {
  return EngineRig(MakeModelEngine(path, {.num_envs = num_envs}).value());
}

// Writes a file into the test's folder, and returns its path.
std::string Write(const std::string& name, const std::string& text) {
  std::string path = absl::StrCat(testing::TempDir(), "/", name);
  std::ofstream(path) << text;
  return path;
}

bool AllFinite(const std::vector<float>& values) {
  for (const float value : values) {
    if (!std::isfinite(value)) return false;
  }
  return true;
}

class MujocoEnvironmentTest : public testing::Test {
 protected:
  void SetUp() override {
    InstallMujocoLog(
        [this](absl::string_view line) { warnings_.emplace_back(line); });
  }
  void TearDown() override {
    InstallMujocoLog(nullptr);
    EXPECT_NE(access("MUJOCO_LOG.TXT", F_OK), 0);
  }
  std::vector<std::string> warnings_;
};

// Returns every observation, reward and info of 60 steps of 7 ants, with
// episodes of 25 steps.
std::vector<double> Trajectory(int threads, uint64_t seed) {
  EngineRig rig(MakeMujocoEngine("Ant-v5", {.num_envs = 7,
                                            .threads = threads,
                                            .max_episode_steps = 25})
                    .value());
  EXPECT_TRUE(rig.ResetAll(seed).ok());
  std::vector<double> all(rig.obs.begin(), rig.obs.end());
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (int step = 0; step < 60; ++step) {
    for (float& action : rig.actions) action = uniform(random);
    EXPECT_TRUE(rig.Step().ok());
    all.insert(all.end(), rig.obs.begin(), rig.obs.end());
    all.insert(all.end(), rig.rewards.begin(), rig.rewards.end());
    all.insert(all.end(), rig.infos.begin(), rig.infos.end());
    if (rig.truncateds[0] != 0) {
      EXPECT_TRUE(rig.ResetAll(seed + 100).ok());
    }
  }
  return all;
}

TEST_F(MujocoEnvironmentTest,
       TheSameSeedsGiveTheSameBitsWithAnyNumberOfThreads) {
  const std::vector<double> one = Trajectory(1, 5);
  EXPECT_EQ(one, Trajectory(2, 5));
  EXPECT_EQ(one, Trajectory(3, 5));
  EXPECT_NE(one, Trajectory(1, 6));
}

// Each task has its own code, which could allocate.
TEST_F(MujocoEnvironmentTest, StepsAndResetsAllocateNothing) {
  for (const std::string& task : MujocoTasks()) {
    EngineRig rig(
        MakeMujocoEngine(task, {.num_envs = 8, .threads = 2}).value());
    ASSERT_TRUE(rig.ResetAll(0).ok());
    ASSERT_TRUE(rig.Step().ok());
    const int64_t before = allocations.load(std::memory_order_relaxed);
    bool all_ok = true;
    for (int step = 0; step < 10; ++step) {
      rig.ports().mujoco->SetControl(3, 0, 0.5F);
      all_ok &= rig.Step().ok();
      all_ok &= rig.ResetAll(1).ok();
    }
    EXPECT_EQ(allocations.load(std::memory_order_relaxed), before) << task;
    EXPECT_TRUE(all_ok) << task;
  }
}

TEST_F(MujocoEnvironmentTest, NonFiniteActionCountsAsZeros) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {kNan, infinity, -infinity, 1e30F}) {
    EngineRig rig = Cheetahs(2, 1);
    EngineRig idle = Cheetahs(2, 1);
    ASSERT_TRUE(rig.ResetAll(0).ok());
    ASSERT_TRUE(idle.ResetAll(0).ok());
    for (size_t i = 0; i < 6; ++i) rig.actions[i] = 1;
    rig.actions[4] = bad;
    ASSERT_TRUE(rig.Step().ok());
    ASSERT_TRUE(idle.Step().ok());
    EXPECT_EQ(rig.obs, idle.obs);
    EXPECT_EQ(rig.rewards, idle.rewards);
    EXPECT_EQ(rig.infos, idle.infos);
  }
  ASSERT_EQ(warnings_.size(), 1);  // one warning for all of these actions
  EXPECT_TRUE(absl::StrContains(warnings_[0], "CTRL")) << warnings_[0];
}

TEST_F(MujocoEnvironmentTest, AnUnstableStateIsResetAndTheEpisodeGoesOn) {
  const std::string path = Write("unstable.xml", R"(<mujoco>
      <option timestep="1"/>
      <worldbody><body><joint name="j" type="slide"/>
        <geom size="1" mass="1e-6"/></body></worldbody>
      <actuator><motor joint="j" gear="1e9"/></actuator></mujoco>)");
  EngineRig rig = Models(path, 1);
  ASSERT_TRUE(rig.ResetAll(0).ok());
  rig.actions[0] = 1e9F;
  for (int step = 0; step < 5; ++step) {
    ASSERT_TRUE(rig.Step().ok());
    EXPECT_TRUE(AllFinite(rig.obs));
  }
  EXPECT_FALSE(warnings_.empty());
}

TEST_F(MujocoEnvironmentTest,
       AnErrorInsideMujocoFailsTheStepAndIsRecoveredFrom) {
  EngineRig rig = Cheetahs(4, 2);
  EngineRig untroubled = Cheetahs(4, 2);
  for (int attempt = 0; attempt < 3; ++attempt) {
    ASSERT_TRUE(rig.ResetAll(0).ok());
    mjcb_control = [](const mjModel*, mjData*) { mju_error("of the test"); };
    const absl::Status status = rig.Step();
    mjcb_control = nullptr;
    EXPECT_EQ(CodeOf(status), ErrorCode::kEngineFailed) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "of the test")) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "environment")) << status;
  }
  for (EngineRig* each : {&rig, &untroubled}) {
    ASSERT_TRUE(each->ResetAll(0).ok());
    ASSERT_TRUE(each->Step().ok());
  }
  EXPECT_EQ(rig.obs, untroubled.obs);
}

TEST_F(MujocoEnvironmentTest, RefusesAStateWhoseHistoryCursorIsNoIndex) {
  EngineRig rig = Models(Write("delay.xml", R"(<mujoco><worldbody><body>
        <joint name="j"/><geom size="1"/></body></worldbody>
        <actuator><motor joint="j" delay=".02" nsample="12"/></actuator>
        <sensor><jointpos joint="j" delay=".01" nsample="8"/></sensor>
        </mujoco>)"),
                         1);
  ASSERT_TRUE(rig.ResetAll(0).ok() && rig.Step().ok());
  StatePort& states = *rig.ports().states;
  std::string head;  // precedes the physics
  StateWriter(&head).Values(EnvRandom(0), uint32_t{0});
  std::string saved;
  ASSERT_TRUE(states.Save(0, &saved).ok());
  const auto stage = [&](size_t number, double value) {
    std::string changed = saved;
    std::memcpy(&changed[head.size() + number * sizeof(value)], &value,
                sizeof(value));
    return CodeOf(states.Stage(0, changed));
  };
  constexpr size_t kBefore = 3;                // time, position, velocity
  constexpr size_t kOfActuator = 2 + 12 + 12;  // numbers of its buffer
  for (const size_t cursor : {kBefore + 1, kBefore + kOfActuator + 1}) {
    EXPECT_EQ(stage(cursor, 3), ErrorCode::kOk);
    for (const double invalid : {-1.0, 12.0, static_cast<double>(kNan)}) {
      EXPECT_EQ(stage(cursor, invalid), ErrorCode::kInvalidArgument);
    }
  }
}

}  // namespace
}  // namespace tandem
