// The scenes of MuJoCo environments, as a library that others wrote reads them.
#include "engine_adapter/mujoco/scene/mujoco_scene_source.h"

#include <gtest/gtest.h>
#include <mujoco/mujoco.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/mujoco/model/model_file.h"
#include "engine_adapter/mujoco/model/mujoco_log.h"
#include "engine_adapter/mujoco/mujoco_tasks.h"
#include "engine_adapter/mujoco/scene/mujoco_glb.h"
#include "engine_adapter/scene/testing/glb_reader.h"
#include "engine_adapter/testing/engine_rig.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {
namespace {

constexpr char kParts[] = "engine_adapter/mujoco/scene/testdata/parts.xml";
constexpr uint32_t kEnvs = 2;
constexpr uint32_t kShown = 1;

std::unique_ptr<Engine> Make(const std::string& task) {
  InstallMujocoLog([](absl::string_view) {});
  const TaskRequest request = {.num_envs = kEnvs};
  return (task == kParts ? MakeModelEngine(task, request)
                         : MakeMujocoEngine(task, request))
      .value();
}

// An engine, its scene, and the newest snapshot.
struct Shown {
  explicit Shown(const std::string& task) : rig(Make(task)) {
    EXPECT_TRUE(rig.ResetAll(3).ok());
    model = source().Describe(kShown)().value();
  }
  SceneSource& source() { return *rig.scene(); }
  void Step(int steps) {
    std::mt19937 random(1);
    for (int step = 0; step < steps; ++step) {
      for (float& action : rig.actions) {
        action = static_cast<float>(random() % 200) / 100 - 1;
      }
      ASSERT_TRUE(rig.Step().ok());
    }
  }
  const PoseSnapshot& Take() {
    snapshot.Resize(model.nodes, 1);
    source().Capture({{kShown}}, &snapshot);
    return snapshot;
  }

  EngineRig rig;
  SceneModel model;
  PoseSnapshot snapshot;
};

void ExpectNear(const Matrix& found, const Matrix& expected, double extent,
                const std::string& name) {
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-5 * (i < 12 ? 1 : extent))
        << name << " " << i;
  }
}

class MujocoSceneModels : public testing::TestWithParam<std::string> {};

TEST_P(MujocoSceneModels, EachNodeIsWhereTheEngineHasItsEntity) {
  Shown shown(GetParam());
  shown.Step(20);
  GlbReader glb(shown.model.glb);
  glb.Pose(shown.Take().poses(0));
  const double extent = glb.Extras().Get("extent").GetNumberAsDouble();
  const Matrix world = glb.World(0);
  size_t compared = 0;
  for (const rpc::EntityInfoT& entity :
       shown.rig.ports().scene->Entities(kShown, {.transforms = true})) {
    for (int node = 1; node < static_cast<int>(glb.model().nodes.size());
         ++node) {
      const tinygltf::Value& extras = glb.Extras(node);
      if (!extras.Has("entity") ||
          static_cast<uint64_t>(extras.Get("entity").GetNumberAsInt()) !=
              entity.id) {
        continue;
      }
      const rpc::Vec3& at = *entity.transform->position;
      const rpc::Quat& turn = *entity.transform->rotation;
      ExpectNear(
          glb.World(node, /*scaled=*/false),
          world * Placed({double{at.x()}, double{at.y()}, double{at.z()}},
                         {double{turn.x()}, double{turn.y()}, double{turn.z()},
                          double{turn.w()}}),
          extent, entity.name);
      ++compared;
    }
  }
  EXPECT_GT(compared, glb.moving().size());  // bodies and geoms
  EXPECT_EQ(glb.moving().size(), shown.model.nodes);
}

TEST_P(MujocoSceneModels, KnowsTheSimulatedTime) {
  Shown shown(GetParam());
  EXPECT_EQ(shown.Take().row(0).sim_time, 0);
  shown.Step(5);
  shown.snapshot.row(0).flags = kSceneUnknownTime;
  EXPECT_NEAR(shown.Take().row(0).sim_time, 5 * shown.rig.step_secs(), 1e-9);
  EXPECT_EQ(shown.snapshot.row(0).flags, 0u);
}

