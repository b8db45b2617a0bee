// MujocoGlb: a MuJoCo model as glTF, and the poses of its bodies.
//
// Data flow: mjModel -> a GLB of all bodies, geoms, skins and lights; mjData ->
// the poses of the bodies, in the order of the GLB's moving nodes.
// docs/protocol.md, "The live scene", has the conventions.
//
//   TANDEM_ASSIGN_OR_RETURN(SceneModel scene, MujocoGlb(model));
//   MujocoPoses(model, data, snapshot.poses(0));

#pragma once

#include <mujoco/mujoco.h>

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "engine_adapter/scene_source.h"

namespace tandem {

// Every body but the world's moves. Of what MuJoCo draws, tendons, flexes,
// sites and skyboxes are left out. kEngineFailed: MuJoCo's error text, or a
// texture that is no image. Takes milliseconds to seconds, by the textures.
absl::StatusOr<SceneModel> MujocoGlb(const mjModel& model);

// Writes float32[nbody - 1, kPoseFloats]: xpos and xquat.
void MujocoPoses(const mjModel& model, const mjData& data,
                 std::span<float> poses);

// Differs if MujocoGlb would write another scene for models of the same file.
uint64_t DrawnVersion(const mjModel& model);

}  // namespace tandem
