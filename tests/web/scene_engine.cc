// An engine whose scene is a file, for tests of those that show scenes.
//
// SCENE_GLB: the path of its GLB; without it there is no scene. SCENE_NODES:
// how many of its nodes move; SCENE_BAD_NODE: one whose poses are not finite.
// In step `s` of environment `e` node `n` is at (n + s / 100, e, 1), turned by
// s / 10 radians around z.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine_adapter/reference/counter_engine.h"
#include "engine_adapter/scene_source.h"
#include "engine_adapter/server_main.h"

namespace tandem {
namespace {

int NumberOf(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

class FileScene final : public SceneSource {
 public:
  explicit FileScene(uint32_t num_envs) : steps_(num_envs) {}

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

  void Reset(uint32_t env) { steps_[env] = 0; }
  void Step(uint32_t env) { ++steps_[env]; }

 private:
  const uint32_t nodes_ = static_cast<uint32_t>(NumberOf("SCENE_NODES", 1));
  const uint32_t bad_node_ =
      static_cast<uint32_t>(NumberOf("SCENE_BAD_NODE", -1));
  std::vector<uint32_t> steps_;  // since the reset
};

class SceneEngine final : public Engine {
 public:
  explicit SceneEngine(uint32_t num_envs)
      : counter_({.num_envs = num_envs, .truncate_after = 500}),
        scene_(num_envs) {}

  const EngineSchema& schema() const override { return counter_.schema(); }
  absl::Status Reset(std::span<const ResetRequest> requests,
                     const ResetIo& io) override {
    for (const ResetRequest& request : requests) scene_.Reset(request.env);
    return counter_.Reset(requests, io);
  }
  absl::Status Step(std::span<const uint32_t> envs, const StepIo& io) override {
    for (const uint32_t env : envs) scene_.Step(env);
    return counter_.Step(envs, io);
  }
  SceneSource* scene() override {
    return std::getenv("SCENE_GLB") == nullptr ? nullptr : &scene_;
  }

 private:
  CounterEngine counter_;
  FileScene scene_;
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