INSTANTIATE_TEST_SUITE_P(Models, MujocoSceneModels,
                         testing::Values("HalfCheetah-v5", "Humanoid-v5",
                                         std::string(kParts)));

TEST(MujocoScenes, EveryTaskHasAScene) {
  for (const std::string& task : MujocoTasks()) {
    Shown shown(task);
    const GlbReader glb(shown.model.glb);
    EXPECT_GE(glb.model().meshes.size(), 1u) << task;
    EXPECT_GE(glb.Extras().Get("follow").GetNumberAsInt(), 0) << task;
  }
}

class Parts : public testing::Test {
 protected:
  const tinygltf::Primitive& PrimitiveOf(const std::string& name) {
    const auto node = static_cast<size_t>(glb_.Find(name));
    const auto mesh = static_cast<size_t>(glb_.model().nodes[node].mesh);
    return glb_.model().meshes[mesh].primitives[0];
  }
  const tinygltf::Material& MaterialOf(const std::string& name) {
    return glb_.model()
        .materials[static_cast<size_t>(PrimitiveOf(name).material)];
  }

  Shown shown_{kParts};
  GlbReader glb_{shown_.model.glb};
};

TEST_F(Parts, NamesBodiesAndMarksCollisionGeometry) {
  ASSERT_EQ(glb_.moving().size(), 3u);
  EXPECT_EQ(glb_.model().nodes[static_cast<size_t>(glb_.moving()[1])].name,
            "body 2");
  EXPECT_EQ(glb_.Extras().Get("follow").GetNumberAsInt(), 0);  // the trunk
  EXPECT_TRUE(glb_.Extras(glb_.Find("bumper")).Get("collision").Get<bool>());
  EXPECT_FALSE(glb_.Extras(glb_.Find("wedge")).Has("collision"));
  EXPECT_TRUE(glb_.Extras(glb_.Find("floor")).Get("plane").Get<bool>());
  for (const tinygltf::Node& node : glb_.model().nodes) {
    EXPECT_NE(node.name, "geom 8");  // invisible
  }
}

TEST_F(Parts, ATexturedMeshHasItsTextureAndCoordinates) {
  EXPECT_TRUE(PrimitiveOf("wedge").attributes.contains("TEXCOORD_0"));
  EXPECT_EQ(MaterialOf("wedge").pbrMetallicRoughness.baseColorTexture.index,
            MaterialOf("floor").pbrMetallicRoughness.baseColorTexture.index);
  ASSERT_EQ(glb_.model().images.size(), 2u);  // decoded by the reader
  EXPECT_EQ(glb_.model().images[0].width, 16);
  EXPECT_EQ(glb_.model().images[0].height, 16);
  EXPECT_EQ(glb_.model().images[1].height, 6 * 16);  // the faces of a cube
}

TEST_F(Parts, AColourIsTheMaterialsUnlessTheGeomHasItsOwn) {
  const auto& blue = MaterialOf("geom 4").pbrMetallicRoughness.baseColorFactor;
  EXPECT_NEAR(blue[2], std::pow((0.6 + 0.055) / 1.055, 2.4), 1e-5);
  EXPECT_EQ(MaterialOf("geom 7").pbrMetallicRoughness.baseColorFactor[0], 1);
  EXPECT_NEAR(MaterialOf("geom 7").emissiveFactor[0], 0.3, 1e-6);
}

TEST_F(Parts, AHeightFieldHasTheModelsHeights) {
  const std::vector<double> corners =
      glb_.Numbers(PrimitiveOf("hills").attributes.at("POSITION"));
  // The first row of the file is the last one, at the greatest y.
  const std::array<double, 12> expected = {0,   .25, 0, .5,  .25, 0,
                                           .25, 0,   0, .25, 0,   .25};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(corners[3 * i + 2], expected[i], 1e-6);
  }
  EXPECT_NEAR(corners[0], -3, 1e-6);
  EXPECT_NEAR(corners[1], -2, 1e-6);
}

