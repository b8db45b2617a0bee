// Contracts: domain randomisation by ResetAgent.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/error.h"
#include "engine_adapter/conformance/engine_rule.h"
#include "flatbuffers/flatbuffers.h"
#include "schema/layout/error_codes.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/rpc_client.h"

namespace tandem {
namespace {

using Contract = rpc::SimulationContractT;

// Has all fields but the terrain, whose names are the engine's.
Contract AllFields() {
  Contract contract;
  contract.pose_position_noise = {0.01F, 0.01F, 0.01F};
  contract.pose_orientation_noise = 0.01F;
  contract.joint_position_noise = 0.01F;
  contract.joint_velocity_noise = 0.01F;
  contract.friction_range = {0.5F, 1};
  contract.restitution_range = {0.1F, 0.2F};
  contract.mass_scale_range = {0.9F, 1.1F};
  contract.com_offset_range = {-0.01F, 0.01F};
  contract.motor_strength_range = {0.9F, 1.1F};
  contract.motor_offset_range = {-0.01F, 0.01F};
  contract.push_interval_range = {0.1F, 0.2F};
  contract.push_velocity_range = {0.1F, 0.2F};
  contract.vel_command_x_range = {-1, 1};
  contract.vel_command_y_range = {-1, 1};
  contract.vel_command_yaw_range = {-1, 1};
  contract.vel_command_resampling_time_range = {1, 2};
  contract.vel_command_standing_probability = 0.1F;
  return contract;
}

class Contracts
    : public RulesFor<Capability::kContracts, Capability::kHostObservations> {
 protected:
  static rpc::ResetAgentRequestT Request(const Contract* contract,
                                         std::optional<uint64_t> seed) {
    rpc::ResetAgentRequestT request;
    request.env_ids = {0, 1, 2};
    request.at_next_reset = true;
    if (contract == nullptr) return request;
    request.simulation_contract = std::make_unique<Contract>(*contract);
    if (seed) request.seed = *seed;
    return request;
  }
  rpc::ResetAgentResponseT Set(const Contract* contract,
                               std::optional<uint64_t> seed) {
    return Answer<rpc::ResetAgentResponseT>(rpc::MethodId::ResetAgent,
                                            Request(contract, seed));
  }
  // Sets the contract, and returns what is seen of some steps: observations,
  // and the places of entities.
  std::vector<std::vector<float>> Drawn(const Contract* contract,
                                        uint64_t seed) {
    Set(contract, seed);
    Reset({0, 1, 2}, 3);
    std::vector<std::vector<float>> seen;
    for (size_t step = 0; step < 5; ++step) {
      std::vector<float> now;
      for (const std::byte byte : AllObs()) {
        now.push_back(static_cast<float>(std::to_integer<int>(byte)));
      }
      for (uint32_t env = 0; env < kEnvs; ++env) AddPlaces(env, &now);
      seen.push_back(std::move(now));
      Step(step);
    }
    return seen;
  }

 private:
  void AddPlaces(uint32_t env, std::vector<float>* places) {
    if (!EngineFacts::Get().Serves(rpc::MethodId::ListEntities)) return;
    rpc::ListEntitiesRequestT request;
    request.env_id = env;
    request.include_transforms = true;
    const auto listed = Answer<rpc::ListEntitiesResponseT>(
        rpc::MethodId::ListEntities, std::move(request));
    for (const auto& entity : listed.entities) {
      if (entity->transform == nullptr || !entity->transform->position)
        continue;
      const rpc::Vec3& place = *entity->transform->position;
      places->insert(places->end(), {place.x(), place.y(), place.z()});
    }
  }
};

TEST_F(Contracts, FieldsWithoutEffectAreReportedByTheirNames) {
  Begin();
  const Contract contract = AllFields();
  const rpc::ResetAgentResponseT response = Set(&contract, 7);
  EXPECT_TRUE(response.success) << response.message;
  const flatbuffers::TypeTable& fields = *rpc::SimulationContractTypeTable();
  for (const std::string& name : response.unused_fields) {
    EXPECT_TRUE(std::any_of(fields.names, fields.names + fields.num_elems,
                            [&](const char* known) { return name == known; }))
        << name << " is no field of a contract";
    EXPECT_NE(name, "terrain_type") << "the contract has no terrain";
  }
}

// An engine may refuse the call, report the field as unused, or fail the next
// reset.
TEST_F(Contracts, AnUnknownTerrainIsReportedOrRefused) {
  Begin();
  Contract contract;
  contract.terrain_type = "no such terrain";
  const absl::StatusOr<RpcMessage> answer =
      engine_.Call(rpc::MethodId::ResetAgent, Request(&contract, 7));
  if (!answer.ok()) {
    EXPECT_EQ(CodeOf(answer.status()), ErrorCode::kInvalidArgument);
  } else if (Set(&contract, 7).unused_fields.empty()) {
    const std::vector<int64_t> all = {0, 1, 2};
    const std::vector<std::optional<uint64_t>> seeds(all.size(), 3);
    ASSERT_EQ(engine_.client->SendReset(all, seeds), ErrorCode::kOk);
    EXPECT_EQ(engine_.client->Recv(Deadline::Infinite()),
              ErrorCode::kEngineFailed)
        << "the terrain is neither reported nor refused";
    Set(nullptr, 7);
    Reset(all, 3);
  } else {
    EXPECT_EQ(Set(&contract, 7).unused_fields,
              std::vector<std::string>{"terrain_type"});
  }
  Step();
}

TEST_F(Contracts, TheSameSeedDrawsTheSameAndAnotherDrawsOtherwise) {
  Begin();
  const Contract contract = AllFields();
  const auto first = Drawn(&contract, 7);
  EXPECT_TRUE(Drawn(&contract, 7) == first) << "two draws of one seed differ";
  if (Drawn(nullptr, 7) == first) {
    GTEST_SKIP() << "engine whose observations and entities show no contract";
  }
  EXPECT_FALSE(Drawn(&contract, 8) == first) << "draws of two seeds are equal";
}

TEST_F(Contracts, WithoutAContractTheTaskIsAsBefore) {
  Begin();
  const Contract contract = AllFields();
  const auto before = Drawn(nullptr, 7);
  Drawn(&contract, 7);
  EXPECT_TRUE(Drawn(nullptr, 7) == before)
      << "a removed contract still has an effect";
}

}  // namespace
}  // namespace tandem
