#include "engine_adapter/mujoco/scene/mujoco_glb.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/error.h"
#include "base/images/image_files.h"
#include "engine_adapter/mujoco/environment/entity_ids.h"
#include "engine_adapter/mujoco/model/model_file.h"
#include "engine_adapter/mujoco/model/mujoco_log.h"
#include "engine_adapter/mujoco/model/part_names.h"
#include "engine_adapter/mujoco/model/pose.h"
#include "engine_adapter/mujoco/model/robot_body.h"
#include "engine_adapter/scene/glb_builder.h"
#include "engine_adapter/scene/shapes.h"
#include "schema/layout/scene.h"

namespace tandem {
namespace {

// MuJoCo's default view shows the groups below; a model keeps its collision
// geometry in the others.
constexpr int kFirstHiddenGroup = 3;
constexpr mjtNum kPlaneExtents = 20;  // half the side of an infinite plane

template <typename From>
std::array<float, 3> Three(const From* from) {
  return {static_cast<float>(from[0]), static_cast<float>(from[1]),
          static_cast<float>(from[2])};
}

// From MuJoCo's order, real part first.
template <typename From>
std::array<float, 4> Turn(const From* quat) {
  return {static_cast<float>(quat[1]), static_cast<float>(quat[2]),
          static_cast<float>(quat[3]), static_cast<float>(quat[0])};
}

std::string NameOf(const mjModel& model, int type, const char* kind,
                   int index) {
  std::string name = OwnName(model, type, index);
  return name.empty() ? absl::StrCat(kind, " ", index) : name;
}

class Writer {
 public:
  explicit Writer(const mjModel& model)
      : model_(model), glb_(kZUp), textures_(Count(model.ntex), kUnwritten) {}

  absl::StatusOr<SceneModel> Write() {
    TANDEM_ASSIGN_OR_RETURN(const DataPtr initial, MakeData(model_));
    ComputeTransmission(model_, initial.get());
    AddBodies(*initial);
    for (int geom = 0; geom < model_.ngeom; ++geom) {
      TANDEM_RETURN_IF_ERROR(AddGeom(geom));
    }
    for (int skin = 0; skin < model_.nskin; ++skin) {
      TANDEM_RETURN_IF_ERROR(AddSkin(skin));
    }
    for (int light = 0; light < model_.nlight; ++light) AddLight(light);
    return std::move(glb_).Take(
        {.extent = static_cast<float>(model_.stat.extent),
         .center = Three(model_.stat.center),
         .follow = RobotOf(model_, *initial) - 1});
  }

 private:
  static constexpr int kUnwritten = -2;

  static size_t Count(mjtSize count) { return static_cast<size_t>(count); }

  void AddBodies(const mjData& initial) {
    nodes_.push_back(-1);  // the world's
    for (int body = 1; body < model_.nbody; ++body) {
      const Pose pose = PoseAt(initial.xpos, initial.xquat, body);
      nodes_.push_back(glb_.AddMovingNode(
          {.name = NameOf(model_, mjOBJ_BODY, "body", body),
           .position = Three(pose.position),
           .rotation = Turn(pose.rotation),
           .extras = {{"entity", EntityId(model_, EntityKind::kBody, body)},
                      {"body", body}}}));
    }
  }

  absl::Status AddGeom(int geom) {
    const float* const rgba = model_.geom_rgba + mjtSize{4} * geom;
    TANDEM_ASSIGN_OR_RETURN(const GlbMaterial material,
                            MaterialOf(model_.geom_matid[geom], rgba));
    const bool is_hidden = model_.geom_group[geom] >= kFirstHiddenGroup;
    if (material.rgba[3] == 0 && !is_hidden) return absl::OkStatus();
    GlbNode node = {
        .name = NameOf(model_, mjOBJ_GEOM, "geom", geom),
        .position = Three(model_.geom_pos + mjtSize{3} * geom),
        .rotation = Turn(model_.geom_quat + mjtSize{4} * geom),
        .extras = {{"entity", EntityId(model_, EntityKind::kGeom, geom)}}};
    if (is_hidden) node.extras["collision"] = true;
    const int geometry = GeometryOf(geom, material.texture >= 0, &node);
    if (geometry < 0) return absl::OkStatus();
    node.mesh = glb_.AddMesh(geometry, material);
    glb_.AddNode(nodes_[Count(model_.geom_bodyid[geom])], node);
    return absl::OkStatus();
  }

