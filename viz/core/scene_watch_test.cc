#include "viz/core/scene_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/error.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/owned_scene_segment.h"
#include "viz/core/background.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using State = SceneWatch::State;

constexpr int64_t kMs = 1'000'000;

// An engine that publishes what the test writes; outlives its streams.
struct FakeEngine {
  bool alive = true;
  uint32_t num_envs = 16;
  absl::Status refuses;
  int attached = 0;
  std::vector<std::vector<uint32_t>> asked;
  std::optional<OwnedSceneSegment> segment;

  void Make(const std::string& name, absl::string_view glb,
            const SceneSpec& spec = {.num_envs = 4, .nodes = 2}) {
    segment.reset();
    absl::StatusOr<OwnedSceneSegment> made =
        OwnedSceneSegment::Create(name, spec, glb);
    ASSERT_TRUE(made.ok()) << made.status();
    segment.emplace(*std::move(made));
  }
  void Publish(float x, uint32_t nodes = 2) {
    PoseSnapshot snapshot;
    snapshot.Resize(nodes, 1);
    snapshot.row(0).env = 3;
    snapshot.poses(0)[0] = x;
    EXPECT_GT(segment->Publish(snapshot), 0U);
  }
};

class FakeStream final : public SceneStream {
 public:
  explicit FakeStream(FakeEngine* engine) : engine_(engine) {
    ++engine_->attached;
  }
  ~FakeStream() override { --engine_->attached; }
  bool EngineAlive() const override { return engine_->alive; }
  uint32_t NumEnvs() const override { return engine_->num_envs; }
  absl::Status Want(const std::vector<uint32_t>& envs) override {
    engine_->asked.push_back(envs);
    has_news_ = true;
    return absl::OkStatus();
  }
  absl::StatusOr<std::optional<PublishedScene>> Next() override {
    TANDEM_RETURN_IF_ERROR(engine_->refuses);
    if (!std::exchange(has_news_, false)) return std::nullopt;
    return PublishedScene{.generation = 1, .envs = engine_->asked.back()};
  }

 private:
  FakeEngine* const engine_;
  bool has_news_ = false;
};

class SceneWatchTest : public testing::Test {
 protected:
  void PollAfter10Ms() {
    now_ns_ += 10 * kMs;
    watch_->Poll(now_ns_);
    std::this_thread::yield();  // to the thread that opens streams
  }
  // Polls until it is so.
  void Await(const std::function<bool()>& is_so) {
    while (!is_so()) PollAfter10Ms();
  }
  void Await(State state) {
    Await([&] { return watch_->state() == state; });
  }
  float NewestX() const {
    return watch_->newest() == nullptr ? -1
                                       : watch_->newest()->snapshot.poses(0)[0];
  }
  SceneStream::Opener Opener() {
    return [this](const std::string&)
               -> absl::StatusOr<std::unique_ptr<SceneStream>> {
      if (!engine_.alive) return MakeError(ErrorCode::kNotReady, "no engine");
      return std::make_unique<FakeStream>(&engine_);
    };
  }

  FakeEngine engine_;
  const std::string name_ = UniqueRegionName("watch");
  int64_t now_ns_ = 1'000'000 * kMs;
  WorkThread thread_;
  std::unique_ptr<SceneWatch> watch_ =
      std::make_unique<SceneWatch>(name_, &thread_, Opener());
};

TEST_F(SceneWatchTest, ReturnsEachSnapshotOnceAndKeepsThem) {
  engine_.Make(name_, "glb");
  Await(State::kLive);
  EXPECT_EQ(*watch_->glb(), "glb");
  EXPECT_EQ(watch_->header().num_envs, 4U);
  for (const float x : {1.0F, 2.0F}) {
    engine_.Publish(x);
    EXPECT_TRUE(watch_->Poll(now_ns_ += kMs));
    EXPECT_EQ(NewestX(), x);
    EXPECT_FALSE(watch_->Poll(now_ns_ += kMs));
  }
  EXPECT_EQ(watch_->tape().size(), 2U);
  EXPECT_EQ(watch_->tape().bytes(), 2 * (32 + SceneRowBytes(2)));
  EXPECT_EQ(watch_->freshness().StateAt(now_ns_), FreshnessState::kConnected);
}

TEST_F(SceneWatchTest, AsksForTheEnvironmentsOfAllViewersThatThereAre) {
  engine_.Make(name_, "glb");
  const auto first = watch_->Join();
  std::vector<std::shared_ptr<std::vector<uint32_t>>> twenty;
  for (uint32_t i = 0; i < 20; ++i) {
    twenty.push_back(watch_->Join());
    *twenty.back() = {1, i % 3};
  }
  *first = {9, 1};
  Await(State::kLive);
  EXPECT_THAT(engine_.asked.back(), ElementsAre(0, 1, 2, 9));
  twenty.clear();
  watch_->Poll(now_ns_ += kMs);
  EXPECT_THAT(engine_.asked.back(), ElementsAre(1, 9));
  EXPECT_EQ(engine_.asked.size(), 2U);
  EXPECT_EQ(engine_.attached, 1) << "one for all";
  watch_.reset();
  EXPECT_EQ(engine_.attached, 0);
}

