#include "gateway/task_contract.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::gateway {
namespace {

namespace pb = hazel::rpc;
using testing::ElementsAre;

TaskTerms Terms() {
  pb::AgentSchema schema;
  schema.add_observation_names("height");
  schema.set_observation_size(2);
  schema.set_action_size(1);
  return TermsOf(schema,
                 {.infos = {"x_position", "reward_forward", "reward_ctrl"}});
}

TEST(TaskContract, TermsAreTheSchemasAndTheRewardsParts) {
  const TaskTerms terms = Terms();
  EXPECT_THAT(terms.observations, ElementsAre("height", "observation_1"));
  EXPECT_THAT(terms.actions, ElementsAre("action_0"));
  EXPECT_THAT(terms.rewards,
              ElementsAre("reward", "reward_forward", "reward_ctrl"));
  EXPECT_THAT(terms.terminations, ElementsAre("terminated", "time_out"));
}

TEST(TaskContract, UnknownTermsAreErrorsWithTheNearestName) {
  pb::TaskContract contract;
  contract.mutable_rewards()->add_engine_terms()->set_name("reward_foward");
  contract.mutable_terminations()->add_terms()->set_name("fell_over");
  const pb::ContractValidationResult result = Validate(contract, Terms());
  EXPECT_FALSE(result.is_valid());
  ASSERT_EQ(result.errors_size(), 2);
  EXPECT_EQ(result.errors(0).component(), "rewards");
  EXPECT_EQ(result.errors(0).term_name(), "reward_foward");
  EXPECT_EQ(result.errors(0).suggestion(), "did you mean 'reward_forward'?");
  EXPECT_EQ(result.errors(1).component(), "terminations");
  EXPECT_EQ(result.errors(1).suggestion(),
            "GetCapabilityManifest has all names");
}

TEST(TaskContract, OptionalObservationsAreResolvedOrNot) {
  pb::TaskContract contract;
  contract.mutable_observations()->add_required()->set_name("height");
  contract.mutable_observations()->add_optional()->set_name("height");
  contract.mutable_observations()->add_optional()->set_name("speed");
  const pb::ContractValidationResult result = Validate(contract, Terms());
  EXPECT_TRUE(result.is_valid());
  EXPECT_THAT(result.resolved_optionals(), ElementsAre("height"));
  EXPECT_THAT(result.unresolved_optionals(), ElementsAre("speed"));
}

TEST(TaskContract, PartsWithoutAFunctionAreWarnings) {
  pb::TaskContract contract;
  auto* const reward = contract.mutable_rewards()->add_engine_terms();
  reward->set_name("reward");
  reward->set_weight(0.5F);
  contract.mutable_actions()->add_terms()->set_type("joint_position");
  contract.mutable_randomization()->add_custom_randomizations();
  contract.add_auxiliary_data()->set_name("contacts");
  const pb::ContractValidationResult result = Validate(contract, Terms());
  EXPECT_TRUE(result.is_valid());
  EXPECT_EQ(result.warnings_size(), 4);
}

TEST(TaskContract, SessionWithoutRewardTermsHasTheReward) {
  const pb::NegotiatedTaskSession session = SessionOf({}, Terms());
  EXPECT_THAT(session.reward_terms(), ElementsAre("reward"));
  EXPECT_EQ(session.observation_layout_size(), 2);
  EXPECT_EQ(session.observation_layout(1).offset(), 1);
}

TEST(TaskContract, ATaskWithoutARewardHasNoRewardTerm) {
  const TaskTerms terms = TermsOf({}, {.infos = {}, .has_reward = false});
  EXPECT_TRUE(terms.rewards.empty());
  EXPECT_EQ(SessionOf({}, terms).reward_terms_size(), 0);
  pb::TaskContract contract;
  contract.mutable_rewards()->add_engine_terms()->set_name("reward");
  EXPECT_FALSE(Validate(contract, terms).is_valid());
}

TEST(TaskContract, NearestNameIsNoneOfVeryDifferentOnes) {
  EXPECT_EQ(NearestName("tme_out", {"terminated", "time_out"}), "time_out");
  EXPECT_EQ(NearestName("zzz", {"terminated", "time_out"}), "");
  EXPECT_EQ(NearestName("", {"a"}), "");
  EXPECT_EQ(NearestName("x", {}), "");
}

}  // namespace
}  // namespace tandem::gateway
