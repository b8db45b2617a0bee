#include "engine_adapter/services/agent_service.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "base/error.h"
#include "engine_adapter/classic_control/classic_control_tasks.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/mujoco/model/mujoco_log.h"
#include "engine_adapter/mujoco/mujoco_tasks.h"
#include "engine_adapter/testing/stepped_engine.h"

namespace tandem {
namespace {

using Texts = std::vector<std::string>;

constexpr uint32_t kEnvs = 3;

class AgentServiceTest : public testing::Test {
 protected:
  AgentServiceTest() {
    InstallMujocoLog([](absl::string_view) {});
  }
  ~AgentServiceTest() override { InstallMujocoLog(nullptr); }

  void Start(std::unique_ptr<Engine> engine) {
    stepped_.emplace(std::move(engine));
    service_.emplace(stepped_->rig.schema(),
                     stepped_->rig.ports().randomization, &*stepped_);
  }
  void StartRandomising() {
    Start(MakeMujocoEngine("HalfCheetah-v5", {.num_envs = kEnvs}).value());
  }
  void StartPlain() {
    Start(MakeClassicControlEngine("CartPole-v1", {.num_envs = kEnvs}).value());
  }
  static std::unique_ptr<rpc::SimulationContractT> Contract() {
    auto contract = std::make_unique<rpc::SimulationContractT>();
    contract->terrain_type = "flat";
    return contract;
  }

  absl::StatusOr<rpc::ResetAgentResponseT> ResetAgent(
      const rpc::ResetAgentRequestT& request) {
    absl::StatusOr<rpc::ResetAgentResponseT> answer =
        absl::UnknownError("no answer");
    service_->ResetAgent(
        request, [&](absl::StatusOr<rpc::ResetAgentResponseT> response) {
          answer = std::move(response);
        });
    return answer;
  }

  std::optional<SteppedEngine> stepped_;
  std::optional<AgentService> service_;
};

TEST_F(AgentServiceTest, ReturnsSchemasOfRequestedEnvironments) {
  StartRandomising();
  rpc::GetAgentSchemaRequestT request;
  request.agent_name = "agent_2";
  auto response = *service_->GetAgentSchema(request);
  EXPECT_EQ(response.schema->agent_name, "agent_2");
  EXPECT_EQ(response.schema->observation_size, 17u);
  EXPECT_EQ(response.schema->action_size, 6u);
  EXPECT_TRUE(response.schemas.empty());
  EXPECT_EQ(response.schema->observation_names.size(), 17u);
  EXPECT_EQ(response.schema->observation_names[0], "qpos/rootz");
  EXPECT_EQ(response.schema->action_names[5], "ffoot");
  request.env_ids = {1, 0};
  response = *service_->GetAgentSchema(request);
  EXPECT_EQ(response.schema->agent_name, "agent_1");
  ASSERT_EQ(response.schemas.size(), 2u);
  EXPECT_EQ(response.schemas[1]->agent_name, "agent_0");
  request.env_ids = {kEnvs};
  EXPECT_EQ(CodeOf(service_->GetAgentSchema(request).status()),
            ErrorCode::kInvalidArgument);
}

TEST_F(AgentServiceTest, ResetRunsAtOnceAndRepeatsWithItsSeed) {
  StartRandomising();
  rpc::ResetAgentRequestT request;
  request.env_ids = {1, 2};
  request.seed = 7;
  EXPECT_EQ(ResetAgent(request)->message, "reset 2 environments");
  const std::vector<float> first = stepped_->rig.obs;
  stepped_->Exchange();
  EXPECT_NE(stepped_->rig.obs, first);
  ASSERT_TRUE(ResetAgent(request).ok());
  EXPECT_TRUE(std::equal(first.begin() + 17, first.end(),
                         stepped_->rig.obs.begin() + 17));
}

TEST_F(AgentServiceTest, ContractIsSetAndCleared) {
  StartRandomising();
  const std::vector<float> before = stepped_->rig.obs;
  rpc::ResetAgentRequestT request;
  request.at_next_reset = true;
  request.simulation_contract = Contract();
  auto response = *ResetAgent(request);
  EXPECT_TRUE(response.success);
  EXPECT_TRUE(absl::StartsWith(response.message, "contract taken on by 1 env"))
      << response.message;
  request.simulation_contract = nullptr;
  response = *ResetAgent(request);
  EXPECT_TRUE(response.success);
  EXPECT_TRUE(absl::StrContains(response.message, "given up by 1 env"))
      << response.message;
  EXPECT_EQ(stepped_->rig.obs, before);  // no environment was reset
}

TEST_F(AgentServiceTest, EngineWithoutRandomisationReportsAllFieldsUnused) {
  StartPlain();
  rpc::ResetAgentRequestT request;
  request.at_next_reset = true;
  auto response = *ResetAgent(request);
  EXPECT_TRUE(absl::StrContains(response.message, "nothing changes"))
      << response.message;
  EXPECT_TRUE(response.unused_fields.empty());
  request.simulation_contract = Contract();
  const absl::Status status = ResetAgent(request).status();
  EXPECT_EQ(CodeOf(status), ErrorCode::kUnsupported);
  EXPECT_TRUE(absl::StrContains(status.message(), "CartPole-v1")) << status;
  request = {};
  EXPECT_EQ(ResetAgent(request)->message, "reset 1 environment");
}

TEST_F(AgentServiceTest, RefusesSeedWithoutRandomisation) {
  StartPlain();
  rpc::ResetAgentRequestT request;
  request.seed = 5;
  EXPECT_TRUE(ResetAgent(request).ok());  // the seed is the reset's
  request.at_next_reset = true;
  const absl::Status status = ResetAgent(request).status();
  EXPECT_EQ(CodeOf(status), ErrorCode::kUnsupported);
  for (const char* const text : {"seed", "CartPole-v1", "found 5"}) {
    EXPECT_TRUE(absl::StrContains(status.message(), text)) << status;
  }
}

}  // namespace
}  // namespace tandem
