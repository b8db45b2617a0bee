// The live scene of a hosted engine: attendants that watch it, beside a client
// that steps.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/os/shared_region.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/engine_host.h"
#include "engine_adapter/host/testing/panel.h"
#include "engine_adapter/scene_source.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/attached_scene.h"
#include "transport/client_side.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/region.h"

namespace tandem {
namespace {

constexpr uint32_t kEnvs = 4;
using Found = FrameReader::Found;

// Environments that count their steps; x of the one node is the count. Episodes
// last three steps.
class CountingEngine final : public Engine, public SceneSource {
 public:
  const EngineSchema& schema() const override { return schema_; }
  absl::Status Reset(std::span<const ResetRequest> requests,
                     const ResetIo&) override {
    for (const ResetRequest& request : requests) counts_[request.env] = 0;
    return absl::OkStatus();
  }
  absl::Status Step(std::span<const uint32_t> envs, const StepIo& io) override {
    for (const uint32_t env : envs) {
      io.rewards[env] = static_cast<float>(env);
      io.terminateds[env] = ++counts_[env] == 3;
      io.truncateds[env] = 0;
    }
    return absl::OkStatus();
  }
  double step_secs() const override { return 0.5; }
  SceneSource* scene() override { return has_scene ? this : nullptr; }

  uint64_t Version(uint32_t) override { return version; }
  Make Describe(uint32_t) override {
    ++described;
    return [this]() -> absl::StatusOr<SceneModel> {
      if (!made.ok()) return made;
      return SceneModel{.glb = "glTF", .nodes = nodes};
    };
  }
  void Capture(std::span<const uint32_t> envs, PoseSnapshot* into) override {
    ++captured;
    if (nodes == 0) return;
    for (uint32_t i = 0; i < envs.size(); ++i) {
      into->poses(i)[0] = static_cast<float>(counts_[envs[i]]);
    }
  }

  bool has_scene = true;
  uint32_t nodes = 1;
  std::atomic<uint64_t> version{7};
  std::atomic<int> described{0};
  std::atomic<int> captured{0};
  absl::Status made;

 private:
  std::vector<int> counts_ = std::vector<int>(kEnvs);
  EngineSchema schema_ = {
      .task = "Counting", .num_envs = kEnvs, .obs_size = 1, .act_size = 1};
};

// The name of a thread is in /proc; those of other tests are of other
// processes.
int SceneThreads() {
  int count = 0;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "comm");
    std::string name;
    std::getline(file, name);
    count += name == "tandem-scene";
  }
  return count;
}

class EngineHostSceneTest : public testing::Test {
 protected:
  void SetUp() override { alarm(300); }
  void TearDown() override {
    host_.reset();
    alarm(0);
  }
  void Serve(double hz = kMaxSceneHz) {
    auto host = EngineHost::Create(&engine_, {.name = name_, .scene_hz = hz});
    ASSERT_TRUE(host.ok()) << host.status();
    host_ = *std::move(host);
    host_->Start();
  }
  static absl::StatusOr<uint64_t> Watch(Panel& panel,
                                        std::vector<uint32_t> envs = {}) {
    rpc::WatchSceneRequestT request;
    request.env_ids = std::move(envs);
    return panel.calls().Open(
        Panel::Packed(rpc::MethodId::WatchScene, request));
  }
  // The next item, or the stream's error.
  static absl::StatusOr<rpc::WatchedSceneT> Item(Panel& panel,
                                                 uint64_t stream) {
    TANDEM_ASSIGN_OR_RETURN(const auto message,
                            panel.calls().Next(stream, Deadline::After(60)));
    if (!message) return absl::NotFoundError("the stream has ended");
    rpc::WatchedSceneT item;
    message->envelope().payload_as_WatchedScene()->UnPackTo(&item);
    return item;
  }
  void Step(ClientSide& client) {
    ASSERT_EQ(client.Send(std::vector<float>(kEnvs)), ErrorCode::kOk);
    ASSERT_EQ(client.Recv(Deadline::After(60)), ErrorCode::kOk);
  }
  // The next snapshot; the watchdog ends a longer wait.
  static PoseSnapshot Next(AttachedScene& scene) {
    PoseSnapshot snapshot;
    while (scene.reader().Next(&snapshot) != Found::kFrame) usleep(1000);
    return snapshot;
  }
  void AwaitNothing() const {
    const std::string path = RegionPath(SceneSegmentName(name_).value());
    while (SceneThreads() > 0 || access(path.c_str(), F_OK) == 0) usleep(1000);
  }

  const std::string name_ = UniqueRegionName("host_scene");
  CountingEngine engine_;
  std::unique_ptr<EngineHost> host_;
};

TEST_F(EngineHostSceneTest, AnUnwatchedEngineHasNoThreadAndNoSegment) {
  Serve();
  ClientSide client = *ClientSide::Attach(name_, {});
  for (int i = 0; i < 100; ++i) Step(client);
  EXPECT_EQ(SceneThreads(), 0);
  EXPECT_EQ(CodeOf(AttachedScene::Open(name_).status()), ErrorCode::kNotReady);
  EXPECT_EQ(engine_.described, 0);
  EXPECT_EQ(engine_.captured, 0);
}

