// Moves one thing of an environment, so that MuJoCo's later steps are as if it
// had always been there.
//
// Data flow: wanted pose in the world -> qpos, mocap_pos or the environment's
// own model -> transforms in mjData.
// Ownership: none; between two steps, by the thread that steps.
//
//   absl::Status status = MoveBody(&environment, body, {.position = place});

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_ENVIRONMENT_ENTITY_MOVER_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_ENVIRONMENT_ENTITY_MOVER_H_

#include <mujoco/mujoco.h>

#include <array>
#include <optional>

#include "absl/status/status.h"
#include "engine_adapter/mujoco/environment/mujoco_environment.h"

namespace tandem {

// In the world; what is absent stays as it is.
struct WantedPose {
  std::optional<std::array<mjtNum, 3>> position = {};
  // A unit quaternion, real part first.
  std::optional<std::array<mjtNum, 4>> rotation = {};
};

// All: kUnsupported for what cannot be moved, saying why, and the errors of
// OwnModel; nothing has changed then. They allocate when the environment has no
// model of its own yet.
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

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_ENVIRONMENT_ENTITY_MOVER_H_
