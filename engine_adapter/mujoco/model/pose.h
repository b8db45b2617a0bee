// Pose: position and rotation of a frame in another frame. FollowGeom: updates
// the values that a model derives from a geom's pose.
//
//   Pose in_parent = Inverse(parent) * wanted;

#pragma once

#include <mujoco/mujoco.h>

namespace tandem {

struct Pose {
  mjtNum position[3] = {0, 0, 0};
  mjtNum rotation[4] = {1, 0, 0, 0};  // a unit quaternion, real part first
};

// Returns element `index` of an array of positions and one of quaternions.
inline Pose PoseAt(const mjtNum* positions, const mjtNum* rotations,
                   int index) {
  Pose pose;
  mju_copy3(pose.position, positions + mjtSize{3} * index);
  mju_copy4(pose.rotation, rotations + mjtSize{4} * index);
  return pose;
}

// `inner` is a pose in the frame `outer`. Returns it in the frame in which
// `outer` is given.
inline Pose operator*(const Pose& outer, const Pose& inner) {
  Pose pose;
  mju_mulPose(pose.position, pose.rotation, outer.position, outer.rotation,
              inner.position, inner.rotation);
  mju_normalize4(pose.rotation);
  return pose;
}

inline Pose Inverse(const Pose& pose) {
  Pose inverse;
  mju_negPose(inverse.position, inverse.rotation, pose.position, pose.rotation);
  return inverse;
}

// Call it after a change of a geom's pose in its body, or of the body's
// inertial frame. Updates the bounds by which MuJoCo finds contacts. Unlike
// mj_setConst, it changes this geom's values only.
void FollowGeom(mjModel* model, int geom);

}  // namespace tandem
