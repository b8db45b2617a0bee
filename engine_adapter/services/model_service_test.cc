#include "engine_adapter/services/model_service.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/mujoco/model/mujoco_log.h"
#include "engine_adapter/mujoco/mujoco_tasks.h"
#include "engine_adapter/testing/stepped_engine.h"

namespace tandem {
namespace {

using Floats = std::vector<float>;
using Numbers = std::vector<uint32_t>;

// A body that floats, with a hinge: qpos has 7 + 1 numbers.
std::string ModelPath() {
  std::string path = absl::StrCat(testing::TempDir(), "/floating.xml");
  std::ofstream(path) << R"(<mujoco><option gravity="0 0 0"/><worldbody>
      <body><freejoint name="root"/><geom size=".1"/>
        <body pos=".2 0 0"><joint name="arm" range="-90 45"/>
          <geom size=".1"/><site name="tip"/></body>
      </body></worldbody><actuator>
      <position name="servo" joint="arm" kp="20" ctrlrange="-1 1"/>
      <motor site="tip"/></actuator></mujoco>)";
  return path;
}

class ModelServiceTest : public testing::Test {
 protected:
  static constexpr uint32_t kEnvs = 2;

  ModelServiceTest()
      : stepped_(MakeModelEngine(ModelPath(), {.num_envs = kEnvs}).value()),
        service_(stepped_.rig.ports().mujoco->model(), &stepped_, kEnvs) {}

  rpc::FullStateT StateOf(uint32_t env) {
    rpc::GetFullStateRequestT request;
    request.include_qpos = request.include_qvel = request.include_ctrl = true;
    request.env_id = env;
    return *service_.GetFullState(request)->state;
  }
  void ExpectRefused(const rpc::SetQposRequestT& request,
                     absl::string_view text) {
    const absl::Status status = service_.SetQpos(request).status();
    EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument);
    EXPECT_TRUE(absl::StrContains(status.message(), text)) << status;
    EXPECT_EQ(StateOf(0).qpos, (Floats{0, 0, 0, 1, 0, 0, 0, 0}));
  }

  SteppedEngine stepped_;
  ModelService service_;
};

TEST_F(ModelServiceTest, ModelHasJointsAndActuators) {
  const auto info = *service_.GetModelInfo({});
  EXPECT_TRUE(info.success);
  EXPECT_EQ((Numbers{info.nq, info.nv, info.nu, info.njnt}),
            (Numbers{8, 7, 2, 2}));
  ASSERT_EQ(info.joints.size(), 2U);
  EXPECT_EQ(info.joints[0]->name, "root");
  EXPECT_EQ(info.joints[0]->type, rpc::MjJointType::FREE);
  EXPECT_FALSE(info.joints[0]->limited);
  const rpc::JointDescriptorT& arm = *info.joints[1];
  EXPECT_EQ(arm.type, rpc::MjJointType::HINGE);
  EXPECT_EQ((Numbers{arm.index, arm.qpos_adr, arm.qvel_adr}),
            (Numbers{1, 7, 6}));
  EXPECT_TRUE(arm.limited);
  EXPECT_FLOAT_EQ(arm.range_lo, -1.5707964F);
  EXPECT_FLOAT_EQ(arm.range_hi, 0.7853982F);
  ASSERT_EQ(info.actuators.size(), 2U);
  EXPECT_EQ(info.actuators[0]->name, "servo");
  EXPECT_TRUE(info.actuators[0]->ctrl_limited);
  EXPECT_EQ(info.actuators[0]->ctrl_range_lo, -1);
  EXPECT_EQ(info.actuators[0]->target_joint_index, 1);
  EXPECT_FALSE(info.actuators[1]->ctrl_limited);
  EXPECT_EQ(info.actuators[1]->target_joint_index, -1);
}

TEST_F(ModelServiceTest, StateIsThatOfTheEnvironmentAfterTheStep) {
  stepped_.rig.actions[2] = 0.5F;  // the servo of environment 1
  stepped_.Exchange();
  const rpc::FullStateT still = StateOf(0);
  const rpc::FullStateT moved = StateOf(1);
  EXPECT_EQ(still.qpos[7], 0);
  EXPECT_GT(moved.qpos[7], 0);
  EXPECT_GT(moved.qvel[6], 0);
  EXPECT_EQ(moved.ctrl, (Floats{0.5F, 0}));
  EXPECT_EQ(moved.time, stepped_.rig.step_secs());
  EXPECT_EQ(moved.frame_number, 1U);
}

