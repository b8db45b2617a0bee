#include "engine_adapter/mujoco/environment/entity_mover.h"

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine_adapter/mujoco/model/pose.h"
#include "transport/base/error.h"

namespace tandem {
namespace {

constexpr std::array<const char*, 5> kModes = {"fixed", "track", "trackcom",
                                               "targetbody", "targetbodycom"};

Pose Replaced(Pose pose, const WantedPose& wanted) {
  if (wanted.position) mju_copy3(pose.position, wanted.position->data());
  if (wanted.rotation) mju_copy4(pose.rotation, wanted.rotation->data());
  return pose;
}

absl::Status CheckFixed(const char* what, int mode) {
  if (mode == mjCAMLIGHT_FIXED) return absl::OkStatus();
  return MakeError(
      ErrorCode::kUnsupported,
      absl::StrCat(what, ": expected one of mode fixed, found mode ",
                   kModes.at(static_cast<size_t>(mode)),
                   ", by which MuJoCo moves it along; move its body instead"));
}

// Everything that follows from joints' positions and the model's poses, and
// nothing that later steps start from (mj_forward would change the solver's
// warm start).
void UpdateTransforms(const mjModel& model, mjData* data) {
  mj_kinematics(&model, data);
  mj_comPos(&model, data);
  mj_camlight(&model, data);
}

// Moves a body that is fixed to its parent, or has joints that are not free.
// Joints turn and shift a body within the frame that the model gives it, so
// that world = parent * model's * joints', and joints' stays.
void PlaceInParent(mjModel* model, const mjData& data, int body,
                   const WantedPose& wanted) {
  const Pose parent = PoseAt(data.xpos, data.xquat, model->body_parentid[body]);
  const Pose of_model = PoseAt(model->body_pos, model->body_quat, body);
  const Pose world = PoseAt(data.xpos, data.xquat, body);
  const Pose of_joints = Inverse(parent * of_model) * world;
  const Pose placed =
      Inverse(parent) * Replaced(world, wanted) * Inverse(of_joints);
  mju_copy3(model->body_pos + mjtSize{3} * body, placed.position);
  if (wanted.rotation) {
    mju_copy4(model->body_quat + mjtSize{4} * body, placed.rotation);
  }
}

}  // namespace

absl::Status MoveBody(MujocoEnvironment* environment, int body,
                      const WantedPose& wanted) {
  const mjModel& model = environment->model();
  mjData* const data = environment->data();
  if (body == 0) {
    return MakeError(ErrorCode::kUnsupported,
                     "the world's body is where the world is; move what is "
                     "in it");
  }
  if ((model.opt.enableflags & mjENBL_SLEEP) != 0) {
    return MakeError(ErrorCode::kUnsupported,
                     "bodies of a model in which bodies fall asleep cannot be "
                     "moved; take the flag sleep out of the model");
  }
  const int mocap = model.body_mocapid[body];
  const int joint = model.body_jntadr[body];
  if (mocap >= 0) {
    if (wanted.position) {
      mju_copy3(data->mocap_pos + mjtSize{3} * mocap, wanted.position->data());
    }
    if (wanted.rotation) {
      mju_copy4(data->mocap_quat + mjtSize{4} * mocap, wanted.rotation->data());
    }
  } else if (joint >= 0 && model.jnt_type[joint] == mjJNT_FREE) {
    mjtNum* const qpos = data->qpos + model.jnt_qposadr[joint];
    if (wanted.position) mju_copy3(qpos, wanted.position->data());
    if (wanted.rotation) mju_copy4(qpos + 3, wanted.rotation->data());
  } else {
    absl::StatusOr<mjModel*> own = environment->OwnModel();
    if (!own.ok()) return own.status();
    mj_kinematics(*own, data);
    PlaceInParent(*own, *data, body, wanted);
  }
  UpdateTransforms(environment->model(), data);
  return absl::OkStatus();
}

absl::Status MoveGeom(MujocoEnvironment* environment, int geom,
                      const WantedPose& wanted) {
  absl::StatusOr<mjModel*> own = environment->OwnModel();
  if (!own.ok()) return own.status();
  mjModel* const model = *own;
  mjData* const data = environment->data();
  const Pose body = PoseAt(data->xpos, data->xquat, model->geom_bodyid[geom]);
  const Pose world =
      Replaced(PoseAt(data->geom_xpos, data->geom_xquat, geom), wanted);
  const Pose placed = Inverse(body) * world;
  mju_copy3(model->geom_pos + mjtSize{3} * geom, placed.position);
  if (wanted.rotation) {
    mju_copy4(model->geom_quat + mjtSize{4} * geom, placed.rotation);
  }
  FollowGeom(model, geom);
  mju_copy3(data->geom_xpos + mjtSize{3} * geom, world.position);
  mju_copy4(data->geom_xquat + mjtSize{4} * geom, world.rotation);
  mju_quat2Mat(data->geom_xmat + mjtSize{9} * geom, world.rotation);
  return absl::OkStatus();
}

absl::Status MoveCamera(MujocoEnvironment* environment, int camera,
                        const WantedPose& wanted) {
  absl::Status status =
      CheckFixed("camera", environment->model().cam_mode[camera]);
  if (!status.ok()) return status;
  absl::StatusOr<mjModel*> own = environment->OwnModel();
  if (!own.ok()) return own.status();
  mjModel* const model = *own;
  mjData* const data = environment->data();
  const Pose body = PoseAt(data->xpos, data->xquat, model->cam_bodyid[camera]);
  const Pose placed = Inverse(body) * Replaced({}, wanted);
  if (wanted.position) {
    mju_copy3(model->cam_pos + mjtSize{3} * camera, placed.position);
  }
  if (wanted.rotation) {
    mju_copy4(model->cam_quat + mjtSize{4} * camera, placed.rotation);
  }
  mj_camlight(model, data);
  return absl::OkStatus();
}

absl::Status MoveLight(MujocoEnvironment* environment, int light,
                       const WantedPose& wanted) {
  absl::Status status =
      CheckFixed("light", environment->model().light_mode[light]);
  if (!status.ok()) return status;
  absl::StatusOr<mjModel*> own = environment->OwnModel();
  if (!own.ok()) return own.status();
  mjModel* const model = *own;
  mjData* const data = environment->data();
  const Pose body = PoseAt(data->xpos, data->xquat, model->light_bodyid[light]);
  const Pose placed = Inverse(body) * Replaced({}, wanted);
  if (wanted.position) {
    mju_copy3(model->light_pos + mjtSize{3} * light, placed.position);
  }
  if (wanted.rotation) {
    constexpr mjtNum kDown[3] = {0, 0, -1};
    mju_rotVecQuat(model->light_dir + mjtSize{3} * light, kDown,
                   placed.rotation);
  }
  mj_camlight(model, data);
  return absl::OkStatus();
}

}  // namespace tandem
