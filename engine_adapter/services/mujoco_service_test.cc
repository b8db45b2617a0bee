#include "engine_adapter/services/mujoco_service.h"

#include <gtest/gtest.h>
#include <mujoco/mujoco.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/mujoco/model/mujoco_log.h"
#include "engine_adapter/mujoco/mujoco_tasks.h"
#include "engine_adapter/rpc/rpc_answer.h"
#include "engine_adapter/testing/stepped_engine.h"

namespace tandem {
namespace {

using Floats = std::vector<float>;
using Texts = std::vector<std::string>;
using Envs = std::vector<uint32_t>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A cart with a flexible pole: three actuators, one without a name, the last
// without a range.
std::string ModelPath() {
  std::string path = absl::StrCat(testing::TempDir(), "/cart.xml");
  std::ofstream(path) << R"(<mujoco model="cart"><worldbody>
      <body><joint name="slide" type="slide" axis="1 0 0"/><geom size=".1"/>
        <body><joint name="pole" axis="0 1 0"/>
          <geom type="capsule" fromto="0 0 0 0 0 .5" size=".05"/>
          <body pos="0 0 .5"><joint axis="0 1 0"/>
            <geom type="capsule" fromto="0 0 0 0 0 .5" size=".05"/></body>
      </body></body></worldbody><actuator>
      <motor name="push" joint="slide" ctrlrange="-1 1"/>
      <motor joint="pole" ctrlrange="-.5 .25"/>
      <motor name="twist" joint="pole"/></actuator></mujoco>)";
  return path;
}

class MujocoServiceTest : public testing::Test {
 protected:
  static constexpr uint32_t kEnvs = 3;

  MujocoServiceTest() {
    InstallMujocoLog([](absl::string_view) {});
    stepped_.emplace(MakeModelEngine(ModelPath(), {.num_envs = kEnvs}).value());
    service_.emplace(stepped_->rig.ports().mujoco, &*stepped_, kEnvs);
  }
  ~MujocoServiceTest() override { InstallMujocoLog(nullptr); }

  void Act(uint32_t env, const Floats& controls) {
    std::ranges::copy(controls, stepped_->rig.actions.begin() + 3 * env);
  }
  Floats Controls(uint32_t env) {
    return stepped_->rig.ports().mujoco->Controls(env);
  }
  // Calls SendControl, and returns the answer if it came at once.
  std::optional<absl::StatusOr<rpc::SendControlResponseT>> Send(
      const rpc::SendControlRequestT& request) {
    std::optional<absl::StatusOr<rpc::SendControlResponseT>> answer;
    const auto late = std::make_shared<
        std::optional<absl::StatusOr<rpc::SendControlResponseT>>>();
    service_->SendControl(request, [late](auto response) {
      EXPECT_FALSE(late->has_value());
      *late = std::move(response);
    });
    late_.push_back(late);
    return *late;
  }
  void ExpectRefused(const rpc::SendControlRequestT& request,
                     const Texts& texts) {
    const auto answer = Send(request);
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(CodeOf(answer->status()), ErrorCode::kInvalidArgument);
    for (const std::string& text : texts) {
      EXPECT_TRUE(absl::StrContains(answer->status().message(), text))
          << answer->status();
    }
    for (uint32_t env = 0; env < kEnvs; ++env) {
      EXPECT_EQ(Controls(env), (Floats{0, 0, 0}));
    }
  }
  static void AddIndexed(rpc::SendControlRequestT* request, uint32_t index,
                         float value) {
    request->indexed.push_back(std::make_unique<rpc::IndexedControlEntryT>());
    request->indexed.back()->actuator_index = index;
    request->indexed.back()->value = value;
  }
  static void AddNamed(rpc::SendControlRequestT* request,
                       const std::string& name, float value) {
    request->named.push_back(std::make_unique<rpc::NamedControlEntryT>());
    request->named.back()->actuator_name = name;
    request->named.back()->value = value;
  }

