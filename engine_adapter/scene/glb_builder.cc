#include "engine_adapter/scene/glb_builder.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

using nlohmann::json;

constexpr int kWorld = 0;

// From a colour of the screen to glTF's linear one.
float Linear(float value) {
  return value <= 0.04045F ? value / 12.92F
                           : std::pow((value + 0.055F) / 1.055F, 2.4F);
}

// Invalid UTF-8 becomes U+FFFD.
std::string Dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

template <size_t kSize>
bool AllFinite(const std::array<float, kSize>& numbers) {
  return std::ranges::all_of(numbers, [](float x) { return std::isfinite(x); });
}

void AppendWord(uint32_t word, std::string* to) {
  to->append(reinterpret_cast<const char*>(&word), sizeof(word));
}

void AppendChunk(absl::string_view kind, const std::string& chunk, char padding,
                 std::string* to) {
  const size_t padded = (chunk.size() + 3) / 4 * 4;
  AppendWord(static_cast<uint32_t>(padded), to);
  absl::StrAppend(to, kind, chunk);
  to->append(padded - chunk.size(), padding);
}

}  // namespace

GlbBuilder::GlbBuilder(const SceneAxes& axes) {
  json_ = {
      {"asset", {{"version", "2.0"}, {"generator", "tandem"}}},
      {"scene", 0},
      {"nodes",
       json::array({{{"name", UniqueName("world")}, {"rotation", axes}}})}};
}

int GlbBuilder::AddView(const void* data, size_t bytes) {
  binary_.resize((binary_.size() + 3) / 4 * 4);
  json& views = json_["bufferViews"];
  views.push_back(
      {{"buffer", 0}, {"byteOffset", binary_.size()}, {"byteLength", bytes}});
  binary_.append(static_cast<const char*>(data), bytes);
  return static_cast<int>(views.size()) - 1;
}

int GlbBuilder::AddAccessor(int view, int type, size_t count,
                            const char* shape) {
  json& accessors = json_["accessors"];
  accessors.push_back({{"bufferView", view},
                       {"componentType", type},
                       {"count", count},
                       {"type", shape}});
  return static_cast<int>(accessors.size()) - 1;
}

int GlbBuilder::AddGeometry(const Shape& shape) {
  const auto add = [this](const auto& numbers, int type, size_t width,
                          const char* kind) {
    return AddAccessor(
        AddView(numbers.data(), numbers.size() * sizeof(numbers[0])), type,
        numbers.size() / width, kind);
  };
  json attributes = {{"POSITION", add(shape.positions, kFloat, 3, "VEC3")}};
  json& positions = json_["accessors"].back();
  std::array<float, 3> low;
  std::array<float, 3> high;
  for (size_t axis = 0; axis < 3; ++axis) {
    low[axis] = high[axis] = shape.positions[axis];
    for (size_t i = axis; i < shape.positions.size(); i += 3) {
      low[axis] = std::min(low[axis], shape.positions[i]);
      high[axis] = std::max(high[axis], shape.positions[i]);
    }
  }
  positions["min"] = low;
  positions["max"] = high;
  attributes["NORMAL"] = add(shape.normals, kFloat, 3, "VEC3");
  if (!shape.uvs.empty()) {
    attributes["TEXCOORD_0"] = add(shape.uvs, kFloat, 2, "VEC2");
  }
  if (!shape.joints.empty()) {
    attributes["JOINTS_0"] = add(shape.joints, kUint16, 4, "VEC4");
    attributes["WEIGHTS_0"] = add(shape.weights, kFloat, 4, "VEC4");
  }
  geometries_.push_back(
      {{"attributes", std::move(attributes)},
       {"indices", add(shape.indices, kUint32, 1, "SCALAR")}});
  return static_cast<int>(geometries_.size()) - 1;
}

int GlbBuilder::AddTexture(std::span<const uint8_t> png) {
  const int view = AddView(png.data(), png.size());
  json& images = json_["images"];
  images.push_back({{"bufferView", view}, {"mimeType", "image/png"}});
  json& textures = json_["textures"];
  textures.push_back({{"source", images.size() - 1}});
  return static_cast<int>(textures.size()) - 1;
}

int GlbBuilder::AddMaterial(const GlbMaterial& material) {
  const auto [entry, is_new] =
      materials_.emplace(material, static_cast<int>(materials_.size()));
  if (!is_new) return entry->second;
  std::array<float, 4> rgba = material.rgba;
  for (size_t i = 0; i < 3; ++i) {
    rgba[i] = Linear(std::clamp(rgba[i], 0.0F, 1.0F));
  }
  rgba[3] = std::clamp(rgba[3], 0.0F, 1.0F);
  json surface = {
      {"baseColorFactor", rgba},
      {"metallicFactor", std::clamp(material.metallic, 0.0F, 1.0F)},
      {"roughnessFactor", std::clamp(material.roughness, 0.0F, 1.0F)}};
  if (material.texture >= 0) {
    surface["baseColorTexture"] = {{"index", material.texture}};
  }
  json found = {{"pbrMetallicRoughness", std::move(surface)}};
  if (material.emission > 0) {
    const float part = std::min(material.emission, 1.0F);
    found["emissiveFactor"] = {part * rgba[0], part * rgba[1], part * rgba[2]};
  }
  if (rgba[3] < 1) found["alphaMode"] = "BLEND";
  if (material.two_sided) found["doubleSided"] = true;
  json_["materials"].push_back(std::move(found));
  return entry->second;
}

