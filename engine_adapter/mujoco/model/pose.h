// Pose: where a frame is within another one, and how it is turned. FollowGeom:
// keeps what a model derives from a geom's place.
//
//   Pose in_parent = Inverse(parent) * wanted;

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_POSE_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_POSE_H_

#include <mujoco/mujoco.h>

namespace tandem {

struct Pose {
  mjtNum position[3] = {0, 0, 0};
  mjtNum rotation[4] = {1, 0, 0, 0};  // a unit quaternion, real part first
};

// From an array of positions and one of quaternions.
inline Pose PoseAt(const mjtNum* positions, const mjtNum* rotations,
                   int index) {
  Pose pose;
  mju_copy3(pose.position, positions + mjtSize{3} * index);
  mju_copy4(pose.rotation, rotations + mjtSize{4} * index);
  return pose;
}

// `inner`, which is given within `outer`, in what `outer` is given in.
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

// After a geom's place in its body has changed, or its body's inertial frame:
// MuJoCo takes the place from there again, and looks for contacts there.
// mj_setConst does the same for all geoms, with all else that it derives.
void FollowGeom(mjModel* model, int geom);

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_POSE_H_