TEST_F(EngineHostSceneTest, AWatcherSeesPosesAndStatistics) {
  Serve();
  ClientSide client = *ClientSide::Attach(name_, {});
  Panel panel(name_);
  const uint64_t stream = Watch(panel, {2, 0}).value();
  const rpc::WatchedSceneT item = Item(panel, stream).value();
  EXPECT_EQ(item.segment, "tandem.scene." + name_);
  EXPECT_EQ(item.generation, 1u);
  EXPECT_EQ(item.env_ids, (std::vector<uint32_t>{0, 2}));
  AttachedScene scene = AttachedScene::Open(name_).value();
  EXPECT_EQ(scene.reader().header().num_envs, kEnvs);
  // Steps 1 to 3 are of the episode that ran when the watch began.
  for (int i = 0; i < 5; ++i) Step(client);
  PoseSnapshot snapshot = Next(scene);
  while (snapshot.row(1).episode != 1 || snapshot.row(1).step != 2) {
    snapshot = Next(scene);
  }
  ASSERT_EQ(snapshot.rows(), 2u);
  const SceneRow& row = snapshot.row(1);
  EXPECT_EQ(row.env, 2u);
  EXPECT_EQ(row.flags, 0u);
  EXPECT_EQ(row.episode, 1u);
  EXPECT_EQ(row.step, 2u);
  EXPECT_EQ(row.sim_time, 1);
  EXPECT_EQ(row.episode_return, 4);
  EXPECT_EQ(row.reward, 2);
  EXPECT_EQ(snapshot.poses(1)[0], 2);
}

TEST_F(EngineHostSceneTest, WithoutStepsTheSceneIsRefreshed) {
  Serve();
  Panel panel(name_);
  ASSERT_TRUE(Item(panel, Watch(panel).value()).ok());
  AttachedScene scene = AttachedScene::Open(name_).value();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Next(scene).rows(), kEnvs);
}

TEST_F(EngineHostSceneTest, TheSceneEndsWithItsLastWatcher) {
  Serve();
  Panel first(name_);
  const uint64_t stream = Watch(first, {0}).value();
  ASSERT_TRUE(Item(first, stream).ok());
  AttachedScene scene = AttachedScene::Open(name_).value();
  {
    Panel second(name_);
    const uint64_t other = Watch(second, {3}).value();
    EXPECT_EQ(Item(second, other)->env_ids, (std::vector<uint32_t>{0, 3}));
    EXPECT_EQ(Item(first, stream)->env_ids, (std::vector<uint32_t>{0, 3}));
    first.calls().Close(stream);
    EXPECT_EQ(Item(second, other)->env_ids, (std::vector<uint32_t>{3}));
  }
  AwaitNothing();
  PoseSnapshot none;
  while (scene.reader().Next(&none) != Found::kInvalidated) {
  }
  EXPECT_EQ(engine_.described, 1);
  // The same scene again: the same generation.
  EXPECT_EQ(Item(first, Watch(first).value())->generation, 1u);
  EXPECT_FALSE(AttachedScene::Open(name_)->reader().Invalidated());
}

TEST_F(EngineHostSceneTest, TheSceneEndsWithAKilledWatcher) {
  Serve();
  std::array<int, 2> pipe_ends;
  ASSERT_EQ(pipe(pipe_ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    Panel panel(name_, "killed");
    const bool ok = Item(panel, Watch(panel).value()).ok();
    (void)!write(pipe_ends[1], ok ? "x" : "-", 1);
    for (;;) pause();
  }
  char byte = 0;
  ASSERT_EQ(read(pipe_ends[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  AwaitNothing();
  for (const int end : pipe_ends) close(end);
}

TEST_F(EngineHostSceneTest, AChangedModelIsANewGeneration) {
  Serve();
  Panel panel(name_);
  const uint64_t stream = Watch(panel).value();
  ASSERT_EQ(Item(panel, stream)->generation, 1u);
  const AttachedScene old = AttachedScene::Open(name_).value();
  ++engine_.version;
  EXPECT_EQ(Item(panel, stream)->generation, 2u);
  EXPECT_TRUE(old.reader().Invalidated());
  EXPECT_TRUE(old.Replaced());
  EXPECT_EQ(AttachedScene::Open(name_)->reader().header().generation, 2u);
}

TEST_F(EngineHostSceneTest, ASceneThatCannotBeMadeEndsTheStreamWithTheReason) {
  engine_.made = MakeError(ErrorCode::kEngineFailed, "no mesh");
  Serve();
  Panel panel(name_);
  const absl::Status status = Item(panel, Watch(panel).value()).status();
  EXPECT_EQ(CodeOf(status), ErrorCode::kEngineFailed) << status;
  AwaitNothing();
}

TEST_F(EngineHostSceneTest, RefusesWrongRequests) {
  Serve();
  Panel panel(name_);
  EXPECT_EQ(CodeOf(Item(panel, Watch(panel, {kEnvs}).value()).status()),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(Item(panel, Watch(panel, {1, 1}).value()).status()),
            ErrorCode::kInvalidArgument);
  rpc::WatchSceneRequestT request;
  request.hz = -1;
  const uint64_t stream =
      panel.calls()
          .Open(Panel::Packed(rpc::MethodId::WatchScene, request))
          .value();
  EXPECT_EQ(CodeOf(Item(panel, stream).status()), ErrorCode::kInvalidArgument);
  EXPECT_EQ(SceneThreads(), 0);
}

TEST_F(EngineHostSceneTest, AnEngineWithoutASceneSaysSo) {
  engine_.has_scene = false;
  Serve();
  Panel panel(name_);
  EXPECT_EQ(CodeOf(Item(panel, Watch(panel).value()).status()),
            ErrorCode::kUnsupported);
}

TEST_F(EngineHostSceneTest, ARateOfZeroSwitchesTheSceneOff) {
  Serve(/*hz=*/0);
  Panel panel(name_);
  EXPECT_EQ(CodeOf(Item(panel, Watch(panel).value()).status()),
            ErrorCode::kUnsupported);
  EXPECT_EQ(CodeOf(EngineHost::Create(&engine_, {.name = name_ + "x",
                                                 .scene_hz = kMaxSceneHz + 1})
                       .status()),
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace tandem
