// GlbBuilder: writes a scene as glTF 2.0 in its binary form.
//
// Data flow: geometries, materials, nodes -> Take -> the bytes of a .glb, by
// the conventions of docs/protocol.md, "The live scene".
// Ownership: a value of one thread.
//
//   GlbBuilder glb(kZUp);
//   const int ball = glb.AddMesh(glb.AddGeometry(Sphere()), {}, red);
//   const int body = glb.AddMovingNode({.name = "ball", .mesh = ball});
//   SceneModel model = std::move(glb).Take({.extent = 2});

#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine_adapter/scene/shapes.h"
#include "engine_adapter/scene_source.h"
#include "nlohmann/json.hpp"

namespace tandem {

// The rotation x, y, z, w from the engine's axes to glTF's, where y is up.
using SceneAxes = std::array<float, 4>;
inline constexpr SceneAxes kYUp = {0, 0, 0, 1};
inline constexpr SceneAxes kZUp = {-0.70710678F, 0, 0, 0.70710678F};

struct GlbMaterial {
  std::array<float, 4> rgba = {0.5F, 0.5F, 0.5F, 1};  // as on the screen (sRGB)
  float emission = 0;                                 // part of the colour
  float metallic = 0;
  float roughness = 0.7F;
  int texture = -1;  // of AddTexture; -1: none
  bool two_sided = false;
  friend auto operator<=>(const GlbMaterial&, const GlbMaterial&) = default;
};

struct GlbNode {
  std::string name;  // any bytes; made unique, and UTF-8
  std::array<float, 3> position = {0, 0, 0};
  std::array<float, 4> rotation = {0, 0, 0, 1};  // x, y, z, w
  std::array<float, 3> scale = {1, 1, 1};
  int mesh = -1;
  int light = -1;
  int skin = -1;
  nlohmann::json extras = {};  // of extras.tandem
};

struct GlbLight {
  enum class Kind : uint8_t { kDirectional, kPoint, kSpot };
  Kind kind = Kind::kDirectional;  // it shines along its node's -z axis
  std::array<float, 3> rgb = {1, 1, 1};
  float cone = 0;  // of kSpot: half its angle, radians
};

struct GlbFacts {
  float extent = 1;  // metres
  std::array<float, 3> center = {0, 0, 0};
  std::array<float, 3> up = {0, 0, 1};  // in the engine's axes
  int follow = -1;  // which moving node a viewer follows; -1: none
};

// The Add methods return the new part's index.
class GlbBuilder {
 public:
  explicit GlbBuilder(const SceneAxes& axes);

  int AddGeometry(const Shape& shape);
  // A PNG file.
  int AddTexture(std::span<const uint8_t> png);
  // Returns an earlier mesh of the same geometry and material, if there is one.
  int AddMesh(int geometry, const GlbMaterial& material);
  // Of nodes, and of float32[4, 4] matrices in columns, one for each node.
  int AddSkin(std::span<const int> joints,
              std::span<const float> inverse_binds);
  int AddLight(const GlbLight& light);

  // A child of the world whose pose is in the snapshots, in the order of calls.
  int AddMovingNode(const GlbNode& node);
  // A child of `parent`, or of the world for -1.
  int AddNode(int parent, const GlbNode& node);

  SceneModel Take(const GlbFacts& facts) &&;

 private:
  // Component types and targets of glTF.
  enum : int { kUint16 = 5123, kUint32 = 5125, kFloat = 5126 };

  int AddView(const void* data, size_t bytes);
  int AddAccessor(int view, int type, size_t count, const char* shape);
  int AddMaterial(const GlbMaterial& material);
  std::string UniqueName(absl::string_view name);

  nlohmann::json json_;
  std::string binary_;
  std::vector<nlohmann::json> geometries_;     // primitives without a material
  std::map<std::pair<int, int>, int> meshes_;  // by geometry and material
  std::map<GlbMaterial, int> materials_;
  std::vector<int> moving_;
  std::set<std::string> names_;
};

}  // namespace tandem
