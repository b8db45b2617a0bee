// MujocoScene: bodies, geoms, cameras and lights of MuJoCo environments.
//
// Data flow: service scene <-> MujocoScene <-> mjModel, mjData.
// Ownership: the engine's, beside the environments that it points to.
//
//   MujocoScene scene(environments, "assets/ant.xml");
//   std::optional<uint64_t> torso = scene.IdOf("torso");

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_ENVIRONMENT_MUJOCO_SCENE_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_ENVIRONMENT_MUJOCO_SCENE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine_adapter/mujoco/environment/entity_ids.h"
#include "engine_adapter/mujoco/environment/mujoco_environment.h"
#include "engine_adapter/ports/engine_ports.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// Ids: all bodies in MuJoCo's order, then geoms, cameras, lights. The world's
// body is one of them, number 1, so that a body's id is MuJoCo's plus 1 and
// whatever a geom can belong to is listed; it cannot be moved.
// Names are MuJoCo's; empty for what has none, which only its id finds. A body
// and a geom may have the same name: the lower id is found by it.
class MujocoScene final : public ScenePort {
 public:
  using Kind = EntityKind;
  struct Thing {
    Kind kind;
    int index;  // MuJoCo's
  };

  // At least one environment, all of one model, which comes from the file at
  // `path`.
  MujocoScene(std::vector<MujocoEnvironment*> environments, std::string path);

  std::string scene_name() const override;
  std::string scene_path() const override { return path_; }
  uint32_t entity_count() const override {
    return static_cast<uint32_t>(things_.size());
  }
  std::vector<rpc::EntityInfoT> Entities(uint32_t env,
                                         Wanted wanted) const override;
  std::optional<rpc::EntityInfoT> Entity(uint32_t env,
                                         uint64_t id) const override;
  std::optional<uint64_t> IdOf(absl::string_view name) const override;
  // What moves how, and for how long it stays there: entity_mover.h.
  absl::Status SetTransform(uint32_t env, uint64_t id,
                            const rpc::TransformT& transform) override;

 private:
  const Thing& ThingOf(uint64_t id) const { return things_[id - 1]; }
  rpc::EntityInfoT Describe(uint32_t env, uint64_t id, Wanted wanted) const;

  std::vector<MujocoEnvironment*> environments_;
  std::string path_;
  std::vector<Thing> things_;  // that of id i at i - 1
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_ENVIRONMENT_MUJOCO_SCENE_H_