  // A geometry that several geoms share, by what makes it.
  template <typename Make>
  int Shared(const std::tuple<int, int, float, float>& key, bool cube_mapped,
             const Make& make) {
    const auto [entry, is_new] =
        geometries_.emplace(std::pair(key, cube_mapped), -1);
    if (is_new) {
      const Shape shape = make();
      if (shape.indices.empty()) return -1;
      entry->second = glb_.AddGeometry(cube_mapped ? CubeMapped(shape) : shape);
    }
    return entry->second;
  }

  // Returns -1 for what has no triangles. Sets the node's scale.
  int GeometryOf(int geom, bool is_textured, GlbNode* node) {
    const int type = model_.geom_type[geom];
    const int material = model_.geom_matid[geom];
    const std::array<float, 3> size =
        Three(model_.geom_size + mjtSize{3} * geom);
    const int part = model_.geom_dataid[geom];
    const bool is_cube = is_textured && IsCube(TextureOf(material));
    switch (type) {
      case mjGEOM_PLANE:
        return PlaneOf(geom, node);
      case mjGEOM_HFIELD:
        return Shared({type, part, 0, 0}, is_cube,
                      [&] { return FieldOf(part); });
      case mjGEOM_SPHERE:
        node->scale = {size[0], size[0], size[0]};
        return Shared({mjGEOM_SPHERE, 0, 0, 0}, is_cube, Sphere);
      case mjGEOM_ELLIPSOID:
        node->scale = size;
        return Shared({mjGEOM_SPHERE, 0, 0, 0}, is_cube, Sphere);
      case mjGEOM_CAPSULE:
        return Shared({type, 0, size[0], size[1]}, is_cube,
                      [&] { return Capsule(size[0], size[1]); });
      case mjGEOM_CYLINDER:
        node->scale = {size[0], size[0], size[1]};
        return Shared({type, 0, 0, 0}, is_cube, Cylinder);
      case mjGEOM_BOX:
        node->scale = size;
        return Shared({type, 0, 0, 0}, is_cube, [] { return Box(1, 1, 1); });
      case mjGEOM_MESH:
      case mjGEOM_SDF:
        if (part < 0) return -1;
        return Shared({mjGEOM_MESH, part, 0, 0}, is_cube,
                      [&] { return MeshOf(part); });
      default:
        return -1;
    }
  }

  int PlaneOf(int geom, GlbNode* node) {
    node->extras["plane"] = true;
    const int material = model_.geom_matid[geom];
    std::array<float, 2> half;
    std::array<float, 2> repeats = {1, 1};
    for (size_t axis = 0; axis < 2; ++axis) {
      const mjtNum size =
          model_.geom_size[mjtSize{3} * geom + static_cast<mjtSize>(axis)];
      const bool is_infinite = size <= 0;
      half[axis] = static_cast<float>(
          is_infinite ? kPlaneExtents * model_.stat.extent : size);
      if (material < 0) continue;
      repeats[axis] = model_.mat_texrepeat[2 * Count(material) + axis];
      // MuJoCo's textures of 1 are two metres wide.
      if (is_infinite || model_.mat_texuniform[material] != 0) {
        repeats[axis] *= half[axis];
      }
    }
    return glb_.AddGeometry(Quad(half[0], half[1], repeats));
  }

  Shape FieldOf(int field) const {
    const mjtNum* const size = model_.hfield_size + mjtSize{4} * field;
    const auto rows = static_cast<uint32_t>(model_.hfield_nrow[field]);
    const auto columns = static_cast<uint32_t>(model_.hfield_ncol[field]);
    const float* const first = model_.hfield_data + model_.hfield_adr[field];
    std::vector<float> heights(first, first + size_t{rows} * columns);
    for (float& height : heights) height *= static_cast<float>(size[2]);
    return HeightField(heights, rows, columns, static_cast<float>(size[0]),
                       static_cast<float>(size[1]),
                       static_cast<float>(size[3]));
  }

