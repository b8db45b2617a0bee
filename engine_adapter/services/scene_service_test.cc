#include "engine_adapter/services/scene_service.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "engine_adapter/classic_control/classic_control_tasks.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/mujoco/model/mujoco_log.h"
#include "engine_adapter/mujoco/mujoco_tasks.h"
#include "engine_adapter/testing/stepped_engine.h"

namespace tandem {
namespace {

using Mode = rpc::SimulationMode;
using Texts = std::vector<std::string>;

constexpr uint32_t kEnvs = 2;
constexpr ErrorCode kInvalid = ErrorCode::kInvalidArgument;

class SceneServiceTest : public testing::Test {
 protected:
  SceneServiceTest() {
    InstallMujocoLog([](absl::string_view) {});
    stepped_.emplace(MakeMujocoEngine("Ant-v5", {.num_envs = kEnvs}).value());
    service_.emplace(stepped_->rig.ports().scene, &*stepped_, kEnvs);
  }
  ~SceneServiceTest() override { InstallMujocoLog(nullptr); }

  rpc::GetEntityResponseT Find(uint64_t id, const std::string& name,
                               uint32_t env) {
    rpc::GetEntityRequestT request;
    request.id = id;
    request.name = name;
    request.env_id = env;
    return *service_->GetEntity(request);
  }
  // Calls SingleStep; the result gets its value when the answer comes.
  std::shared_ptr<std::optional<absl::StatusOr<rpc::SingleStepResponseT>>>
  SingleStep(uint32_t steps) {
    auto answer = std::make_shared<
        std::optional<absl::StatusOr<rpc::SingleStepResponseT>>>();
    rpc::SingleStepRequestT request;
    request.steps = steps;
    service_->SingleStep(request, [answer](auto response) {
      EXPECT_FALSE(answer->has_value());
      *answer = std::move(response);
    });
    return answer;
  }

