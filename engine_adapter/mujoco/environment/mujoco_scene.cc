#include "engine_adapter/mujoco/environment/mujoco_scene.h"

#include <mujoco/mujoco.h>

#include <array>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine_adapter/mujoco/environment/entity_mover.h"
#include "engine_adapter/mujoco/model/pose.h"
#include "transport/base/error.h"

namespace tandem {
namespace {

using Kind = MujocoScene::Kind;
using Thing = MujocoScene::Thing;

constexpr std::array<const char*, 4> kJoints = {"free joint", "ball joint",
                                                "slide joint", "hinge joint"};
static_assert(mjJNT_FREE == 0 && mjJNT_HINGE == 3);
constexpr std::array<const char*, 9> kGeoms = {
    "plane",    "hfield", "sphere", "capsule", "ellipsoid",
    "cylinder", "box",    "mesh",   "sdf"};
static_assert(mjGEOM_PLANE == 0 && mjGEOM_SDF == 8);

int MujocoTypeOf(Kind kind) {
  switch (kind) {
    case Kind::kBody:
      return mjOBJ_BODY;
    case Kind::kGeom:
      return mjOBJ_GEOM;
    case Kind::kCamera:
      return mjOBJ_CAMERA;
    case Kind::kLight:
      break;
  }
  return mjOBJ_LIGHT;
}

std::string NameOf(const mjModel& model, const Thing& thing) {
  const char* const name =
      mj_id2name(&model, MujocoTypeOf(thing.kind), thing.index);
  return name == nullptr ? "" : name;
}

std::vector<std::string> ComponentsOf(const mjModel& model,
                                      const Thing& thing) {
  switch (thing.kind) {
    case Kind::kBody: {
      std::vector<std::string> components = {"body"};
      if (model.body_mocapid[thing.index] >= 0)
        components.emplace_back("mocap");
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
  // The smallest turn from straight down, which an unturned light shines.
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
      // Beyond it, MuJoCo takes a state for broken and resets it.
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
  return environments_.front()->model().names;  // the model's own comes first
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
  const absl::StatusOr<WantedPose> wanted = WantedOf(transform);
  if (!wanted.ok()) return wanted.status();
  MujocoEnvironment* const environment = environments_[env];
  const Thing& thing = ThingOf(id);
  switch (thing.kind) {
    case Kind::kBody:
      return MoveBody(environment, thing.index, *wanted);
    case Kind::kGeom:
      return MoveGeom(environment, thing.index, *wanted);
    case Kind::kCamera:
      return MoveCamera(environment, thing.index, *wanted);
    case Kind::kLight:
      break;
  }
  return MoveLight(environment, thing.index, *wanted);
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
