// MujocoSceneSource: the SceneSource of MuJoCo environments.
//
// Data flow: a model -> MujocoGlb; environments -> MujocoPoses.
// Ownership: the engine owns it, beside the environments that it shows.
//
//   MujocoSceneSource source(model, environments);
//   source.Capture({{0, 1}}, &snapshot);

#pragma once

#include <mujoco/mujoco.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine_adapter/mujoco/environment/mujoco_environment.h"
#include "engine_adapter/scene_source.h"

namespace tandem {

// An environment with a changed model of its own is drawn by that one.
class MujocoSceneSource final : public SceneSource {
 public:
  // `environments` must outlive this object; `model` is the one that they
  // shared at first.
  MujocoSceneSource(std::shared_ptr<const mjModel> model,
                    std::vector<const MujocoEnvironment*> environments)
      : model_(std::move(model)), environments_(std::move(environments)) {}

  uint64_t Version(uint32_t env) override;
  // Copies the environment's own model, if it has one.
  Make Describe(uint32_t env) override;
  void Capture(std::span<const uint32_t> envs, PoseSnapshot* into) override;

 private:
  bool IsShared(uint32_t env) const {
    return &environments_[env]->model() == model_.get();
  }

  struct OwnVersion {
    std::optional<uint32_t> env;  // nullopt: none yet
    int64_t until_ns = 0;
    uint64_t version = 0;
  };

  std::shared_ptr<const mjModel> model_;
  std::vector<const MujocoEnvironment*> environments_;
  std::optional<uint64_t> shared_version_;  // of model_; from the first use on
  OwnVersion own_;  // of the environment that was asked last
};

}  // namespace tandem