  std::optional<SteppedEngine> stepped_;
  std::optional<SceneService> service_;
};

TEST_F(SceneServiceTest, ListsEntities) {
  rpc::GetSceneInfoRequestT about;
  about.env_id = 1;
  const auto info = *service_->GetSceneInfo(about);
  EXPECT_EQ(info.scene_name, "ant");
  EXPECT_TRUE(absl::EndsWith(info.scene_path, "ant.xml")) << info.scene_path;

  rpc::ListEntitiesRequestT request;
  request.env_id = 1;
  auto list = *service_->ListEntities(request);
  ASSERT_EQ(list.entities.size(), info.entity_count);
  EXPECT_EQ(list.entities[0]->name, "world");
  EXPECT_EQ(list.entities[1]->name, "torso");
  EXPECT_EQ(list.entities[1]->id, 2u);
  EXPECT_EQ(list.entities[1]->transform, nullptr);
  EXPECT_TRUE(list.entities[1]->components.empty());
  request.include_components = true;
  list = *service_->ListEntities(request);
  EXPECT_EQ(list.entities[1]->transform, nullptr);
  EXPECT_EQ(list.entities[1]->components, (Texts{"body", "free joint"}));
  request.include_transforms = true;
  list = *service_->ListEntities(request);
  const rpc::JointStateT joints = stepped_->rig.ports().mujoco->Joints(1);
  EXPECT_EQ(list.entities[1]->transform->position->z(), joints.positions[2]);
  EXPECT_EQ(list.entities[1]->transform->position->x(), joints.positions[0]);
}

TEST_F(SceneServiceTest, FindsAnEntityByNameElseById) {
  const auto torso = Find(0, "torso", 1);
  ASSERT_TRUE(torso.found);
  EXPECT_EQ(torso.entity->id, 2u);
  EXPECT_NE(torso.entity->transform, nullptr);
  EXPECT_FALSE(torso.entity->components.empty());
  EXPECT_EQ(Find(3, "torso", 1).entity->id, 2u);
  EXPECT_EQ(Find(2, "", 1).entity->name, "torso");
  EXPECT_FALSE(Find(2, "tail", 1).found);
  EXPECT_EQ(Find(2, "tail", 1).entity, nullptr);
  EXPECT_FALSE(Find(0, "", 1).found);
  EXPECT_FALSE(Find(100'000, "", 1).found);
}

TEST_F(SceneServiceTest, MovesAnEntityOfOneEnvironment) {
  rpc::SetEntityTransformRequestT request;
  request.id = 2;
  request.env_id = 1;
  request.transform = std::make_unique<rpc::TransformT>();
  request.transform->position = std::make_unique<rpc::Vec3>(1.0F, 2.0F, 0.75F);
  const uint64_t changes = stepped_->changes();
  EXPECT_TRUE(service_->SetEntityTransform(request)->success);
  EXPECT_GT(stepped_->changes(), changes);
  const auto moved = Find(2, "", 1);
  EXPECT_EQ(moved.entity->transform->position->x(), 1);
  EXPECT_EQ(moved.entity->transform->position->y(), 2);
  EXPECT_LT(Find(2, "", 0).entity->transform->position->x(), 0.5F);
  EXPECT_EQ(stepped_->rig.ports().mujoco->Joints(1).positions[1], 2);

  for (const uint64_t id : {uint64_t{0}, uint64_t{100'000}, ~uint64_t{0}}) {
    request.id = id;
    const auto response = service_->SetEntityTransform(request);
    EXPECT_EQ(CodeOf(response.status()), kInvalid);
    EXPECT_TRUE(absl::StrContains(response.status().message(),
                                  absl::StrCat("found ", id)));
  }
  request.id = 2;
  request.transform = nullptr;
  EXPECT_EQ(CodeOf(service_->SetEntityTransform(request).status()), kInvalid);
  request.transform = std::make_unique<rpc::TransformT>();
  EXPECT_EQ(CodeOf(service_->SetEntityTransform(request).status()), kInvalid);
  request.transform->scale = std::make_unique<rpc::Vec3>(2.0F, 2.0F, 2.0F);
  EXPECT_EQ(CodeOf(service_->SetEntityTransform(request).status()),
            ErrorCode::kUnsupported);
}

TEST_F(SceneServiceTest, RefusesUnknownEnvironments) {
  rpc::GetSceneInfoRequestT info;
  rpc::ListEntitiesRequestT list;
  rpc::GetEntityRequestT get;
  rpc::SetEntityTransformRequestT set;
  info.env_id = list.env_id = get.env_id = set.env_id = kEnvs;
  set.id = 2;
  set.transform = std::make_unique<rpc::TransformT>();
  EXPECT_EQ(CodeOf(service_->GetSceneInfo(info).status()), kInvalid);
  EXPECT_EQ(CodeOf(service_->ListEntities(list).status()), kInvalid);
  EXPECT_EQ(CodeOf(service_->GetEntity(get).status()), kInvalid);
  EXPECT_EQ(CodeOf(service_->SetEntityTransform(set).status()), kInvalid);
}

TEST_F(SceneServiceTest, SetsTheModesThatThereAre) {
  for (const Mode mode : rpc::EnumValuesSimulationMode()) {
    rpc::SetSimulationModeRequestT request;
    request.mode = mode;
    const auto response = *service_->SetSimulationMode(request);
    EXPECT_TRUE(response.success);
    EXPECT_EQ(response.current_mode, mode);
    EXPECT_EQ(stepped_->mode(), mode);
    EXPECT_EQ(service_->GetSimulationMode({})->mode, mode);
  }
  rpc::SetSimulationModeRequestT request;
  request.mode = static_cast<Mode>(3);
  const auto response = service_->SetSimulationMode(request);
  EXPECT_EQ(CodeOf(response.status()), kInvalid);
  EXPECT_TRUE(absl::StrContains(response.status().message(), "2 (FAST)"));
  EXPECT_EQ(stepped_->mode(), Mode::FAST);
}

TEST_F(SceneServiceTest, SetsTheFactorOfRealTime) {
  rpc::SetSimulationModeRequestT request;
  request.mode = Mode::REALTIME;
  for (const float factor : {0.1F, 2.5F, 10.0F}) {
    request.realtime_factor = factor;
    EXPECT_EQ(service_->SetSimulationMode(request)->realtime_factor, factor);
    EXPECT_EQ(service_->GetSimulationMode({})->realtime_factor, factor);
  }
  for (const float factor :
       {0.0F, 0.09F, 10.1F, -1.0F, std::numeric_limits<float>::quiet_NaN(),
        std::numeric_limits<float>::infinity()}) {
    request.realtime_factor = factor;
    const auto response = service_->SetSimulationMode(request);
    EXPECT_EQ(CodeOf(response.status()), kInvalid) << factor;
    EXPECT_TRUE(absl::StrContains(response.status().message(), "0.1 to 10"));
  }
  EXPECT_EQ(service_->GetSimulationMode({})->realtime_factor, 10);
  request.mode = Mode::FAST;
  EXPECT_EQ(service_->SetSimulationMode(request)->realtime_factor, 1);
}

TEST_F(SceneServiceTest, PausesAndStepsWhilePaused) {
  EXPECT_EQ(CodeOf((*SingleStep(1))->status()), kInvalid);  // not paused
  rpc::SetPausedRequestT pause;
  pause.paused = true;
  EXPECT_TRUE(service_->SetPaused(pause)->paused);
  EXPECT_TRUE(service_->GetSimulationMode({})->paused);
  EXPECT_EQ(CodeOf((*SingleStep(0))->status()), kInvalid);

  const auto answer = SingleStep(3);
  EXPECT_FALSE(answer->has_value());
  EXPECT_EQ(CodeOf((*SingleStep(1))->status()), kInvalid);  // one is pending
  stepped_->Idle();
  ASSERT_TRUE(answer->has_value());
  EXPECT_EQ((**answer)->steps, 3u);
  EXPECT_TRUE((**answer)->success);
  EXPECT_EQ(stepped_->steps(), 3u);

  for (const bool again : {true, false}) {
    const auto cut_short = SingleStep(5);
    pause.paused = again;
    EXPECT_EQ(service_->SetPaused(pause)->paused, again);
    ASSERT_TRUE(cut_short->has_value());
    EXPECT_EQ((**cut_short)->steps, 0u);
    EXPECT_TRUE(absl::StrContains((**cut_short)->message, "0 of 5"));
  }
}

TEST_F(SceneServiceTest, AnEngineWithoutEntitiesStillHasItsTime) {
  SteppedEngine cart(MakeClassicControlEngine("CartPole-v1", {}).value());
  SceneService service(cart.rig.ports().scene, &cart, 1);
  EXPECT_EQ(CodeOf(service.GetSceneInfo({}).status()), ErrorCode::kUnsupported);
  EXPECT_EQ(CodeOf(service.ListEntities({}).status()), ErrorCode::kUnsupported);
  EXPECT_EQ(CodeOf(service.GetEntity({}).status()), ErrorCode::kUnsupported);
  EXPECT_EQ(CodeOf(service.SetEntityTransform({}).status()),
            ErrorCode::kUnsupported);
  EXPECT_EQ(service.GetSimulationMode({})->mode, Mode::FAST);
}

}  // namespace
}  // namespace tandem