  // A vertex of glTF is a vertex, a normal and a texture coordinate of MuJoCo.
  Shape MeshOf(int mesh) const {
    Shape shape;
    const bool has_uvs = model_.mesh_texcoordadr[mesh] >= 0;
    const auto corner_of = [&](const int* corners, mjtSize corner) {
      return corners[3 * mjtSize{model_.mesh_faceadr[mesh]} + corner];
    };
    std::map<std::array<int, 3>, uint32_t> seen;
    for (mjtSize i = 0; i < mjtSize{3} * model_.mesh_facenum[mesh]; ++i) {
      const std::array<int, 3> corner = {
          corner_of(model_.mesh_face, i), corner_of(model_.mesh_facenormal, i),
          has_uvs ? corner_of(model_.mesh_facetexcoord, i) : 0};
      const auto [entry, is_new] = seen.emplace(corner, 0);
      if (is_new) {
        const float* const uv =
            model_.mesh_texcoord +
            2 * (mjtSize{model_.mesh_texcoordadr[mesh]} + corner[2]);
        entry->second = shape.Add(
            Three(model_.mesh_vert +
                  3 * (mjtSize{model_.mesh_vertadr[mesh]} + corner[0])),
            Three(model_.mesh_normal +
                  3 * (mjtSize{model_.mesh_normaladr[mesh]} + corner[1])),
            has_uvs ? std::array<float, 2>{uv[0], uv[1]}
                    : std::array<float, 2>{0, 0});
      }
      shape.indices.push_back(entry->second);
    }
    if (!has_uvs) shape.uvs.clear();
    return shape;
  }

  absl::Status AddSkin(int skin) {
    TANDEM_ASSIGN_OR_RETURN(GlbMaterial material,
                            MaterialOf(model_.skin_matid[skin],
                                       model_.skin_rgba + mjtSize{4} * skin));
    material.two_sided = true;
    const mjtSize first = model_.skin_vertadr[skin];
    const size_t vertices = Count(model_.skin_vertnum[skin]);
    Shape shape;
    shape.positions.assign(model_.skin_vert + 3 * first,
                           model_.skin_vert + 3 * first + 3 * vertices);
    if (model_.skin_texcoordadr[skin] >= 0) {
      const float* const uv =
          model_.skin_texcoord + 2 * mjtSize{model_.skin_texcoordadr[skin]};
      shape.uvs.assign(uv, uv + 2 * vertices);
    }
    const int* const face =
        model_.skin_face + 3 * mjtSize{model_.skin_faceadr[skin]};
    shape.indices.assign(face, face + 3 * Count(model_.skin_facenum[skin]));
    if (shape.indices.empty()) return absl::OkStatus();
    SmoothNormals(&shape);
    std::vector<float> inverse_binds;
    std::vector<int> joints;
    AddBones(skin, &shape, &joints, &inverse_binds);
    GlbNode node = {.name = NameOf(model_, mjOBJ_SKIN, "skin", skin),
                    .mesh = glb_.AddMesh(glb_.AddGeometry(shape), material),
                    .skin = glb_.AddSkin(joints, inverse_binds)};
    if (model_.skin_group[skin] >= kFirstHiddenGroup) {
      node.extras["collision"] = true;
    }
    glb_.AddNode(-1, node);
    return absl::OkStatus();
  }

