#include "engine_adapter/mujoco/environment/mujoco_scene.h"

#include <mujoco/mujoco.h>

#include <array>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "engine_adapter/mujoco/model/part_names.h"
#include "engine_adapter/mujoco/model/pose.h"

namespace tandem {
namespace {

// World coordinates; absent parts stay unchanged.
struct WantedPose {
  std::optional<std::array<mjtNum, 3>> position = {};
  // A unit quaternion, real part first.
  std::optional<std::array<mjtNum, 4>> rotation = {};
};

constexpr std::array<const char*, 5> kModes = {"fixed", "track", "trackcom",
                                               "targetbody", "targetbodycom"};

void Put(const WantedPose& wanted, mjtNum* position, mjtNum* rotation) {
  if (wanted.position) mju_copy3(position, wanted.position->data());
  if (wanted.rotation) mju_copy4(rotation, wanted.rotation->data());
}

Pose Replaced(Pose pose, const WantedPose& wanted) {
  Put(wanted, pose.position, pose.rotation);
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

// Updates the poses, which depend on joint positions and the model's poses. It
// changes no input of later steps, and simulates nothing.
void UpdateTransforms(const mjModel& model, mjData* data) {
  mj_kinematics(&model, data);
  mj_comPos(&model, data);
  mj_camlight(&model, data);
}

// Moves a body that has no free joint. Its world pose is
// parent * of_model * of_joints; this function keeps of_joints.
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

using Kind = MujocoScene::Kind;
using Thing = MujocoScene::Thing;

constexpr std::array<const char*, 4> kJoints = {"free joint", "ball joint",
                                                "slide joint", "hinge joint"};
static_assert(mjJNT_FREE == 0 && mjJNT_HINGE == 3);
constexpr std::array<const char*, 9> kGeoms = {
    "plane",    "hfield", "sphere", "capsule", "ellipsoid",
    "cylinder", "box",    "mesh",   "sdf"};
static_assert(mjGEOM_PLANE == 0 && mjGEOM_SDF == 8);

std::string NameOf(const mjModel& model, const Thing& thing) {
  return OwnName(model, ObjectType(thing.kind), thing.index);
}

std::vector<std::string> ComponentsOf(const mjModel& model,
                                      const Thing& thing) {
  switch (thing.kind) {
    case Kind::kBody: {
      std::vector<std::string> components = {"body"};
      if (model.body_mocapid[thing.index] >= 0) {
        components.emplace_back("mocap");
      }
      const int first = model.body_jntadr[thing.index];
      for (int i = 0; i < model.body_jntnum[thing.index]; ++i) {
        const auto type = static_cast<size_t>(model.jnt_type[first + i]);
        components.emplace_back(kJoints.at(type));
      }
      return components;
    }
    case Kind::kGeom: {
      const auto type = static_cast<size_t>(model.geom_type[thing.index]);
      return {"geom", kGeoms.at(type)};
    }
    case Kind::kCamera:
      return {"camera"};
    case Kind::kLight:
      break;
  }
  return {"light"};
}

Pose PoseOf(const mjData& data, const Thing& thing) {
  Pose pose;
  switch (thing.kind) {
    case Kind::kBody:
      return PoseAt(data.xpos, data.xquat, thing.index);
    case Kind::kGeom:
      return PoseAt(data.geom_xpos, data.geom_xquat, thing.index);
    case Kind::kCamera:
      mju_copy3(pose.position, data.cam_xpos + mjtSize{3} * thing.index);
      mju_mat2Quat(pose.rotation, data.cam_xmat + mjtSize{9} * thing.index);
      return pose;
    case Kind::kLight:
      break;
  }
  mju_copy3(pose.position, data.light_xpos + mjtSize{3} * thing.index);
  // The smallest rotation from straight down, the default direction of a light.
  mjtNum up[3];
  mju_scl3(up, data.light_xdir + mjtSize{3} * thing.index, -1);
  mju_quatZ2Vec(pose.rotation, up);
  return pose;
}

std::unique_ptr<rpc::TransformT> TransformOf(const Pose& pose) {
  const auto at = [](mjtNum value) { return static_cast<float>(value); };
  const mjtNum* const p = pose.position;
  const mjtNum* const r = pose.rotation;
  auto transform = std::make_unique<rpc::TransformT>();
  transform->position =
      std::make_unique<rpc::Vec3>(at(p[0]), at(p[1]), at(p[2]));
  transform->rotation =
      std::make_unique<rpc::Quat>(at(r[1]), at(r[2]), at(r[3]), at(r[0]));
  transform->scale = std::make_unique<rpc::Vec3>(1.0F, 1.0F, 1.0F);
  return transform;
}

std::string Text(const rpc::Vec3& v) {
  return absl::StrCat("(", v.x(), ", ", v.y(), ", ", v.z(), ")");
}

absl::StatusOr<WantedPose> WantedOf(const rpc::TransformT& transform) {
  WantedPose wanted;
  if (transform.position != nullptr) {
    const rpc::Vec3& p = *transform.position;
    for (const float part : {p.x(), p.y(), p.z()}) {
      // MuJoCo resets a state with a greater value.
      if (!(std::abs(static_cast<mjtNum>(part)) <= mjMAXVAL)) {
        return MakeError(ErrorCode::kInvalidArgument,
                         absl::StrCat("position: expected numbers of at most ",
                                      mjMAXVAL, ", found ", Text(p)));
      }
    }
    wanted.position = {p.x(), p.y(), p.z()};
  }
  if (transform.rotation != nullptr) {
    const rpc::Quat& r = *transform.rotation;
    std::array<mjtNum, 4> quat = {r.w(), r.x(), r.y(), r.z()};
    const mjtNum norm = mju_norm(quat.data(), 4);
    if (!std::isfinite(norm) || norm < mjMINVAL) {
      return MakeError(
          ErrorCode::kInvalidArgument,
          absl::StrCat("rotation: expected a quaternion of some length, found "
                       "(",
                       r.x(), ", ", r.y(), ", ", r.z(), ", ", r.w(), ")"));
    }
    mju_normalize4(quat.data());
    wanted.rotation = quat;
  }
  if (transform.scale != nullptr) {
    const rpc::Vec3& s = *transform.scale;
    if (!std::isfinite(s.x()) || !std::isfinite(s.y()) ||
        !std::isfinite(s.z())) {
      return MakeError(
          ErrorCode::kInvalidArgument,
          absl::StrCat("scale: expected numbers, found ", Text(s)));
    }
    if (s.x() != 1 || s.y() != 1 || s.z() != 1) {
      return MakeError(
          ErrorCode::kUnsupported,
          absl::StrCat("scale: expected (1, 1, 1) or none, found ", Text(s),
                       "; MuJoCo's things keep the size that their model "
                       "gives them"));
    }
  }
  return wanted;
}

// Moves the body and all its descendants, with any joints; velocities do not
// change. After a step, transforms are one timestep behind the joints'
// positions; this function updates all transforms of the environment.
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
    Put(wanted, data->mocap_pos + mjtSize{3} * mocap,
        data->mocap_quat + mjtSize{4} * mocap);
  } else if (joint >= 0 && model.jnt_type[joint] == mjJNT_FREE) {
    mjtNum* const qpos = data->qpos + model.jnt_qposadr[joint];
    Put(wanted, qpos, qpos + 3);
  } else {
    TANDEM_ASSIGN_OR_RETURN(mjModel* const own, environment->OwnModel());
    mj_kinematics(own, data);
    PlaceInParent(own, *data, body, wanted);
  }
  UpdateTransforms(environment->model(), data);
  return absl::OkStatus();
}

// A mesh's frame is MuJoCo's: its centre and principal axes.
absl::Status MoveGeom(MujocoEnvironment* environment, int geom,
                      const WantedPose& wanted) {
  TANDEM_ASSIGN_OR_RETURN(mjModel* const model, environment->OwnModel());
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
  TANDEM_RETURN_IF_ERROR(
      CheckFixed("camera", environment->model().cam_mode[camera]));
  TANDEM_ASSIGN_OR_RETURN(mjModel* const model, environment->OwnModel());
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

// A light has only a direction: the rotation of straight down.
absl::Status MoveLight(MujocoEnvironment* environment, int light,
                       const WantedPose& wanted) {
  TANDEM_RETURN_IF_ERROR(
      CheckFixed("light", environment->model().light_mode[light]));
  TANDEM_ASSIGN_OR_RETURN(mjModel* const model, environment->OwnModel());
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

}  // namespace

MujocoScene::MujocoScene(std::vector<MujocoEnvironment*> environments,
                         std::string path)
    : environments_(std::move(environments)), path_(std::move(path)) {
  const mjModel& model = environments_.front()->model();
  for (const Kind kind : kEntityKinds) {
    for (int index = 0; index < CountOf(model, kind); ++index) {
      things_.push_back({.kind = kind, .index = index});
    }
  }
}

std::string MujocoScene::scene_name() const {
  return environments_.front()->model().names;  // the model's name is first
}

std::vector<rpc::EntityInfoT> MujocoScene::Entities(uint32_t env,
                                                    Wanted wanted) const {
  std::vector<rpc::EntityInfoT> entities;
  entities.reserve(things_.size());
  for (uint64_t id = 1; id <= things_.size(); ++id) {
    entities.push_back(Describe(env, id, wanted));
  }
  return entities;
}

std::optional<rpc::EntityInfoT> MujocoScene::Entity(uint32_t env,
                                                    uint64_t id) const {
  if (id == 0 || id > things_.size()) return std::nullopt;
  return Describe(env, id, {.transforms = true, .components = true});
}

std::optional<uint64_t> MujocoScene::IdOf(absl::string_view name) const {
  if (name.empty()) return std::nullopt;
  const mjModel& model = environments_.front()->model();
  for (uint64_t id = 1; id <= things_.size(); ++id) {
    if (NameOf(model, ThingOf(id)) == name) return id;
  }
  return std::nullopt;
}

absl::Status MujocoScene::SetTransform(uint32_t env, uint64_t id,
                                       const rpc::TransformT& transform) {
  TANDEM_ASSIGN_OR_RETURN(const WantedPose wanted, WantedOf(transform));
  MujocoEnvironment* const environment = environments_[env];
  const Thing& thing = ThingOf(id);
  switch (thing.kind) {
    case Kind::kBody:
      return MoveBody(environment, thing.index, wanted);
    case Kind::kGeom:
      return MoveGeom(environment, thing.index, wanted);
    case Kind::kCamera:
      return MoveCamera(environment, thing.index, wanted);
    case Kind::kLight:
      break;
  }
  return MoveLight(environment, thing.index, wanted);
}

rpc::EntityInfoT MujocoScene::Describe(uint32_t env, uint64_t id,
                                       Wanted wanted) const {
  const MujocoEnvironment& environment = *environments_[env];
  const Thing& thing = ThingOf(id);
  rpc::EntityInfoT entity;
  entity.id = id;
  entity.name = NameOf(environment.model(), thing);
  if (wanted.transforms) {
    entity.transform = TransformOf(PoseOf(*environment.data(), thing));
  }
  if (wanted.components) {
    entity.components = ComponentsOf(environment.model(), thing);
  }
  return entity;
}

}  // namespace tandem
