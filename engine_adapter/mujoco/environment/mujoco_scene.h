// MujocoScene: bodies, geoms, cameras and lights of MuJoCo environments.
// MoveBody and the like move one of them, as if it had always been there.
//
// Data flow: service scene <-> MujocoScene <-> mjModel, mjData.
// Ownership: the engine's, beside the environments that it points to.
//
//   MujocoScene scene(environments, "assets/ant.xml");
//   std::optional<uint64_t> torso = scene.IdOf("torso");

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_ENVIRONMENT_MUJOCO_SCENE_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_ENVIRONMENT_MUJOCO_SCENE_H_

#include <mujoco/mujoco.h>

#include <array>
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

// In the world; what is absent stays as it is.
struct WantedPose {
  std::optional<std::array<mjtNum, 3>> position = {};
  // A unit quaternion, real part first.
  std::optional<std::array<mjtNum, 4>> rotation = {};
};

// All: kUnsupported for entities that cannot be moved, with the reason; and the
// errors of OwnModel. An error leaves everything unchanged. They allocate when
// the environment has no model of its own yet.
//
// How long a thing stays where it was put: a body with a free joint and a mocap
// body until the next reset, since that is their state; everything else for
// good, since its place in its body, or the body's in its parent, is what
// changes: there it stays while the body or parent moves on. The model's
// constants that MuJoCo derives from its initial state stay as they are
// (invweight0 and the like; mj_setConst), and so do masses and inertias.

// The body and all that hangs on it, whatever joints it has; velocities stay.
// A step leaves transforms one timestep behind the joints' positions; this
// brings all of the environment's up to them.
absl::Status MoveBody(MujocoEnvironment* environment, int body,
                      const WantedPose& wanted);

// A mesh's frame is the one that MuJoCo gives it: its centre and principal
// axes.
absl::Status MoveGeom(MujocoEnvironment* environment, int geom,
                      const WantedPose& wanted);

// Not one that MuJoCo moves along (its mode is not "fixed").
absl::Status MoveCamera(MujocoEnvironment* environment, int camera,
                        const WantedPose& wanted);

// The same. A light has a direction only: that is where the rotation turns the
// direction of an unturned one, straight down.
absl::Status MoveLight(MujocoEnvironment* environment, int light,
                       const WantedPose& wanted);

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
  // MoveBody and the others say what moves how, and how long it stays there.
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
