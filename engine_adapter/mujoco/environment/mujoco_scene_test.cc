#include "engine_adapter/mujoco/environment/mujoco_scene.h"

#include <gtest/gtest.h>
#include <mujoco/mujoco.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/error.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/mujoco/model/model_file.h"
#include "engine_adapter/mujoco/model/mujoco_log.h"
#include "engine_adapter/mujoco/mujoco_tasks.h"
#include "engine_adapter/testing/engine_rig.h"

namespace tandem {
namespace {

using Transform = rpc::TransformT;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

const char kZoo[] = "engine_adapter/mujoco/environment/testdata/zoo.xml";

std::string Write(const std::string& name, const std::string& text) {
  std::string path = absl::StrCat(testing::TempDir(), "/", name);
  std::ofstream(path) << text;
  return path;
}

// Returns the path of the zoo's file with some text replaced.
std::string ZooWith(
    std::initializer_list<std::pair<absl::string_view, absl::string_view>>
        replacements) {
  std::ostringstream text;
  text << std::ifstream(kZoo).rdbuf();
  return Write("zoo_with.xml", absl::StrReplaceAll(text.str(), replacements));
}

EngineRig Models(const std::string& path, uint32_t num_envs) {
  EngineRig rig(MakeModelEngine(path, {.num_envs = num_envs}).value());
  EXPECT_TRUE(rig.ResetAll(0).ok());
  return rig;
}

// Bare MuJoCo, in the state after an engine's reset.
struct Bare {
  explicit Bare(const std::string& path)
      : model(LoadModel({.path = path}).value()),
        data(MakeData(*model).value()) {
    mj_resetData(model.get(), data.get());
    mj_forward(model.get(), data.get());
  }
  void Step(int steps) {
    for (int i = 0; i < steps; ++i) mj_step(model.get(), data.get());
  }
  int Id(int type, const char* name) const {
    return mj_name2id(model.get(), type, name);
  }
  mjtNum* BodyPos(const char* name) const {
    return model->body_pos + mjtSize{3} * Id(mjOBJ_BODY, name);
  }