TEST_F(ModelServiceTest, StateHasTheRequestedPartsAndJoints) {
  rpc::GetFullStateRequestT request;
  request.include_qvel = true;
  auto response = *service_.GetFullState(request);
  EXPECT_TRUE(response.state->qpos.empty());
  EXPECT_EQ(response.state->qvel.size(), 7U);
  EXPECT_TRUE(response.state->ctrl.empty());
  EXPECT_EQ(response.included_joint_indices, (Numbers{0, 1}));
  EXPECT_EQ(response.included_actuator_indices, (Numbers{0, 1}));

  request.filter = std::make_unique<rpc::StateFilterT>();
  request.filter->include_only_unclaimed_joints = true;
  EXPECT_EQ(service_.GetFullState(request)->state->qvel.size(), 7U);
  request.filter->include_only_policy_claimed_joints = true;
  response = *service_.GetFullState(request);
  EXPECT_TRUE(response.state->qvel.empty());
  EXPECT_TRUE(response.included_joint_indices.empty());
}

TEST_F(ModelServiceTest, StreamHasAStateAfterEachChange) {
  rpc::StreamFullStateRequestT request;
  request.include_qpos = true;
  const RpcStream stream = *service_.StreamFullState(request);
  EXPECT_EQ((*stream.next()).size(), 1U);
  EXPECT_EQ((*stream.next()).size(), 0U);
  stepped_.Exchange();
  EXPECT_EQ((*stream.next())[0].AsGetFullStateResponse()->state->frame_number,
            1U);
}

TEST_F(ModelServiceTest, PositionsAreSetInThatEnvironmentOnly) {
  rpc::SetQposRequestT request;
  request.bulk = {1, 2};
  request.indexed.push_back(std::make_unique<rpc::IndexedQposEntryT>());
  request.indexed[0]->qpos_index = 1;
  request.indexed[0]->value = 3;
  request.env_id = 1;
  const uint64_t changes = stepped_.changes();
  const auto response = *service_.SetQpos(request);
  EXPECT_TRUE(response.success);
  EXPECT_EQ(response.values_written, 2U);
  EXPECT_GT(stepped_.changes(), changes);
  EXPECT_EQ(StateOf(1).qpos, (Floats{1, 3, 0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(StateOf(0).qpos, (Floats{0, 0, 0, 1, 0, 0, 0, 0}));
}

TEST_F(ModelServiceTest, QuaternionsBecomeUnitQuaternions) {
  rpc::SetQposRequestT request;
  request.bulk = {0, 0, 0, 0, 2};
  ASSERT_TRUE(service_.SetQpos(request).ok());
  EXPECT_EQ(StateOf(0).qpos, (Floats{0, 0, 0, 0, 1, 0, 0, 0}));
}

TEST_F(ModelServiceTest, InvalidPositionsAreRefused) {
  rpc::SetQposRequestT request;
  ExpectRefused(request, "found 0 in bulk");
  request.bulk = Floats(9, 1);
  ExpectRefused(request, "found 9 in bulk");
  request.bulk = {std::numeric_limits<float>::quiet_NaN()};
  ExpectRefused(request, "expected a finite number");
  request.bulk = {1};
  request.indexed.push_back(std::make_unique<rpc::IndexedQposEntryT>());
  request.indexed[0]->qpos_index = 8;
  ExpectRefused(request, "expected one below 8, found 8");
}

TEST_F(ModelServiceTest, GainsAreTheModels) {
  const auto response = *service_.GetActuatorGains({});
  ASSERT_EQ(response.actuators.size(), 2U);
  EXPECT_EQ(response.actuators[0]->actuator_name, "servo");
  EXPECT_EQ(response.actuators[0]->gain_prm_0, 20);
  EXPECT_EQ(response.actuators[1]->actuator_index, 1U);
  EXPECT_EQ(response.actuators[1]->gain_prm_0, 1);
}

TEST_F(ModelServiceTest, UnknownEnvironmentsAreRefused) {
  rpc::GetFullStateRequestT state;
  state.env_id = kEnvs;
  EXPECT_EQ(CodeOf(service_.GetFullState(state).status()),
            ErrorCode::kInvalidArgument);
  rpc::StreamFullStateRequestT stream;
  stream.env_id = kEnvs;
  EXPECT_EQ(CodeOf(service_.StreamFullState(stream).status()),
            ErrorCode::kInvalidArgument);
  rpc::SetQposRequestT positions;
  positions.bulk = {1};
  positions.env_id = kEnvs;
  EXPECT_EQ(CodeOf(service_.SetQpos(positions).status()),
            ErrorCode::kInvalidArgument);
  rpc::GetActuatorGainsRequestT gains;
  gains.env_id = kEnvs;
  EXPECT_EQ(CodeOf(service_.GetActuatorGains(gains).status()),
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace tandem
