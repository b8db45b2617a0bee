#include "engine_adapter/contract_fields.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/error.h"

namespace tandem {
namespace {

TEST(ContractFields, HasTheGivenFieldsInTheSchemasOrder) {
  rpc::SimulationContractT contract;
  contract.terrain_type = "stairs";
  contract.terrain_difficulty = 0.5F;
  contract.friction_range = {0.5F, 1.25F};
  contract.pose_position_noise = {0, 0.1F, 0.2F};
  const auto fields = ContractFields(contract);
  ASSERT_TRUE(fields.ok()) << fields.status();
  ASSERT_EQ(fields->size(), 4u);
  EXPECT_EQ(std::string((*fields)[0].name), "pose_position_noise");
  EXPECT_EQ((*fields)[0].values, (std::vector<float>{0, 0.1F, 0.2F}));
  EXPECT_EQ(std::string((*fields)[1].name), "friction_range");
  EXPECT_EQ((*fields)[1].values, (std::vector<float>{0.5F, 1.25F}));
  EXPECT_EQ(std::string((*fields)[2].name), "terrain_type");
  EXPECT_EQ((*fields)[2].text, "stairs");
  EXPECT_EQ(std::string((*fields)[3].name), "terrain_difficulty");
  EXPECT_EQ((*fields)[3].values, (std::vector<float>{0.5F}));
}

TEST(ContractFields, AnEmptyContractHasNone) {
  EXPECT_TRUE(ContractFields({})->empty());
}

TEST(ContractFields, RefusesInvalidValuesByTheFieldsName) {
  const auto refused = [](const rpc::SimulationContractT& contract,
                          const std::string& field) {
    const auto fields = ContractFields(contract);
    EXPECT_EQ(CodeOf(fields.status()), ErrorCode::kInvalidArgument);
    EXPECT_TRUE(absl::StrContains(fields.status().message(), field))
        << fields.status();
  };
  rpc::SimulationContractT contract;
  contract.friction_range = {2, 1};
  refused(contract, "friction_range");
  contract.friction_range = {1};
  refused(contract, "friction_range");
  contract.friction_range = {1, std::numeric_limits<float>::infinity()};
  refused(contract, "friction_range");
  contract.friction_range = {};
  contract.joint_velocity_noise = -1;
  refused(contract, "joint_velocity_noise");
}

}  // namespace
}  // namespace tandem