  ModelPtr model;
  DataPtr data;
};

Transform Place(float x, float y, float z) {
  Transform transform;
  transform.position = std::make_unique<rpc::Vec3>(x, y, z);
  return transform;
}

Transform Turn(float x, float y, float z, float w) {
  Transform transform;
  transform.rotation = std::make_unique<rpc::Quat>(x, y, z, w);
  return transform;
}

Transform Scale(float x, float y, float z) {
  Transform transform;
  transform.scale = std::make_unique<rpc::Vec3>(x, y, z);
  return transform;
}

Transform Random(std::mt19937* random) {
  std::normal_distribution<float> normal;
  const auto draw = [&] { return normal(*random); };
  Transform transform = Place(draw(), draw(), draw());
  const float x = draw();
  const float y = draw();
  const float z = draw();
  const float w = draw();
  const float norm = std::sqrt(x * x + y * y + z * z + w * w);
  transform.rotation =
      std::make_unique<rpc::Quat>(x / norm, y / norm, z / norm, w / norm);
  return transform;
}

bool IsA(const rpc::EntityInfoT& entity, const std::string& component) {
  return std::ranges::find(entity.components, component) !=
         entity.components.end();
}

// Returns where the direction straight down points after the rotation.
std::vector<float> Down(const rpc::Quat& r) {
  return {-2 * (r.x() * r.z() + r.w() * r.y()),
          -2 * (r.y() * r.z() - r.w() * r.x()),
          -(1 - 2 * (r.x() * r.x() + r.y() * r.y()))};
}

void ExpectSamePlace(const Transform& found, const Transform& expected) {
  EXPECT_NEAR(found.position->x(), expected.position->x(), 1e-6);
  EXPECT_NEAR(found.position->y(), expected.position->y(), 1e-6);
  EXPECT_NEAR(found.position->z(), expected.position->z(), 1e-6);
}

// Two quaternions, q and -q, are the same rotation.
void ExpectSameTurn(const Transform& found, const Transform& expected) {
  const rpc::Quat& a = *found.rotation;
  const rpc::Quat& b = *expected.rotation;
  const float dot =
      a.x() * b.x() + a.y() * b.y() + a.z() * b.z() + a.w() * b.w();
  const float sign = dot < 0 ? -1.0F : 1.0F;
  EXPECT_NEAR(a.x(), sign * b.x(), 1e-6);
  EXPECT_NEAR(a.y(), sign * b.y(), 1e-6);
  EXPECT_NEAR(a.z(), sign * b.z(), 1e-6);
  EXPECT_NEAR(a.w(), sign * b.w(), 1e-6);
}

void ExpectSameDirection(const Transform& found, const Transform& expected) {
  const std::vector<float> a = Down(*found.rotation);
  const std::vector<float> b = Down(*expected.rotation);
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(a[i], b[i], 1e-6);
}

std::vector<float> Numbers(const ScenePort& scene, uint32_t env) {
  std::vector<float> numbers;
  for (const rpc::EntityInfoT& entity :
       scene.Entities(env, {.transforms = true})) {
    const Transform& t = *entity.transform;
    for (const float number :
         {t.position->x(), t.position->y(), t.position->z(), t.rotation->x(),
          t.rotation->y(), t.rotation->z(), t.rotation->w()}) {
      numbers.push_back(number);
    }
  }
  return numbers;
}

// Moves each movable entity of environment 1, and checks the result; returns
// the number of movable entities.
int MoveEach(EngineRig* rig) {
  ScenePort& scene = *rig->ports().scene;
  const std::vector<float> others = Numbers(scene, 0);
  std::mt19937 random(1);
  int moved = 0;
  for (uint64_t id = 1; id <= scene.entity_count(); ++id) {
    const rpc::EntityInfoT before = *scene.Entity(1, id);
    SCOPED_TRACE(absl::StrCat(id, " ", before.components[0], " ", before.name));
    const bool is_light = IsA(before, "light");
    const auto expect_same_turn =
        is_light ? ExpectSameDirection : ExpectSameTurn;
    const Transform wanted = Random(&random);
    const absl::Status status = scene.SetTransform(1, id, wanted);
    if (!status.ok()) {
      EXPECT_EQ(CodeOf(status), ErrorCode::kUnsupported) << status;
      EXPECT_TRUE(id == 1 || is_light || IsA(before, "camera"));
      ExpectSamePlace(*scene.Entity(1, id)->transform, *before.transform);
      continue;
    }
    ++moved;
    const Transform found = *scene.Entity(1, id)->transform;
    ExpectSamePlace(found, wanted);
    expect_same_turn(found, wanted);

    Transform place = Random(&random);
    place.rotation = nullptr;
    EXPECT_TRUE(scene.SetTransform(1, id, place).ok());
    ExpectSamePlace(*scene.Entity(1, id)->transform, place);
    expect_same_turn(*scene.Entity(1, id)->transform, found);

    Transform turn = Random(&random);
    turn.position = nullptr;
    EXPECT_TRUE(scene.SetTransform(1, id, turn).ok());
    ExpectSamePlace(*scene.Entity(1, id)->transform, place);
    expect_same_turn(*scene.Entity(1, id)->transform, turn);
  }
  EXPECT_EQ(Numbers(scene, 0), others);
  return moved;
}

class MujocoSceneTest : public testing::Test {
 protected:
  void SetUp() override {
    InstallMujocoLog([](absl::string_view) {});
  }
  void TearDown() override { InstallMujocoLog(nullptr); }
};

TEST_F(MujocoSceneTest, ListsEntitiesOfTheModel) {
  EngineRig rig = Models(kZoo, 1);
  const ScenePort& scene = *rig.ports().scene;
  EXPECT_EQ(scene.scene_name(), "zoo");
  EXPECT_EQ(scene.scene_path(), kZoo);
  const Bare bare(kZoo);
  const mjModel& model = *bare.model;
  ASSERT_EQ(scene.entity_count(),
            model.nbody + model.ngeom + model.ncam + model.nlight);
  const std::vector<rpc::EntityInfoT> entities = scene.Entities(0, {});
  ASSERT_EQ(entities.size(), scene.entity_count());
  for (size_t i = 0; i < entities.size(); ++i) {
    EXPECT_EQ(entities[i].id, i + 1);
    EXPECT_EQ(entities[i].transform, nullptr);
    EXPECT_TRUE(entities[i].components.empty());
    if (!entities[i].name.empty()) {
      EXPECT_EQ(scene.IdOf(entities[i].name), i + 1);
    }
  }
  for (int camera = 0; camera < model.ncam; ++camera) {
    const char* const name = mj_id2name(&model, mjOBJ_CAMERA, camera);
    ASSERT_NE(name, nullptr);
    EXPECT_EQ(scene.IdOf(name), EntityId(model, EntityKind::kCamera, camera));
  }
  const auto components = [&](absl::string_view name) {
    return scene.Entity(0, *scene.IdOf(name))->components;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(scene.IdOf("world"), 1u);
  EXPECT_EQ(components("world"), (Texts{"body"}));
  EXPECT_EQ(components("ball"), (Texts{"body", "free joint"}));
  EXPECT_EQ(components("hand"), (Texts{"body", "mocap"}));
  EXPECT_EQ(components("finger"), (Texts{"body", "slide joint", "ball joint"}));
  EXPECT_EQ(components("post"), (Texts{"geom", "cylinder"}));
  EXPECT_EQ(components("stone"), (Texts{"geom", "mesh"}));
  EXPECT_EQ(components("nail"), (Texts{"camera"}));
  EXPECT_EQ(components("torch"), (Texts{"light"}));
  EXPECT_EQ(scene.IdOf(""), std::nullopt);
  EXPECT_EQ(scene.IdOf("shoulder"), std::nullopt);
  EXPECT_EQ(scene.Entity(0, 0), std::nullopt);
  EXPECT_EQ(scene.Entity(0, scene.entity_count() + 1), std::nullopt);
}

TEST_F(MujocoSceneTest, TransformsAreMujocosAfterTheSameSteps) {
  EngineRig rig = Models(kZoo, 1);
  Bare bare(kZoo);
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(rig.Step().ok());
  bare.Step(50);
  const ScenePort& scene = *rig.ports().scene;
  const mjData& data = *bare.data;
  const auto expect = [&](const char* name, const mjtNum* position,
                          const mjtNum* rotation) {
    const Transform found = *scene.Entity(0, *scene.IdOf(name))->transform;
    EXPECT_EQ(found.position->x(), static_cast<float>(position[0])) << name;
    EXPECT_EQ(found.position->y(), static_cast<float>(position[1])) << name;
    EXPECT_EQ(found.position->z(), static_cast<float>(position[2])) << name;
    EXPECT_EQ(found.rotation->w(), static_cast<float>(rotation[0])) << name;
    EXPECT_EQ(found.rotation->x(), static_cast<float>(rotation[1])) << name;
    EXPECT_EQ(found.rotation->y(), static_cast<float>(rotation[2])) << name;
    EXPECT_EQ(found.rotation->z(), static_cast<float>(rotation[3])) << name;
    EXPECT_EQ(found.scale->x(), 1);
  };
  for (const char* const name : {"world", "ball", "hand", "arm", "finger"}) {
    const mjtSize id = bare.Id(mjOBJ_BODY, name);
    expect(name, data.xpos + 3 * id, data.xquat + 4 * id);
  }
  for (const char* const name : {"floor", "tip", "stone"}) {
    const mjtSize id = bare.Id(mjOBJ_GEOM, name);
    expect(name, data.geom_xpos + 3 * id, data.geom_xquat + 4 * id);
  }
  for (const char* const name : {"eye", "follower", "nail"}) {
    const mjtSize id = bare.Id(mjOBJ_CAMERA, name);
    mjtNum quat[4];
    mju_mat2Quat(quat, data.cam_xmat + 9 * id);
    expect(name, data.cam_xpos + 3 * id, quat);
  }
  for (const char* const name : {"lamp", "spot", "torch"}) {
    const mjtSize id = bare.Id(mjOBJ_LIGHT, name);
    const Transform found = *scene.Entity(0, *scene.IdOf(name))->transform;
    EXPECT_EQ(found.position->x(), static_cast<float>(data.light_xpos[3 * id]));
    const std::vector<float> direction = Down(*found.rotation);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(direction[i],
                  data.light_xdir[3 * static_cast<size_t>(id) + i], 1e-6);
    }
  }
}

TEST_F(MujocoSceneTest, MovedEntitiesStayInEveryTaskModel) {
  for (const std::string& task : MujocoTasks()) {
    SCOPED_TRACE(task);
    EngineRig rig(
        MakeMujocoEngine(task, {.num_envs = 2, .threads = 1}).value());
    ASSERT_TRUE(rig.ResetAll(3).ok());
    for (int i = 0; i < 5; ++i) {
      std::ranges::fill(rig.actions, 0.2F);
      ASSERT_TRUE(rig.Step().ok());
    }
    EXPECT_GT(MoveEach(&rig), 3);
    EXPECT_TRUE(rig.Step().ok());
  }
  EngineRig rig = Models(kZoo, 2);
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(rig.Step().ok());
  // All but the world and the entities that MuJoCo moves with others.
  EXPECT_EQ(MoveEach(&rig),
            static_cast<int>(rig.ports().scene->entity_count()) - 3);
}

TEST_F(MujocoSceneTest, AFreeBodyMovesAsQposDoesAndReturnsWithTheReset) {
  EngineRig rig = Models(kZoo, 2);
  Bare bare(kZoo);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(rig.Step().ok());
  bare.Step(20);
  ScenePort& scene = *rig.ports().scene;
  const uint64_t ball = *scene.IdOf("ball");
  const std::vector<float> before = Numbers(scene, 0);
  Transform wanted = Place(-2, 0, 0.75F);
  wanted.rotation = std::make_unique<rpc::Quat>(0.0F, 0.0F, 3.0F, 4.0F);
  wanted.scale = std::make_unique<rpc::Vec3>(1.0F, 1.0F, 1.0F);
  ASSERT_TRUE(scene.SetTransform(1, ball, wanted).ok());
  EXPECT_EQ(Numbers(scene, 0), before);

  mju_copy3(bare.data->qpos, std::vector<mjtNum>{-2, 0, 0.75}.data());
  mju_copy4(bare.data->qpos + 3, std::vector<mjtNum>{0.8, 0, 0, 0.6}.data());
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(rig.Step().ok());
  bare.Step(200);
  const rpc::JointStateT joints = rig.ports().mujoco->Joints(1);
  for (size_t i = 0; i < joints.positions.size(); ++i) {
    EXPECT_EQ(joints.positions[i], static_cast<float>(bare.data->qpos[i]));
  }
  EXPECT_NEAR(joints.positions[0], -2, 0.1);  // the body is on the shelf
  EXPECT_NEAR(joints.positions[2], 0.7, 0.01);

  ASSERT_TRUE(rig.ResetAll(0).ok());
  EXPECT_EQ(Numbers(scene, 1), Numbers(scene, 0));
}

TEST_F(MujocoSceneTest, AMocapBodyMovesAsMocapPosDoesAndReturnsWithTheReset) {
  EngineRig rig = Models(kZoo, 2);
  Bare bare(kZoo);
  ScenePort& scene = *rig.ports().scene;
  const Transform wanted = Place(0, 0, 0.5F);
  ASSERT_TRUE(scene.SetTransform(1, *scene.IdOf("hand"), wanted).ok());
  mju_copy3(bare.data->mocap_pos, std::vector<mjtNum>{0, 0, 0.5}.data());
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(rig.Step().ok());
  bare.Step(300);
  const std::vector<float> moved = rig.ports().mujoco->Joints(1).positions;
  for (size_t i = 0; i < moved.size(); ++i) {
    EXPECT_EQ(moved[i], static_cast<float>(bare.data->qpos[i]));
  }
  EXPECT_NE(moved, rig.ports().mujoco->Joints(0).positions);
  ASSERT_TRUE(rig.ResetAll(0).ok());
  EXPECT_EQ(Numbers(scene, 1), Numbers(scene, 0));
}

// The body's place in its parent is set, also if joints have moved the body.
TEST_F(MujocoSceneTest, ABodyMovesAsBodyPosDoesAndStaysThroughResets) {
  EngineRig rig = Models(kZoo, 2);
  Bare bare(kZoo);
  for (int i = 0; i < 40; ++i) {
    rig.actions[1] = 1;
    ASSERT_TRUE(rig.Step().ok());
  }
  bare.data->ctrl[0] = 1;
  bare.Step(40);
  ScenePort& scene = *rig.ports().scene;
  const uint64_t arm = *scene.IdOf("arm");
  // MuJoCo itself computes how far a change of body_pos moves the body.
  mj_kinematics(bare.model.get(), bare.data.get());
  const mjtNum* const xpos =
      bare.data->xpos + mjtSize{3} * bare.Id(mjOBJ_BODY, "arm");
  EXPECT_GT(std::abs(xpos[0]), 1e-3);  // the joint's anchor is not its origin
  const auto x = static_cast<float>(xpos[0] + 0.5);
  const auto z = static_cast<float>(xpos[2] + 0.25);
  ASSERT_TRUE(scene.SetTransform(1, arm, Place(x, 2, z)).ok());
  bare.BodyPos("arm")[0] += 0.5;
  bare.BodyPos("arm")[2] += 0.25;
  const uint64_t shelf = *scene.IdOf("shelf");
  ASSERT_TRUE(scene.SetTransform(1, shelf, Place(0, 0, 0.25F)).ok());
  mju_copy3(bare.BodyPos("shelf"), std::vector<mjtNum>{0, 0, 0.25}.data());
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(rig.Step().ok());
  bare.Step(200);
  const std::vector<float> moved = rig.ports().mujoco->Joints(1).positions;
  for (size_t i = 0; i < moved.size(); ++i) {
    EXPECT_NEAR(moved[i], bare.data->qpos[i], 1e-5) << i;
  }
  EXPECT_GT(moved[2], 0.4);  // the ball touched the shelf, not the floor

  ASSERT_TRUE(rig.ResetAll(0).ok());
  mj_resetData(bare.model.get(), bare.data.get());
  mj_forward(bare.model.get(), bare.data.get());
  const Transform found = *scene.Entity(1, arm)->transform;
  EXPECT_NEAR(found.position->x(), 0.5, 1e-6);
  EXPECT_NEAR(found.position->z(), 1.25, 1e-6);
  EXPECT_EQ(scene.Entity(0, arm)->transform->position->x(), 0);
}

// This includes what MuJoCo precomputes: the geoms that can touch.
TEST_F(MujocoSceneTest, MovedGeomEqualsAGeomThatTheModelHasThere) {
  EngineRig rig = Models(kZoo, 2);
  ScenePort& scene = *rig.ports().scene;
  ASSERT_TRUE(
      scene.SetTransform(1, *scene.IdOf("block"), Place(0.125F, 0, 0.5F)).ok());
  // The arm hangs upright: its origin is (0, 2, 1), without rotation.
  ASSERT_TRUE(
      scene.SetTransform(1, *scene.IdOf("tip"), Place(0.5F, 2, 0.75F)).ok());
  // The geom's frame was its body's; MuJoCo has an optimisation for that.
  ASSERT_TRUE(
      scene.SetTransform(1, *scene.IdOf("board"), Place(-2, 0, 2)).ok());
  Bare bare(ZooWith({{"pos=\"2 2 .25\"", "pos=\".125 0 .5\""},
                     {"pos=\"0 0 -.2\"", "pos=\".5 0 -.25\""}}));
  for (int i = 0; i < 400; ++i) {
    rig.actions[1] = 1;
    ASSERT_TRUE(rig.Step().ok());
  }
  bare.data->ctrl[0] = 1;
  bare.Step(400);
  const std::vector<float> moved = rig.ports().mujoco->Joints(1).positions;
  for (size_t i = 0; i < moved.size(); ++i) {
    EXPECT_NEAR(moved[i], bare.data->qpos[i], 1e-5) << i;
  }
  const std::vector<float> other = rig.ports().mujoco->Joints(0).positions;
  EXPECT_GT(std::abs(moved[2] - other[2]), 0.1);  // the ball touched the block
  ASSERT_TRUE(rig.ResetAll(0).ok());
  EXPECT_EQ(scene.Entity(1, *scene.IdOf("block"))->transform->position->z(),
            0.5F);
  EXPECT_EQ(scene.Entity(1, *scene.IdOf("board"))->transform->position->z(), 2);
}

TEST_F(MujocoSceneTest, RefusesInvalidTransformsWithoutChange) {
  EngineRig rig = Models(kZoo, 1);
  ScenePort& scene = *rig.ports().scene;
  const std::vector<float> before = Numbers(scene, 0);
  const auto expect = [&](const char* name, Transform transform, ErrorCode code,
                          const char* text) {
    const absl::Status status =
        scene.SetTransform(0, *scene.IdOf(name), transform);
    EXPECT_EQ(CodeOf(status), code) << name << " " << status;
    EXPECT_TRUE(absl::StrContains(status.message(), text)) << status;
  };
  for (const char* const name : {"ball", "hand", "arm", "tip", "eye", "lamp"}) {
    const ErrorCode invalid = ErrorCode::kInvalidArgument;
    expect(name, Place(kNan, 0, 0), invalid, "position");
    expect(name, Place(0, -kInfinity, 0), invalid, "position");
    expect(name, Place(0, 0, 1e11F), invalid, "position");
    expect(name, Turn(0, 0, 0, 0), invalid, "rotation");
    expect(name, Turn(0, kNan, 0, 1), invalid, "rotation");
    expect(name, Turn(kInfinity, 0, 0, 1), invalid, "rotation");
    expect(name, Scale(1, kNan, 1), invalid, "scale");
    expect(name, Scale(2, 1, 1), ErrorCode::kUnsupported, "(2, 1, 1)");
  }
  expect("world", Place(1, 1, 1), ErrorCode::kUnsupported, "world");
  expect("follower", Place(1, 1, 1), ErrorCode::kUnsupported, "trackcom");
  expect("spot", Place(1, 1, 1), ErrorCode::kUnsupported, "targetbody");
  EXPECT_EQ(Numbers(scene, 0), before);
}

TEST_F(MujocoSceneTest, AModelWhoseBodiesFallAsleepKeepsThem) {
  EngineRig rig = Models(
      Write("sleepy.xml", R"(<mujoco><option><flag sleep="enable"/></option>
      <worldbody><geom name="floor" type="plane" size="1 1 1"/>
        <body name="box" pos="0 0 1"><joint name="fall" type="slide"/>
        <geom size=".1"/></body></worldbody>
      <actuator><motor joint="fall"/></actuator></mujoco>)"),
      1);
  ScenePort& scene = *rig.ports().scene;
  const absl::Status status =
      scene.SetTransform(0, *scene.IdOf("box"), Place(0, 0, 2));
  EXPECT_EQ(CodeOf(status), ErrorCode::kUnsupported);
  EXPECT_TRUE(absl::StrContains(status.message(), "sleep")) << status;
}

}  // namespace
}  // namespace tandem
