// MujocoScene: the bodies, geoms, cameras and lights of MuJoCo environments.
//
// Data flow: service scene <-> MujocoScene <-> mjModel, mjData.
// Ownership: the engine owns it, beside the environments that it points to.
//
//   MujocoScene scene(environments, "assets/ant.xml");
//   std::optional<uint64_t> torso = scene.IdOf("torso");

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/mujoco/environment/entity_ids.h"
#include "engine_adapter/mujoco/environment/mujoco_environment.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// Ids: all bodies in MuJoCo's order, then geoms, cameras, lights. The world's
// body is number 1, so a body's id is MuJoCo's plus 1, and every possible
// parent of a geom is listed. The world's body cannot be moved. Names are
// MuJoCo's; an object without a name has an empty one, and is found only by its
// id. If a body and a geom have one name, IdOf returns the lower id.
class MujocoScene final : public ScenePort {
 public:
  using Kind = EntityKind;
  struct Thing {
    Kind kind;
    int index;  // MuJoCo's
  };

  // At least one environment, all with one model, which comes from the file at
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
  // Moves the entity, as if it had always been there. kUnsupported, with the
  // reason, for an entity that cannot be moved, such as a camera or light that
  // MuJoCo moves (its mode is not "fixed"); and the errors of OwnModel. An
  // error leaves everything unchanged. Allocates if the environment has no own
  // model yet.
  //
  // The lifetime of a move: a body with a free joint and a mocap body keep
  // their place until the next reset, since the place is their state. All
  // others keep it permanently: their place in the body, or the body's place in
  // its parent, changes, and they move with that body or parent. Constants that
  // MuJoCo derives from the model's initial state do not change (invweight0 and
  // the like; mj_setConst), nor do masses and inertias.
  absl::Status SetTransform(uint32_t env, uint64_t id,
                            const rpc::TransformT& transform) override;

 private:
  const Thing& ThingOf(uint64_t id) const { return things_[id - 1]; }
  rpc::EntityInfoT Describe(uint32_t env, uint64_t id, Wanted wanted) const;

  std::vector<MujocoEnvironment*> environments_;
  std::string path_;
  std::vector<Thing> things_;  // id i is at i - 1
};

}  // namespace tandem