  // glTF's vertices have four joints: the heaviest.
  void AddBones(int skin, Shape* shape, std::vector<int>* joints,
                std::vector<float>* inverse_binds) {
    std::vector<std::vector<std::pair<float, uint16_t>>> weights(
        shape->vertices());
    for (int i = 0; i < model_.skin_bonenum[skin]; ++i) {
      const int bone = model_.skin_boneadr[skin] + i;
      Pose bind;
      mju_f2n(bind.position, model_.skin_bonebindpos + mjtSize{3} * bone, 3);
      mju_f2n(bind.rotation, model_.skin_bonebindquat + mjtSize{4} * bone, 4);
      const Pose inverse = Inverse(bind);
      mjtNum turn[9];
      mju_quat2Mat(turn, inverse.rotation);
      for (size_t column = 0; column < 3; ++column) {
        for (size_t row = 0; row < 3; ++row) {
          inverse_binds->push_back(static_cast<float>(turn[3 * row + column]));
        }
        inverse_binds->push_back(0);
      }
      const std::array<float, 3> position = Three(inverse.position);
      inverse_binds->insert(inverse_binds->end(), position.begin(),
                            position.end());
      inverse_binds->push_back(1);
      joints->push_back(
          std::max(0, nodes_[Count(model_.skin_bonebodyid[bone])]));
      const int begin = model_.skin_bonevertadr[bone];
      for (int at = begin; at < begin + model_.skin_bonevertnum[bone]; ++at) {
        weights[Count(model_.skin_bonevertid[at])].emplace_back(
            model_.skin_bonevertweight[at], static_cast<uint16_t>(i));
      }
    }
    constexpr size_t kMost = 4;
    for (auto& of_vertex : weights) {
      std::ranges::sort(of_vertex, std::greater<>());
      of_vertex.resize(kMost);
      float sum = 0;
      for (const auto& [weight, joint] : of_vertex) sum += weight;
      for (const auto& [weight, joint] : of_vertex) {
        shape->joints.push_back(joint);
        shape->weights.push_back(sum > 0 ? weight / sum : 0);
      }
    }
  }

  void AddLight(int light) {
    if (model_.light_active[light] == 0 ||
        model_.light_type[light] == mjLIGHT_IMAGE) {
      return;
    }
    const int type = model_.light_type[light];
    const int kind = glb_.AddLight(
        {.kind = type == mjLIGHT_SPOT    ? GlbLight::Kind::kSpot
                 : type == mjLIGHT_POINT ? GlbLight::Kind::kPoint
                                         : GlbLight::Kind::kDirectional,
         .rgb = Three(model_.light_diffuse + mjtSize{3} * light),
         .cone = std::min(model_.light_cutoff[light], 90.0F) *
                 static_cast<float>(mjPI / 180)});
    const mjtNum ahead[3] = {0, 0, -1};
    mjtNum turn[4] = {1, 0, 0, 0};
    const mjtNum* const direction = model_.light_dir + mjtSize{3} * light;
    mjtNum axis[3];
    mju_cross(axis, ahead, direction);
    const mjtNum sine = mju_normalize3(axis);
    mju_axisAngle2Quat(turn, axis,
                       std::atan2(sine, mju_dot3(ahead, direction)));
    glb_.AddNode(nodes_[Count(model_.light_bodyid[light])],
                 {.name = NameOf(model_, mjOBJ_LIGHT, "light", light),
                  .position = Three(model_.light_pos + mjtSize{3} * light),
                  .rotation = Turn(turn),
                  .light = kind});
  }

  // The texture of a material's colour; -1: none.
  int TextureOf(int material) const {
    if (material < 0) return -1;
    const int* const roles = model_.mat_texid + mjtSize{mjNTEXROLE} * material;
    return roles[mjTEXROLE_RGB] >= 0 ? roles[mjTEXROLE_RGB]
                                     : roles[mjTEXROLE_RGBA];
  }
  bool IsCube(int texture) const {
    return model_.tex_type[texture] != mjTEXTURE_2D;
  }

