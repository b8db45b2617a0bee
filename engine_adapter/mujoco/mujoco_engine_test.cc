#include "engine_adapter/mujoco/mujoco_engine.h"

#include <gtest/gtest.h>
#include <mujoco/mujoco.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <memory>
#include <new>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine_adapter/core/engine.h"
#include "engine_adapter/mujoco/half_cheetah.h"
#include "engine_adapter/mujoco/mjcf_model.h"
#include "engine_adapter/mujoco/mujoco_log.h"
#include "engine_adapter/mujoco/task.h"
#include "engine_adapter/mujoco/task_registry.h"
#include "transport/base/error.h"

namespace {

// Counts what the whole program allocates by `new`.
std::atomic<int64_t> allocations = 0;

}  // namespace

// Not inlined: gcc would take malloc and delete for a mismatch.
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

// An engine with arrays of its own, as a region would hold them.
class Rig {
 public:
  Rig(std::unique_ptr<Task> task, uint32_t num_envs, int threads)
      : engine_(
            MujocoEngine::Create(std::move(task), num_envs, threads).value()),
        obs(size_t{num_envs} * engine_->schema().obs_size),
        actions(size_t{num_envs} * engine_->schema().act_size),
        rewards(num_envs),
        terminateds(num_envs),
        truncateds(num_envs) {
    for (uint32_t i = 0; i < num_envs; ++i) all_.push_back(i);
  }

  absl::Status ResetAll(uint64_t first_seed) {
    std::vector<ResetRequest> requests;
    for (const uint32_t i : all_) {
      requests.push_back({.env = i, .seed = first_seed + i});
    }
    return Reset(requests);
  }
  absl::Status Reset(std::span<const ResetRequest> requests) {
    return engine_->Reset(requests, {obs, {}});
  }
  absl::Status ResetUnseeded() {
    std::vector<ResetRequest> requests;
    for (const uint32_t i : all_) requests.push_back({.env = i, .seed = {}});
    return Reset(requests);
  }
  absl::Status Step() {
    return engine_->Step(all_, {.actions = actions,
                                .obs = obs,
                                .rewards = rewards,
                                .terminateds = terminateds,
                                .truncateds = truncateds});
  }
  const EngineSchema& schema() const { return engine_->schema(); }

 private:
  std::unique_ptr<MujocoEngine> engine_;
  std::vector<uint32_t> all_;

 public:
  std::vector<float> obs;
  std::vector<float> actions;
  std::vector<float> rewards;
  std::vector<uint8_t> terminateds;
  std::vector<uint8_t> truncateds;
};

std::unique_ptr<Task> Cheetah(const MujocoTaskOptions& options = {}) {
  return HalfCheetah::Create(options).value();
}

// A file in the test's own folder.
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

