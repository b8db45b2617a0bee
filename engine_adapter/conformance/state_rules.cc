// States: environments that are saved, and continue from what was saved.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/error.h"
#include "engine_adapter/conformance/engine_rule.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/lrbc.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {
namespace {

const std::vector<uint32_t> kAll = {0, 1, 2};
constexpr size_t kFuture = 12;  // steps

using Saved = rpc::SaveStatesResponseT;
// What a step returns, of each environment: its bytes.
using Results = std::vector<Observation>;

class StateRule : public EngineRule {
 protected:
  using EngineRule::EngineRule;

  void Steps(size_t count) {
    for (size_t step = 0; step < count; ++step) Step(step);
  }
  Saved Save() {
    rpc::SaveStatesRequestT request;
    request.env_ids = kAll;
    return Answer<Saved>(rpc::MethodId::SaveStates, std::move(request));
  }
  // Gives the states, one after another, to `envs`.
  static rpc::LoadStatesRequestT Loading(const Saved& saved,
                                         std::vector<uint32_t> envs) {
    rpc::LoadStatesRequestT request;
    request.fingerprint = saved.fingerprint;
    request.env_ids = std::move(envs);
    for (const auto& state : saved.states) {
      request.states.push_back(std::make_unique<rpc::EnvStateT>(*state));
    }
    return request;
  }
  void Load(const Saved& saved, const std::vector<uint32_t>& envs) {
    Answer<rpc::LoadStatesResponseT>(rpc::MethodId::LoadStates,
                                     Loading(saved, envs));
    Reset({0, 1, 2}, std::nullopt);
  }
  // The observations of environments in this order.
  Results Observations(const std::vector<uint32_t>& order) {
    Results found;
    for (const uint32_t env : order) found.push_back(Obs(env));
    return found;
  }
  // Steps, and returns the results of environments in this order.
  std::vector<Results> Future(const std::vector<uint32_t>& order) {
    std::vector<Results> future;
    for (size_t step = 0; step < kFuture; ++step) {
      Step(step);
      Results& now = future.emplace_back(Observations(order));
      for (size_t i = 0; i < order.size(); ++i) {
        const uint32_t env = order[i];
        const auto add = [&](const auto& all, size_t size) {
          const auto row = std::as_bytes(all.subspan(env * size, size));
          now[i].insert(now[i].end(), row.begin(), row.end());
        };
        add(arrays().rewards, 1);
        add(arrays().terminateds, 1);
        add(arrays().truncateds, 1);
        add(arrays().infos, arrays().info_size);
      }
    }
    return future;
  }
};

class States : public StateRule {
 protected:
  States() : StateRule({Capability::kStates, Capability::kHostObservations}) {}
};

TEST_F(States, AStateContinuesHereAndInOtherRowsOfAnotherProcess) {
  const std::vector<uint32_t> others = {2, 0, 1};
  Begin();
  Steps(5);
  const Saved saved = Save();
  const Results now = Observations(kAll);
  const std::vector<Results> future = Future(kAll);
  Load(saved, kAll);
  EXPECT_EQ(Observations(kAll), now);
  EXPECT_EQ(Future(kAll), future);
  engine_.End();
  Begin();
  Load(saved, others);
  EXPECT_EQ(Observations(others), now);
  EXPECT_EQ(Future(others), future);
}

TEST_F(States, SomeContinueWhileOthersAreReset) {
  Begin();
  Reset({0, 2}, 7);
  const Results first = Observations({0, 2});
  Steps(5);
  const Saved saved = Save();
  const Results now = Observations({1});
  Steps(5);
  rpc::LoadStatesRequestT one = Loading(saved, {1});
  one.states.erase(one.states.begin());
  one.states.pop_back();
  Answer<rpc::LoadStatesResponseT>(rpc::MethodId::LoadStates, std::move(one));
  Reset({0, 1, 2}, 7);
  EXPECT_EQ(Observations({1}), now);
  EXPECT_EQ(Observations({0, 2}), first);
}

TEST_F(States, ACutStateIsRefusedAndTheEngineServesOn) {
  Begin();
  Steps(2);
  const Saved saved = Save();
  rpc::LoadStatesRequestT cut = Loading(saved, kAll);
  ASSERT_FALSE(cut.states[1]->data.empty());
  cut.states[1]->data.pop_back();
  const absl::Status taken =
      engine_.Call(rpc::MethodId::LoadStates, std::move(cut)).status();
  if (taken.ok()) {
    const std::vector<std::optional<uint64_t>> seeds(kEnvs);
    ASSERT_EQ(engine_.client->SendReset({{0, 1, 2}}, seeds), ErrorCode::kOk);
    EXPECT_EQ(engine_.client->Recv(Deadline::Infinite()),
              ErrorCode::kEngineFailed)
        << "a state without its last byte was put in place";
  } else {
    EXPECT_EQ(CodeOf(taken), ErrorCode::kInvalidArgument) << taken;
  }
  Load(saved, kAll);
  Steps(1);
}

class StatesAtEnds : public StateRule {
 protected:
  StatesAtEnds()
      : StateRule({Capability::kStates, Capability::kHostObservations,
                   Capability::kLimit}) {}
};

TEST_F(StatesAtEnds, AStateContinuesBeyondTheEndOfItsEpisode) {
  for (const AutoresetMode mode :
       {AutoresetMode::kSameStep, AutoresetMode::kNextStep}) {
    ServeEpisodes(3, mode);
    for (size_t steps = 0; steps < 3; ++steps) {
      Step(steps);
      const Saved saved = Save();
      const std::vector<Results> future = Future(kAll);
      Load(saved, kAll);
      EXPECT_EQ(Future(kAll), future) << steps << " steps";
      Load(saved, kAll);
    }
    engine_.End();
  }
}

class StatesWithContracts : public StateRule {
 protected:
  StatesWithContracts()
      : StateRule({Capability::kStates, Capability::kHostObservations,
                   Capability::kContracts}) {}
  void SetContract(bool any) {
    rpc::ResetAgentRequestT request;
    request.env_ids = kAll;
    request.at_next_reset = true;
    if (any) {
      request.seed = 7;
      request.simulation_contract =
          std::make_unique<rpc::SimulationContractT>();
      request.simulation_contract->friction_range = {0.5F, 1};
      request.simulation_contract->mass_scale_range = {0.5F, 2};
      request.simulation_contract->pose_position_noise = {0.1F, 0.1F, 0.1F};
    }
    Answer<rpc::ResetAgentResponseT>(rpc::MethodId::ResetAgent,
                                     std::move(request));
  }
};

TEST_F(StatesWithContracts, AStateKeepsItsContract) {
  Begin();
  const auto future = [&] {
    std::vector<Results> seen = Future(kAll);
    Reset({0, 1, 2}, std::nullopt);  // draws by the contract
    for (Results& results : Future(kAll)) seen.push_back(std::move(results));
    return seen;
  };
  for (const bool drawn : {true, false}) {  // by a reset, before the state
    SetContract(true);
    if (drawn) Reset({0, 1, 2}, 3);
    const Saved saved = Save();
    const std::vector<Results> expected = future();
    SetContract(false);
    Reset({0, 1, 2}, 4);
    Load(saved, kAll);
    EXPECT_EQ(future(), expected);
  }
}

}  // namespace
}  // namespace tandem
