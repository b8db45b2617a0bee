#include "engine_adapter/mujoco/model/pose.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tandem {
namespace {

// Returns the geom's bounds in the body's inertial frame, as MuJoCo's bounding
// volumes have them.
std::array<mjtNum, 6> BoundsOfGeom(const mjModel& model, int geom) {
  const int body = model.geom_bodyid[geom];
  const Pose pose = Inverse(PoseAt(model.body_ipos, model.body_iquat, body)) *
                    PoseAt(model.geom_pos, model.geom_quat, geom);
  const mjtNum* const own = model.geom_aabb + mjtSize{6} * geom;
  std::array<mjtNum, 6> bounds;  // centre, half sizes
  mju_trnVecPose(bounds.data(), pose.position, pose.rotation, own);
  std::array<mjtNum, 9> axes;
  mju_quat2Mat(axes.data(), pose.rotation);
  for (size_t i = 0; i < 3; ++i) {
    bounds[3 + i] = 0;
    for (size_t k = 0; k < 3; ++k) {
      bounds[3 + i] += std::abs(axes[3 * i + k]) * own[3 + k];
    }
  }
  return bounds;
}

}  // namespace

void FollowGeom(mjModel* model, int geom) {
  // Otherwise MuJoCo would use the body's frame for the geom.
  model->geom_sameframe[geom] = mjSAMEFRAME_NONE;
  // The body's tree of bounding boxes. Leaves are geoms. Parents come before
  // their children.
  const int body = model->geom_bodyid[geom];
  const int first = model->body_bvhadr[body];
  for (int i = model->body_bvhnum[body] - 1; i >= 0; --i) {
    const int node = first + i;
    mjtNum* const bounds = model->bvh_aabb + mjtSize{6} * node;
    if (model->bvh_nodeid[node] >= 0) {
      if (model->bvh_nodeid[node] == geom) {
        std::ranges::copy(BoundsOfGeom(*model, geom), bounds);
      }
      continue;
    }
    const int* const children = model->bvh_child + mjtSize{2} * node;
    const mjtNum* const a =
        model->bvh_aabb + mjtSize{6} * (first + children[0]);
    const mjtNum* const b =
        model->bvh_aabb + mjtSize{6} * (first + children[1]);
    for (int axis = 0; axis < 3; ++axis) {
      const mjtNum low = std::min(a[axis] - a[3 + axis], b[axis] - b[3 + axis]);
      const mjtNum high =
          std::max(a[axis] + a[3 + axis], b[axis] + b[3 + axis]);
      bounds[axis] = (low + high) / 2;
      bounds[3 + axis] = (high - low) / 2;
    }
  }
}

}  // namespace tandem
