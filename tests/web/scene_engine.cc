// An engine whose scene is a file, for tests of those that show scenes.
//
// SCENE_GLB: the path of its GLB; without it there is no scene. SCENE_NODES:
// how many of its nodes move; SCENE_BAD_NODE: one whose poses are not finite.
// In step `s` of environment `e` node `n` is at (n + s / 100, e, 1), turned by
// s / 10 radians around z.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine_adapter/engine.h"
#include "engine_adapter/scene_source.h"
#include "engine_adapter/server_main.h"

namespace tandem {
namespace {

int NumberOf(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

class SceneEngine final : public Engine, private SceneSource {
 public:
  explicit SceneEngine(uint32_t num_envs)
      : schema_({.task = "SceneFile",
                 .num_envs = num_envs,
                 .obs_size = 1,
                 .act_size = 1}),
        steps_(num_envs) {}

  const EngineSchema& schema() const override { return schema_; }
  absl::Status Reset(std::span<const ResetRequest> requests,
                     const ResetIo& io) override {
    for (const ResetRequest& request : requests) {
      steps_[request.env] = 0;
      io.obs[request.env] = 0;
    }
    return absl::OkStatus();
  }
  absl::Status Step(std::span<const uint32_t> envs, const StepIo& io) override {
    for (const uint32_t env : envs) {
      io.obs[env] = static_cast<float>(++steps_[env]);
      io.rewards[env] = io.actions[env];
      io.terminateds[env] = 0;
      io.truncateds[env] = steps_[env] == kEpisodeSteps ? 1 : 0;
    }
    return absl::OkStatus();
  }
  SceneSource* scene() override {
    return std::getenv("SCENE_GLB") == nullptr ? nullptr : this;
  }

 private:
  static constexpr uint32_t kEpisodeSteps = 500;

  uint64_t Version(uint32_t) override { return 1; }
  Make Describe(uint32_t) override {
    return [nodes = nodes_]() -> absl::StatusOr<SceneModel> {
      std::ifstream file(std::getenv("SCENE_GLB"), std::ios::binary);
      return SceneModel{
          .glb = std::string(std::istreambuf_iterator<char>(file), {}),
          .nodes = nodes};
    };
  }
  void Capture(std::span<const uint32_t> envs, PoseSnapshot* into) override {
    for (uint32_t i = 0; i < envs.size(); ++i) {
      const auto step = static_cast<float>(steps_[envs[i]]);
      into->row(i).sim_time = step / 100;
      into->row(i).flags &= ~kSceneUnknownTime;
      for (uint32_t node = 0; node < nodes_; ++node) {
        const float x = node == bad_node_
                            ? std::numeric_limits<float>::quiet_NaN()
                            : static_cast<float>(node) + step / 100;
        const float pose[] = {x,
                              static_cast<float>(envs[i]),
                              1,
                              0,
                              0,
                              std::sin(step / 20),
                              std::cos(step / 20)};
        std::ranges::copy(pose, into->poses(i).begin() + node * kPoseFloats);
      }
    }
  }

  const EngineSchema schema_;
  const uint32_t nodes_ = static_cast<uint32_t>(NumberOf("SCENE_NODES", 1));
  const uint32_t bad_node_ =
      static_cast<uint32_t>(NumberOf("SCENE_BAD_NODE", -1));
  std::vector<uint32_t> steps_;  // since the reset
};

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  return tandem::RunServer(
      argc, argv, "Serves a scene from a file, for tests.",
      [](const tandem::ServerOptions& options) {
        return std::make_unique<tandem::SceneEngine>(options.num_envs);
      });
}