  std::optional<SteppedEngine> stepped_;
  std::optional<MujocoService> service_;
  std::vector<
      std::shared_ptr<std::optional<absl::StatusOr<rpc::SendControlResponseT>>>>
      late_;
};

TEST_F(MujocoServiceTest, JointsAreMujocosOfThatEnvironmentAndMoment) {
  char error[1000] = "";
  mjModel* const model = mj_loadXML(ModelPath().c_str(), nullptr, error, 1000);
  ASSERT_NE(model, nullptr) << error;
  std::vector<mjData*> datas;
  for (uint32_t env = 0; env < kEnvs; ++env) {
    datas.push_back(mj_makeData(model));
    mj_forward(model, datas.back());
    Act(env, {0.1F * static_cast<float>(env), 0.25F, -1});
    for (int i = 0; i < 3; ++i) {
      datas[env]->ctrl[i] = stepped_->rig.actions[3 * env + size_t(i)];
    }
  }
  for (int step = 0; step < 20; ++step) {
    stepped_->Exchange();
    for (mjData* const data : datas) mj_step(model, data);
  }
  const auto expect_state = [&](const rpc::JointStateT& state, uint32_t env) {
    EXPECT_EQ(state.env_id, env);
    EXPECT_EQ(state.nq, 3u);
    EXPECT_EQ(state.nv, 3u);
    EXPECT_EQ(state.positions,
              Floats(datas[env]->qpos, datas[env]->qpos + model->nq));
    EXPECT_EQ(state.velocities,
              Floats(datas[env]->qvel, datas[env]->qvel + model->nv));
  };
  rpc::GetJointStateRequestT request;
  auto response = *service_->GetJointState(request);
  EXPECT_TRUE(response.success);
  expect_state(*response.state, 0);
  EXPECT_TRUE(response.states.empty());

  request.robot_name = "agent_2";
  response = *service_->GetJointState(request);
  expect_state(*response.state, 2);
  EXPECT_TRUE(response.states.empty());

  request.env_ids = {2, 0};
  response = *service_->GetJointState(request);
  expect_state(*response.state, 2);
  ASSERT_EQ(response.states.size(), 2u);
  expect_state(*response.states[0], 2);
  expect_state(*response.states[1], 0);

  request.env_ids = {3};
  EXPECT_EQ(CodeOf(service_->GetJointState(request).status()),
            ErrorCode::kInvalidArgument);
  for (mjData* const data : datas) mj_deleteData(data);
  mj_deleteModel(model);
}

TEST_F(MujocoServiceTest, InfoHasTheModelsSizesAndNames) {
  rpc::GetMujocoInfoRequestT request;
  const auto info = *service_->GetMujocoInfo(request);
  EXPECT_TRUE(info.success);
  EXPECT_EQ(info.nq, 3u);
  EXPECT_EQ(info.nv, 3u);
  EXPECT_EQ(info.nu, 3u);
  EXPECT_EQ(info.joint_names, (Texts{"slide", "pole", ""}));
  EXPECT_EQ(info.actuator_names, (Texts{"push", "", "twist"}));
  request.robot_name = "agent_3";
  EXPECT_EQ(CodeOf(service_->GetMujocoInfo(request).status()),
            ErrorCode::kInvalidArgument);
}

TEST_F(MujocoServiceTest, ControlsHoldForTheNextStepOfThoseEnvironments) {
  Act(0, {0.5F, 0.1F, 1});
  Act(1, {0.5F, 0.1F, 1});
  rpc::SendControlRequestT request;
  request.env_ids = {1, 2};
  AddNamed(&request, "twist", 3);
  const uint64_t changes = stepped_->changes();
  const auto answer = Send(request);
  EXPECT_GT(stepped_->changes(), changes);
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE((*answer)->success);
  EXPECT_EQ((*answer)->actuators_written, 1u);
  EXPECT_TRUE((*answer)->rejected_actuators.empty());
  stepped_->Exchange();
  EXPECT_EQ(Controls(0), (Floats{0.5F, 0.1F, 1}));
  EXPECT_EQ(Controls(1), (Floats{0.5F, 0.1F, 3}));
  EXPECT_EQ(Controls(2), (Floats{0, 0, 3}));
  stepped_->Exchange();
  EXPECT_EQ(Controls(1), (Floats{0.5F, 0.1F, 1}));
}

TEST_F(MujocoServiceTest, NamedControlsWinOverIndexedOnesAndThoseOverBulk) {
  rpc::SendControlRequestT request;
  request.bulk = {0.1F, 0.1F, 0.1F};
  AddIndexed(&request, 2, 0.2F);
  AddIndexed(&request, 1, 0.15F);
  AddIndexed(&request, 1, 0.2F);
  AddNamed(&request, "twist", 0.3F);
  const auto answer = Send(request);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ((*answer)->actuators_written, 3u);
  EXPECT_EQ(Controls(0), (Floats{0.1F, 0.2F, 0.3F}));
  request = {};
  request.bulk = {0.9F};  // the other controls are kept
  ASSERT_EQ((**Send(request)).actuators_written, 1u);
  EXPECT_EQ(Controls(0), (Floats{0.9F, 0.2F, 0.3F}));
}

TEST_F(MujocoServiceTest, ClampsControlsUnlessDisabled) {
  rpc::SendControlRequestT request;
  request.bulk = {7, -7, 7};
  (void)Send(request);
  EXPECT_EQ(Controls(0), (Floats{1, -0.5F, 7}));
  request.skip_range_clamp = true;
  (void)Send(request);
  EXPECT_EQ(Controls(0), (Floats{7, -7, 7}));
}

TEST_F(MujocoServiceTest, InvalidControlsAreRefusedTogether) {
  rpc::SendControlRequestT good;
  good.bulk = {0.5F, 0.1F};
  rpc::SendControlRequestT request = good;
  AddNamed(&request, "pull", 1);
  ExpectRefused(request, {"pull", "push, twist"});
  request = good;
  AddNamed(&request, "", 1);  // does not select the unnamed actuator
  ExpectRefused(request, {"push, twist"});
  request = good;
  AddIndexed(&request, 3, 1);
  ExpectRefused(request, {"below 3", "found 3"});
  request = good;
  AddIndexed(&request, 2, kNan);
  ExpectRefused(request, {"actuator 2", "nan"});
  request = good;
  request.bulk[1] = std::numeric_limits<float>::infinity();
  ExpectRefused(request, {"actuator 1", "inf"});
  request = good;
  request.bulk = {0.1F, 0.1F, 0.1F, 0.7F};
  ExpectRefused(request, {"bulk", "at most 3", "found 4"});
  request = {};
  ExpectRefused(request, {"one at least", "3 actuators", "found none"});
  request.wait_for_next_step = true;
  ExpectRefused(request, {"found none"});
  request = good;
  request.env_ids = {0, 3};
  ExpectRefused(request, {"found 3"});
  request = good;
  request.wait_for_next_step = true;
  request.env_ids = {1, 1};
  ExpectRefused(request, {"twice"});
}

TEST_F(MujocoServiceTest, CallThatWaitsForStepIsAnsweredOnce) {
  rpc::SendControlRequestT request;
  request.bulk = {0.5F};
  request.wait_for_next_step = true;
  EXPECT_FALSE(Send(request).has_value());
  service_->AnswerWaiting();
  EXPECT_FALSE(late_[0]->has_value());
  stepped_->Exchange();
  // A call that comes before the answers waits for the step after next.
  EXPECT_FALSE(Send(request).has_value());
  service_->AnswerWaiting();
  ASSERT_TRUE(late_[0]->has_value());
  EXPECT_EQ((**late_[0])->actuators_written, 1u);
  EXPECT_FALSE(late_[1]->has_value());
  stepped_->SetPaused(true);
  ASSERT_TRUE(stepped_->SingleStep(1, [](auto) {}).ok());
  stepped_->Idle();
  service_->AnswerWaiting();
  EXPECT_TRUE(late_[1]->has_value());
  service_->AnswerWaiting();
}

TEST_F(MujocoServiceTest, DropsCallsOfTheCallerThatLeftAndNoOthers) {
  rpc::SendControlRequestT request;
  request.bulk = {0.5F};
  request.wait_for_next_step = true;
  EXPECT_FALSE(Send(request).has_value());
  auto waits = std::make_shared<bool>(true);
  const auto kept = std::make_shared<bool>(false);
  service_->SendControl(request,
                        {[kept](const auto&) { *kept = true; }, waits});
  waits.reset();
  service_->ForgetCancelled();
  EXPECT_EQ(kept.use_count(), 1);
  stepped_->Exchange();
  service_->AnswerWaiting();
  EXPECT_TRUE(late_[0]->has_value());
}

TEST_F(MujocoServiceTest, DropsCancelledCalls) {
  rpc::SendControlRequestT request;
  request.bulk = {0.5F};
  request.wait_for_next_step = true;
  auto waits = std::make_shared<bool>(true);
  const auto kept = std::make_shared<bool>(false);
  service_->SendControl(request,
                        {[kept](const auto&) { *kept = true; }, waits});
  EXPECT_GT(kept.use_count(), 1);
  waits.reset();
  EXPECT_FALSE(Send(request).has_value());
  EXPECT_EQ(kept.use_count(), 1);
}

TEST_F(MujocoServiceTest, AStreamGivesEachMomentOnce) {
  rpc::GetJointStateRequestT request;
  request.env_ids = {2, 1};
  request.target_fps = 30;
  const RpcStream stream = *service_->StreamJointState(request);
  EXPECT_EQ(stream.hz, 30);
  for (int moment = 0; moment < 4; ++moment) {
    const auto items = *stream.next();
    ASSERT_EQ(items.size(), 1u);
    const auto* const item = items[0].AsGetJointStateResponse();
    ASSERT_NE(item, nullptr);
    EXPECT_EQ(item->state->positions,
              service_->GetJointState(request)->state->positions);
    ASSERT_EQ(item->states.size(), 2u);
    EXPECT_EQ(item->states[1]->env_id, 1u);
    EXPECT_TRUE(stream.next()->empty());
    stepped_->Exchange();
  }
  ASSERT_EQ(stream.next()->size(), 1u);
  stepped_->Reset(request.env_ids, 5,
                  [](const absl::Status& status) { EXPECT_TRUE(status.ok()); });
  EXPECT_EQ(stream.next()->size(), 1u);
  EXPECT_EQ(stream.pass(), 0u);
  stepped_->Exchange();
  EXPECT_EQ(stream.pass(), 1u);
  EXPECT_EQ(stream.pass(), 0u);
  // When there is room the moment is sent, since it is the newest.
  EXPECT_EQ(stream.next()->size(), 1u);
  EXPECT_EQ(stream.pass(), 0u);
  EXPECT_TRUE(stream.next()->empty());
  request.env_ids = {9};
  EXPECT_EQ(CodeOf(service_->StreamJointState(request).status()),
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace tandem