class MujocoEngineTest : public testing::Test {
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

// Every observation and reward of 60 steps of 7 cheetahs, which fall into
// episodes of 25 steps.
std::vector<float> Trajectory(int threads, uint64_t seed) {
  Rig rig(Cheetah({.max_episode_steps = 25}), 7, threads);
  EXPECT_TRUE(rig.ResetAll(seed).ok());
  std::vector<float> all = rig.obs;
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (int step = 0; step < 60; ++step) {
    for (float& action : rig.actions) action = uniform(random);
    EXPECT_TRUE(rig.Step().ok());
    all.insert(all.end(), rig.obs.begin(), rig.obs.end());
    all.insert(all.end(), rig.rewards.begin(), rig.rewards.end());
    if (rig.truncateds[0] != 0) {
      EXPECT_TRUE(rig.ResetAll(seed + 100).ok());
    }
  }
  return all;
}

TEST_F(MujocoEngineTest, TheSameSeedsGiveTheSameBitsWithAnyNumberOfThreads) {
  const std::vector<float> one = Trajectory(1, 5);
  EXPECT_EQ(one, Trajectory(2, 5));
  EXPECT_EQ(one, Trajectory(3, 5));
  EXPECT_NE(one, Trajectory(1, 6));
}

TEST_F(MujocoEngineTest, ResetNoiseStaysWithinGymnasiumsBounds) {
  Rig rig(Cheetah(), 200, 2);
  ASSERT_TRUE(rig.ResetAll(0).ok());
  double squares = 0;
  for (size_t env = 0; env < 200; ++env) {
    for (size_t i = 0; i < 8; ++i) {
      EXPECT_LE(std::abs(rig.obs[env * 17 + i]), 0.1F);
    }
    for (size_t i = 8; i < 17; ++i) {
      squares += std::pow(rig.obs[env * 17 + i], 2);
    }
  }
  // 1800 draws: five standard errors of the deviation are 0.0083.
  EXPECT_NEAR(std::sqrt(squares / 1800), 0.1, 0.0083);
}

TEST_F(MujocoEngineTest, AnUnseededResetGoesOnWithTheStream) {
  Rig rig(Cheetah(), 1, 1);
  Rig twin(Cheetah(), 1, 1);
  ASSERT_TRUE(rig.ResetAll(0).ok());
  ASSERT_TRUE(twin.ResetAll(0).ok());
  const std::vector<float> first = rig.obs;
  ASSERT_TRUE(rig.ResetUnseeded().ok());
  ASSERT_TRUE(twin.ResetUnseeded().ok());
  EXPECT_NE(rig.obs, first);
  EXPECT_EQ(rig.obs, twin.obs);
}

TEST_F(MujocoEngineTest, StepsAndResetsAllocateNothing) {
  Rig rig(Cheetah(), 8, 2);
  std::vector<ResetRequest> requests;
  for (uint32_t i = 0; i < 8; ++i) requests.push_back({.env = i, .seed = i});
  ASSERT_TRUE(rig.Reset(requests).ok());
  ASSERT_TRUE(rig.Step().ok());
  const int64_t before = allocations.load(std::memory_order_relaxed);
  bool all_ok = true;
  for (int step = 0; step < 50; ++step) {
    all_ok &= rig.Step().ok();
    all_ok &= rig.Reset(requests).ok();
  }
  EXPECT_EQ(allocations.load(std::memory_order_relaxed), before);
  EXPECT_TRUE(all_ok);
}

TEST_F(MujocoEngineTest, TruncatesAtTheLimitAndNeverTerminates) {
  Rig rig(Cheetah({.max_episode_steps = 3}), 2, 1);
  ASSERT_TRUE(rig.ResetAll(0).ok());
  for (int step = 1; step <= 3; ++step) {
    ASSERT_TRUE(rig.Step().ok());
    EXPECT_EQ(rig.truncateds[1], step == 3 ? 1 : 0);
    EXPECT_EQ(rig.terminateds[1], 0);
  }
}

TEST_F(MujocoEngineTest, AnActionThatIsNoNumberCountsAsARowOfZeros) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {kNan, infinity, -infinity, 1e30F}) {
    Rig rig(Cheetah(), 2, 1);
    Rig idle(Cheetah(), 2, 1);
    ASSERT_TRUE(rig.ResetAll(0).ok());
    ASSERT_TRUE(idle.ResetAll(0).ok());
    for (size_t i = 0; i < 6; ++i) rig.actions[i] = 1;
    rig.actions[4] = bad;
    ASSERT_TRUE(rig.Step().ok());
    ASSERT_TRUE(idle.Step().ok());
    EXPECT_EQ(rig.obs, idle.obs);
    EXPECT_EQ(rig.rewards, idle.rewards);
  }
  ASSERT_EQ(warnings_.size(), 1);  // one for all of these
  EXPECT_TRUE(absl::StrContains(warnings_[0], "CTRL")) << warnings_[0];
}

TEST_F(MujocoEngineTest, AnUnstableStateIsResetAndTheEpisodeGoesOn) {
  const std::string path = Write("unstable.xml", R"(<mujoco>
      <option timestep="1"/>
      <worldbody><body><joint name="j" type="slide"/>
        <geom size="1" mass="1e-6"/></body></worldbody>
      <actuator><motor joint="j" gear="1e9"/></actuator></mujoco>)");
  Rig rig(MjcfModel::Create({.model_path = path}).value(), 1, 1);
  ASSERT_TRUE(rig.ResetAll(0).ok());
  rig.actions[0] = 1e9F;
  for (int step = 0; step < 5; ++step) {
    ASSERT_TRUE(rig.Step().ok());
    EXPECT_TRUE(AllFinite(rig.obs));
  }
  EXPECT_FALSE(warnings_.empty());
}