  absl::StatusOr<GlbMaterial> MaterialOf(int material, const float* rgba) {
    GlbMaterial found;
    // MuJoCo's rule: a colour of its own, other than the default, is stronger.
    const bool is_default = rgba[0] == 0.5F && rgba[1] == 0.5F &&
                            rgba[2] == 0.5F && rgba[3] == 1.0F;
    if (material >= 0) {
      if (is_default) rgba = model_.mat_rgba + mjtSize{4} * material;
      found.emission = model_.mat_emission[material];
      found.metallic = std::max(model_.mat_metallic[material], 0.0F);
      found.roughness = model_.mat_roughness[material] >= 0
                            ? model_.mat_roughness[material]
                            : 1 - model_.mat_shininess[material] *
                                      model_.mat_specular[material];
      const int texture = TextureOf(material);
      if (texture >= 0) {
        TANDEM_ASSIGN_OR_RETURN(found.texture, WrittenTexture(texture));
      }
    }
    std::copy_n(rgba, found.rgba.size(), found.rgba.begin());
    return found;
  }

  absl::StatusOr<int> WrittenTexture(int texture) {
    int& written = textures_[Count(texture)];
    if (written != kUnwritten) return written;
    const auto channels = Count(model_.tex_nchannel[texture]);
    const auto width = static_cast<uint32_t>(model_.tex_width[texture]);
    const auto height = static_cast<uint32_t>(model_.tex_height[texture]);
    const mjtByte* const first = model_.tex_data + model_.tex_adr[texture];
    const size_t pixels = size_t{width} * height;
    std::vector<std::byte> rgb;  // of grey, or of grey and alpha
    std::span<const std::byte> bytes =
        std::as_bytes(std::span(first, pixels * channels));
    if (channels < 3) {
      rgb.resize(3 * pixels);
      for (size_t i = 0; i < rgb.size(); ++i) {
        rgb[i] = bytes[i / 3 * channels];
      }
      bytes = rgb;
    }
    TANDEM_ASSIGN_OR_RETURN(const std::vector<uint8_t> png,
                            EncodePng({.pixels = bytes,
                                       .width = width,
                                       .height = height,
                                       .channels = channels == 4 ? 4U : 3U}));
    written = glb_.AddTexture(png);
    return written;
  }

  const mjModel& model_;
  GlbBuilder glb_;
  std::vector<int> nodes_;     // by body; -1: the world
  std::vector<int> textures_;  // by MuJoCo's number
  std::map<std::pair<std::tuple<int, int, float, float>, bool>, int>
      geometries_;
};

}  // namespace

absl::StatusOr<SceneModel> MujocoGlb(const mjModel& model) {
  try {
    return Writer(model).Write();
  } catch (const MujocoError& error) {
    return MakeError(ErrorCode::kEngineFailed,
                     absl::StrCat("scene: ", error.what()));
  }
}

void MujocoPoses(const mjModel& model, const mjData& data,
                 std::span<float> poses) {
  float* next = poses.data();
  for (mjtSize body = 1; body < model.nbody; ++body) {
    next = std::ranges::copy(Three(data.xpos + 3 * body), next).out;
    next = std::ranges::copy(Turn(data.xquat + 4 * body), next).out;
  }
}

uint64_t DrawnVersion(const mjModel& model) {
  const auto bytes = [](const auto* first, mjtSize count) {
    return absl::string_view(reinterpret_cast<const char*>(first),
                             sizeof(*first) * static_cast<size_t>(count));
  };
  return absl::HashOf(bytes(model.geom_size, 3 * model.ngeom),
                      bytes(model.geom_pos, 3 * model.ngeom),
                      bytes(model.geom_quat, 4 * model.ngeom),
                      bytes(model.geom_rgba, 4 * model.ngeom),
                      bytes(model.geom_matid, model.ngeom),
                      bytes(model.geom_group, model.ngeom),
                      bytes(model.mat_rgba, 4 * model.nmat),
                      bytes(model.skin_rgba, 4 * model.nskin),
                      bytes(model.hfield_size, 4 * model.nhfield),
                      bytes(model.hfield_data, model.nhfielddata),
                      bytes(model.light_pos, 3 * model.nlight),
                      bytes(model.light_dir, 3 * model.nlight),
                      bytes(model.light_diffuse, 3 * model.nlight),
                      bytes(model.light_active, model.nlight),
                      bytes(model.cam_pos, 3 * model.ncam),
                      bytes(model.cam_quat, 4 * model.ncam));
}

}  // namespace tandem
