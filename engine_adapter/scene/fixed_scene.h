// FixedScene: the SceneSource of environments whose model never changes.
//
// Data flow: a function that makes the GLB, once for each watch; one that
// writes an environment's poses.
// Ownership: the engine owns it, beside what the functions read.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>

#include "engine_adapter/scene_source.h"
#include "schema/layout/scene.h"

namespace tandem {

// Writes a pose with a rotation about z.
inline void PutPose(const std::array<double, 3>& position, double angle,
                    std::span<float> pose) {
  const std::array<double, kPoseFloats> numbers = {
      position[0], position[1],         position[2],        0,
      0,           std::sin(angle / 2), std::cos(angle / 2)};
  std::ranges::transform(numbers, pose.begin(),
                         [](double x) { return static_cast<float>(x); });
}

class FixedScene final : public SceneSource {
 public:
  // `make` runs in the scene thread, so it reads no environment; `place` writes
  // the poses of an environment in the stepping thread.
  using Place = std::function<void(uint32_t env, std::span<float> poses)>;
  FixedScene(SceneModel (*make)(), Place place)
      : make_(make), place_(std::move(place)) {}

  uint64_t Version(uint32_t /*env*/) override { return 0; }
  Make Describe(uint32_t /*env*/) override { return make_; }
  void Capture(std::span<const uint32_t> envs, PoseSnapshot* into) override {
    for (uint32_t i = 0; i < envs.size(); ++i) place_(envs[i], into->poses(i));
  }

 private:
  SceneModel (*const make_)();
  const Place place_;
};

}  // namespace tandem