TEST_F(MujocoEngineTest, AnErrorInsideMujocoFailsTheStepAndIsRecoveredFrom) {
  Rig rig(Cheetah(), 4, 2);
  Rig untroubled(Cheetah(), 4, 2);
  for (int attempt = 0; attempt < 3; ++attempt) {
    ASSERT_TRUE(rig.ResetAll(0).ok());
    mjcb_control = [](const mjModel*, mjData*) { mju_error("of the test"); };
    const absl::Status status = rig.Step();
    mjcb_control = nullptr;
    EXPECT_EQ(CodeOf(status), ErrorCode::kEngineFailed) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "of the test")) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "environment")) << status;
  }
  for (Rig* each : {&rig, &untroubled}) {
    ASSERT_TRUE(each->ResetAll(0).ok());
    ASSERT_TRUE(each->Step().ok());
  }
  EXPECT_EQ(rig.obs, untroubled.obs);
}

TEST_F(MujocoEngineTest, AModelOfOnesOwnIsObservedWholeAndNeverEnds) {
  const std::string path = Write("pendulum.xml", R"(<mujoco>
      <worldbody><body><joint name="j" axis="0 1 0"/>
        <geom size=".1" pos=".5 0 0"/></body></worldbody>
      <actuator><motor joint="j"/></actuator></mujoco>)");
  Rig rig(MjcfModel::Create({.model_path = path}).value(), 3, 1);
  EXPECT_EQ(rig.schema().task, "pendulum");
  EXPECT_EQ(rig.schema().obs_size, 2);
  EXPECT_EQ(rig.schema().act_size, 1);
  ASSERT_TRUE(rig.ResetAll(0).ok());
  EXPECT_EQ(rig.obs, std::vector<float>(6, 0.0F));  // no noise
  for (int step = 0; step < 50; ++step) ASSERT_TRUE(rig.Step().ok());
  EXPECT_NE(rig.obs[0], 0);
  EXPECT_EQ(rig.rewards, std::vector<float>(3, 0.0F));
  EXPECT_EQ(rig.truncateds, std::vector<uint8_t>(3, 0));
}

TEST_F(MujocoEngineTest, SaysWhatIsWrongWithAModel) {
  const auto code_and_text = [](const std::string& path) {
    const absl::Status status =
        MjcfModel::Create({.model_path = path}).status();
    return std::make_pair(CodeOf(status), std::string(status.message()));
  };
  const auto missing = code_and_text("no/such.xml");
  EXPECT_EQ(missing.first, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(missing.second, "no/such.xml"));

  const auto broken =
      code_and_text(Write("broken.xml",
                          "<mujoco><worldbody><geom type='foo'/>"
                          "</worldbody></mujoco>"));
  EXPECT_EQ(broken.first, ErrorCode::kEngineFailed);
  EXPECT_TRUE(absl::StrContains(broken.second, "invalid keyword"))
      << broken.second;

  const auto no_xml = code_and_text(Write("no_xml.xml", "hello"));
  EXPECT_EQ(no_xml.first, ErrorCode::kEngineFailed);

  const auto idle =
      code_and_text(Write("idle.xml",
                          "<mujoco><worldbody><body><joint/><geom size='1'/>"
                          "</body></worldbody></mujoco>"));
  EXPECT_EQ(idle.first, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(idle.second, "0 actuators")) << idle.second;
}

TEST_F(MujocoEngineTest, AnUnknownTaskNamesTheKnownOnes) {
  const absl::Status status = MakeTask("Nope-v1", {}).status();
  EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "HalfCheetah-v5"));
}

TEST_F(MujocoEngineTest, AnAssetFolderWithoutTheModelIsNamed) {
  const absl::Status status =
      HalfCheetah::Create({.assets_folder = "/nowhere"}).status();
  EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "/nowhere"));
}

}  // namespace
}  // namespace tandem
