#include "engine_adapter/scene/glb_builder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "engine_adapter/scene/testing/glb_reader.h"

namespace tandem {
namespace {

TEST(GlbBuilder, AnEmptySceneIsAFile) {
  const SceneModel model = GlbBuilder(kYUp).Take({.extent = 2});
  EXPECT_EQ(model.nodes, 0u);
  const GlbReader glb(model.glb);
  EXPECT_EQ(glb.model().nodes.size(), 1u);
  EXPECT_EQ(glb.Extras().Get("follow").GetNumberAsInt(), -1);
}

TEST(GlbBuilder, MovingNodesAreChildrenOfTheWorldInTheirOrder) {
  GlbBuilder builder(kZUp);
  const int wheel = builder.AddMovingNode({.name = "wheel"});
  builder.AddNode(wheel, {.name = "rim"});
  builder.AddMovingNode({.name = "car"});
  const SceneModel model = std::move(builder).Take({.follow = 1});
  EXPECT_EQ(model.nodes, 2u);
  GlbReader glb(model.glb);
  EXPECT_EQ(glb.moving(),
            (std::vector<int>{glb.Find("wheel"), glb.Find("car")}));
  const float poses[14] = {1, 2, 3, 0, 0, 0, 1, 4, 5, 6, 1, 0, 0, 0};
  glb.Pose(poses);
  // z up becomes y up.
  const Matrix rim = glb.World(glb.Find("rim"));
  EXPECT_NEAR(rim[12], 1, 1e-6);
  EXPECT_NEAR(rim[13], 3, 1e-6);
  EXPECT_NEAR(rim[14], -2, 1e-6);
}

TEST(GlbBuilder, NamesOfAnyBytesBecomeUniqueText) {
  GlbBuilder builder(kYUp);
  const std::string names[] = {"<b>x</b>", "\xFF\xFE", "\xFF\xFD",        "",
                               "",         "world",    "\u05D0\u202E\"\\"};
  for (const std::string& name : names) builder.AddNode(-1, {.name = name});
  const GlbReader glb(std::move(builder).Take({}).glb);
  std::set<std::string> found;
  for (const tinygltf::Node& node : glb.model().nodes) {
    EXPECT_TRUE(found.insert(node.name).second) << node.name;
  }
  EXPECT_TRUE(found.contains("<b>x</b>"));
  EXPECT_TRUE(found.contains("world (2)"));
  EXPECT_TRUE(found.contains("\u05D0\u202E\"\\"));
}

TEST(GlbBuilder, SharesGeometriesMaterialsAndMeshes) {
  GlbBuilder builder(kYUp);
  const int box = builder.AddGeometry(Box(1, 2, 3));
  const int ball = builder.AddGeometry(Sphere());
  const GlbMaterial red = {.rgba = {1, 0, 0, 1}};
  const GlbMaterial glass = {.rgba = {1, 1, 1, 0.5F}};
  const int mesh = builder.AddMesh(box, red);
  EXPECT_EQ(builder.AddMesh(box, red), mesh);
  builder.AddMesh(ball, red);
  builder.AddMesh(box, glass);
  const GlbReader glb(std::move(builder).Take({}).glb);
  ASSERT_EQ(glb.model().meshes.size(), 3u);
  ASSERT_EQ(glb.model().materials.size(), 2u);
  EXPECT_EQ(glb.model().materials[1].alphaMode, "BLEND");
  const auto& first = glb.model().meshes[0].primitives[0];
  const auto& third = glb.model().meshes[2].primitives[0];
  EXPECT_EQ(first.attributes, third.attributes);
  const auto& corners =
      glb.model()
          .accessors[static_cast<size_t>(first.attributes.at("POSITION"))];
  EXPECT_EQ(corners.maxValues, (std::vector<double>{1, 2, 3}));
}

TEST(GlbBuilder, NumbersThatAreNotFiniteAreLeftOut) {
  GlbBuilder builder(kYUp);
  builder.AddMovingNode(
      {.name = "lost",
       .position = {std::numeric_limits<float>::quiet_NaN(), 0, 0}});
  const GlbReader glb(std::move(builder).Take({}).glb);
  EXPECT_TRUE(glb.model().nodes[1].translation.empty());
}

}  // namespace
}  // namespace tandem
