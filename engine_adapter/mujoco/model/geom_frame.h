// FollowGeom: what a model says of a geom's place a second time.
//
// Data flow: mjModel's geom_pos, geom_quat -> geom_sameframe, bvh_aabb.
//
//   mju_copy3(model->geom_pos + mjtSize{3} * geom, place);
//   FollowGeom(model, geom);

#ifndef TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_GEOM_FRAME_H_
#define TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_GEOM_FRAME_H_

#include <mujoco/mujoco.h>

namespace tandem {

// After a geom's place in its body has changed, or its body's inertial frame:
// MuJoCo takes the place from there again, and looks for contacts there.
// mj_setConst does the same for all geoms, with all else that it derives.
void FollowGeom(mjModel* model, int geom);

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_MUJOCO_MODEL_GEOM_FRAME_H_