TEST_F(SceneWatchTest, AnotherModelOfTheEngineBeginsANewTape) {
  engine_.Make(name_, "old");
  Await(State::kLive);
  engine_.Publish(1);
  watch_->Poll(now_ns_ += kMs);
  const int64_t old_model = watch_->model();
  engine_.Make(name_, "new one", {.num_envs = 4, .nodes = 3, .generation = 2});
  Await([&] { return watch_->model() != old_model; });
  EXPECT_EQ(*watch_->glb(), "new one");
  EXPECT_EQ(watch_->newest(), nullptr) << "poses of other bodies";
  EXPECT_TRUE(watch_->tape().empty());
  engine_.Publish(5, /*nodes=*/3);
  watch_->Poll(now_ns_ += kMs);
  EXPECT_EQ(NewestX(), 5);
}

TEST_F(SceneWatchTest, ARestartedEngineIsFoundAgain) {
  engine_.Make(name_, "old");
  Await(State::kLive);
  const int64_t old_model = watch_->model();
  engine_.alive = false;
  engine_.segment.reset();
  Await(State::kLost);
  EXPECT_NE(watch_->reason(), "");
  EXPECT_EQ(watch_->freshness().StateAt(now_ns_),
            FreshnessState::kReconnecting);
  engine_.alive = true;
  engine_.Make(name_, "new");
  Await(State::kLive);
  EXPECT_NE(watch_->model(), old_model);
  EXPECT_EQ(*watch_->glb(), "new");
  EXPECT_EQ(watch_->reason(), "");
}

TEST_F(SceneWatchTest, ARestartedEngineIsAskedForEnvironmentsThatItHas) {
  engine_.Make(name_, "glb");
  const auto wanted = watch_->Join();
  *wanted = {2, 9};
  Await(State::kLive);
  engine_.alive = false;
  Await(State::kLost);
  for (const uint32_t num_envs : {3, 2}) {
    engine_.num_envs = num_envs;
    engine_.alive = true;
    Await(State::kLive);
    EXPECT_EQ(engine_.asked.back(), num_envs == 3 ? std::vector<uint32_t>{2}
                                                  : std::vector<uint32_t>{})
        << "the first ones";
    engine_.alive = false;
    Await(State::kLost);
  }
}

TEST_F(SceneWatchTest, AnEngineThatRefusesIsAskedAgainAfterAPause) {
  engine_.refuses = MakeError(ErrorCode::kEngineFailed, "no such mesh");
  Await(State::kFailed);
  EXPECT_THAT(watch_->reason(), HasSubstr("no such mesh"));
  const size_t asked = engine_.asked.size();
  for (int i = 0; i < 390; ++i) PollAfter10Ms();
  EXPECT_EQ(engine_.asked.size(), asked);
  engine_.refuses = absl::OkStatus();
  engine_.Make(name_, "glb");
  Await(State::kLive);
}

TEST_F(SceneWatchTest, AnEngineWithoutASceneIsNotAskedAgain) {
  engine_.refuses = MakeError(ErrorCode::kUnsupported, "no scene here");
  Await(State::kNone);
  EXPECT_THAT(watch_->reason(), HasSubstr("no scene here"));
  EXPECT_EQ(engine_.attached, 0) << "its slot is free";
  const size_t asked = engine_.asked.size();
  for (int i = 0; i < 200; ++i) PollAfter10Ms();
  EXPECT_EQ(engine_.asked.size(), asked);
}

TEST_F(SceneWatchTest, AGiantModelIsRefusedWithItsSize) {
  engine_.Make(name_, std::string(200U << 20, 'x'));
  Await(State::kFailed);
  EXPECT_THAT(watch_->reason(), HasSubstr("200 MiB"));
  EXPECT_EQ(watch_->glb(), nullptr);
  engine_.Make(name_, "small");
  Await(State::kLive);
}

TEST_F(SceneWatchTest, PosesThatAreNotFiniteArriveAsTheyAre) {
  engine_.Make(name_, "glb");
  Await(State::kLive);
  engine_.Publish(NAN);
  EXPECT_TRUE(watch_->Poll(now_ns_ += kMs));
  EXPECT_TRUE(std::isnan(NewestX()));
  EXPECT_FALSE(watch_->newest()->snapshot.IsFinite(0));
}

TEST_F(SceneWatchTest, WaitsForASceneThatIsNotThereYet) {
  Await([&] { return !engine_.asked.empty(); });
  for (int i = 0; i < 200; ++i) PollAfter10Ms();
  EXPECT_EQ(watch_->state(), State::kWaiting);
  engine_.Make(name_, "glb");
  Await(State::kLive);
}

}  // namespace
}  // namespace tandem