// In the state of its binding a skin is where the model has it; then it follows
// its bones.
TEST_F(Parts, ASkinFollowsItsBones) {
  const auto node = static_cast<size_t>(glb_.Find("cloth"));
  const tinygltf::Skin& skin =
      glb_.model().skins[static_cast<size_t>(glb_.model().nodes[node].skin)];
  const tinygltf::Primitive& cloth = PrimitiveOf("cloth");
  const auto numbers = [&](const char* name) {
    return glb_.Numbers(cloth.attributes.at(name));
  };
  const std::vector<double> corners = numbers("POSITION");
  const std::vector<double> joints = numbers("JOINTS_0");
  const std::vector<double> weights = numbers("WEIGHTS_0");
  const std::vector<double> binds = glb_.Numbers(skin.inverseBindMatrices);
  const auto corner = [&](size_t vertex) {
    std::array<double, 3> at = {0, 0, 0};
    for (size_t i = 4 * vertex; i < 4 * vertex + 4; ++i) {
      const auto joint = static_cast<size_t>(joints[i]);
      Matrix bind;
      std::copy_n(&binds[16 * joint], 16, bind.begin());
      const Matrix whole = glb_.World(skin.joints[joint]) * bind;
      for (size_t axis = 0; axis < 3; ++axis) {
        at[axis] += weights[i] * (whole[axis] * corners[3 * vertex] +
                                  whole[4 + axis] * corners[3 * vertex + 1] +
                                  whole[8 + axis] * corners[3 * vertex + 2] +
                                  whole[12 + axis]);
      }
    }
    return at;
  };
  for (size_t vertex = 0; vertex < 3; ++vertex) {
    EXPECT_NEAR(corner(vertex)[0], corners[3 * vertex], 1e-6);
    EXPECT_NEAR(corner(vertex)[1], corners[3 * vertex + 2], 1e-6);
    EXPECT_NEAR(corner(vertex)[2], -corners[3 * vertex + 1], 1e-6);
  }
  std::vector<float> poses(shown_.Take().poses(0).begin(),
                           shown_.Take().poses(0).end());
  poses[0] += 2;  // the trunk
  const std::array<double, 3> shares = {1, 0.25, 0.5};
  const double before = static_cast<double>(poses[0]) - 2;
  glb_.Pose(poses);
  for (size_t vertex = 0; vertex < 3; ++vertex) {
    EXPECT_NEAR(corner(vertex)[0],
                corners[3 * vertex] + shares[vertex] * (2 + before), 1e-5);
  }
}

TEST_F(Parts, LightsShineTheirWay) {
  const Matrix sun = glb_.World(glb_.Find("sun"));
  EXPECT_NEAR(-sun[8], 0, 1e-6);
  EXPECT_NEAR(-sun[9], -0.8, 1e-6);
  EXPECT_NEAR(-sun[10], -0.6, 1e-6);
  EXPECT_EQ(glb_.model().lights.size(), 2u);
}

TEST_F(Parts, AMovedGeomIsANewVersionForItsEnvironment) {
  SceneSource& source = shown_.source();
  const uint64_t before = source.Version(kShown);
  EXPECT_EQ(source.Version(0), before);
  ScenePort* const scene = shown_.rig.ports().scene;
  rpc::TransformT transform;
  const auto move = [&](float z) {
    transform.position = std::make_unique<rpc::Vec3>(1.0F, 2.0F, z);
    return scene->SetTransform(kShown, scene->IdOf("wedge").value(), transform);
  };
  ASSERT_TRUE(move(3).ok());
  const uint64_t moved_once = source.Version(kShown);
  EXPECT_NE(moved_once, before);
  ASSERT_TRUE(move(4).ok());
  while (source.Version(kShown) == moved_once) std::this_thread::yield();
  EXPECT_EQ(source.Version(0), before);
  const GlbReader moved(source.Describe(kShown)().value().glb);
  EXPECT_NE(moved.World(moved.Find("wedge")), glb_.World(glb_.Find("wedge")));
}

}  // namespace
}  // namespace tandem