int GlbBuilder::AddMesh(int geometry, const GlbMaterial& material) {
  const int surface = AddMaterial(material);
  const auto [entry, is_new] = meshes_.emplace(
      std::pair(geometry, surface), static_cast<int>(meshes_.size()));
  if (is_new) {
    json primitive = geometries_[static_cast<size_t>(geometry)];
    primitive["material"] = surface;
    json_["meshes"].push_back(
        {{"primitives", json::array({std::move(primitive)})}});
  }
  return entry->second;
}

int GlbBuilder::AddSkin(std::span<const int> joints,
                        std::span<const float> inverse_binds) {
  const int view = AddView(inverse_binds.data(), inverse_binds.size_bytes());
  const int binds = AddAccessor(view, kFloat, joints.size(), "MAT4");
  json& skins = json_["skins"];
  skins.push_back({{"joints", std::vector<int>(joints.begin(), joints.end())},
                   {"inverseBindMatrices", binds}});
  return static_cast<int>(skins.size()) - 1;
}

int GlbBuilder::AddLight(const GlbLight& light) {
  constexpr const char* kKinds[] = {"directional", "point", "spot"};
  json& lights = json_["extensions"]["KHR_lights_punctual"]["lights"];
  json found = {
      {"type", kKinds[static_cast<size_t>(light.kind)]},
      {"color",
       {Linear(light.rgb[0]), Linear(light.rgb[1]), Linear(light.rgb[2])}},
      {"intensity", 1}};
  if (light.kind == GlbLight::Kind::kSpot) {
    found["spot"] = {{"outerConeAngle", light.cone}};
  }
  lights.push_back(std::move(found));
  json_["extensionsUsed"] = json::array({"KHR_lights_punctual"});
  return static_cast<int>(lights.size()) - 1;
}

int GlbBuilder::AddMovingNode(const GlbNode& node) {
  const int index = AddNode(-1, node);
  moving_.push_back(index);
  return index;
}

// A number that is not finite has no JSON: such a part keeps its default.
int GlbBuilder::AddNode(int parent, const GlbNode& node) {
  json& nodes = json_["nodes"];
  const auto index = static_cast<int>(nodes.size());
  json found = {{"name", UniqueName(node.name)}};
  if (AllFinite(node.position)) found["translation"] = node.position;
  if (AllFinite(node.rotation)) found["rotation"] = node.rotation;
  if (AllFinite(node.scale)) found["scale"] = node.scale;
  if (node.mesh >= 0) found["mesh"] = node.mesh;
  if (node.skin >= 0) found["skin"] = node.skin;
  if (node.light >= 0) {
    found["extensions"]["KHR_lights_punctual"]["light"] = node.light;
  }
  if (!node.extras.empty()) found["extras"]["tandem"] = node.extras;
  nodes.push_back(std::move(found));
  nodes[static_cast<size_t>(std::max(parent, kWorld))]["children"].push_back(
      index);
  return index;
}

std::string GlbBuilder::UniqueName(absl::string_view name) {
  // As a reader will see it.
  const std::string text = json::parse(Dump(json(std::string(name))));
  std::string unique = text;
  for (int copy = 2; !names_.insert(unique).second; ++copy) {
    unique = absl::StrCat(text, " (", copy, ")");
  }
  return unique;
}

SceneModel GlbBuilder::Take(const GlbFacts& facts) && {
  const json tandem = {{"moving", moving_},
                       {"extent", facts.extent},
                       {"center", facts.center},
                       {"up", facts.up},
                       {"follow", facts.follow}};
  json_["scenes"] = json::array(
      {{{"nodes", json::array({kWorld})}, {"extras", {{"tandem", tandem}}}}});
  if (!binary_.empty()) {
    json_["buffers"] = json::array({{{"byteLength", binary_.size()}}});
  }
  std::string body;
  AppendChunk("JSON", Dump(json_), ' ', &body);
  if (!binary_.empty()) {
    AppendChunk(absl::string_view("BIN\0", 4), binary_, '\0', &body);
  }
  std::string glb = "glTF";
  AppendWord(2, &glb);
  AppendWord(static_cast<uint32_t>(12 + body.size()), &glb);
  return {.glb = glb + body, .nodes = static_cast<uint32_t>(moving_.size())};
}

}  // namespace tandem
