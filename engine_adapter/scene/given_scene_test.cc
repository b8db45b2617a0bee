#include "engine_adapter/given_scene.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "base/error.h"
#include "engine_adapter/scene/glb_builder.h"
#include "engine_adapter/scene/shapes.h"

namespace tandem {
namespace {

std::string GlbOf(absl::string_view json) {
  const auto word = [](size_t number) {
    const auto small = static_cast<uint32_t>(number);
    return std::string(reinterpret_cast<const char*>(&small), sizeof(small));
  };
  return "glTF" + word(2) + word(20 + json.size()) + word(json.size()) +
         "JSON" + std::string(json);
}

TEST(GivenScene, CountsTheNodesOfABuiltScene) {
  GlbBuilder glb(kZUp);
  const int mesh = glb.AddMesh(glb.AddGeometry(Sphere()), {});
  glb.AddNode(-1, {.name = "fixed", .mesh = mesh});
  glb.AddMovingNode({.name = "first", .mesh = mesh});
  glb.AddMovingNode({.name = "second", .mesh = mesh});
  const SceneModel built = std::move(glb).Take({});
  const auto model = GivenScene(built.glb);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->nodes, built.nodes);
  EXPECT_EQ(model->glb, built.glb);
}

TEST(GivenScene, NamedMeshesMoveInAFileOfAnotherProgram) {
  const auto model = GivenScene(GlbOf(
      R"({"scenes": [{"nodes": [0]}], "nodes": [{"name": "world"},
          {"name": "a", "mesh": 0}, {"mesh": 0}, {"name": "b", "mesh": 1}]})"));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->nodes, 2u);
}

TEST(GivenScene, RefusesOtherFilesWithTheReason) {
  struct Case {
    std::string glb;
    absl::string_view said;
  };
  std::string older = GlbOf("{}");
  older[4] = 1;
  std::string cut = GlbOf(R"({"scenes": [{}], "nodes": []})");
  cut.pop_back();
  const std::string moving = R"({"scenes": [{"extras": {"tandem": {"moving":)";
  const std::vector<Case> cases = {
      {"", "0 other bytes"},
      {"{\"asset\": {\"version\": \"2.0\"}}", "other bytes"},
      {older, "version 1"},
      {cut, "bytes of"},
      {GlbOf("{"), "invalid JSON"},
      {GlbOf("{}"), "scenes[0] and nodes"},
      {GlbOf("[]"), "scenes[0] and nodes"},
      {GlbOf(R"({"scenes": [{}], "nodes": [{}]})"), "nodes that move"},
      {GlbOf(moving + R"([1]}}}], "nodes": [{}]})"), "below 1, found 1"},
      {GlbOf(moving + R"([0, 0]}}}], "nodes": [{}]})"), "below 1, found 0"},
      {GlbOf(moving + R"(["a"]}}}], "nodes": [{}]})"), "found string"},
      {GlbOf(moving + R"([0.5]}}}], "nodes": [{}]})"), "below 1, found 0.5"},
      {GlbOf(moving + R"(0}}}], "nodes": [{}]})"), "a list of moving nodes"},
  };
  for (const Case& each : cases) {
    const absl::Status status = GivenScene(each.glb).status();
    EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument) << each.said;
    EXPECT_TRUE(absl::StrContains(status.message(), each.said)) << status;
  }
}

}  // namespace
}  // namespace tandem
