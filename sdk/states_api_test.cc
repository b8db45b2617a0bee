// States of environments of an engine of tandem.h, which is called (false) or
// takes its work (true).
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "sdk/tandem.h"
#include "sdk/testing/api_fixture.h"

namespace tandem {
namespace {

using Saved = rpc::SaveStatesResponseT;
using Envs = std::vector<uint32_t>;
using Floats = std::vector<float>;

class StatesApiTest : public ApiTest, public testing::WithParamInterface<bool> {
 protected:
  StatesApiTest() {
    services_.user = this;
    services_.save_state = [](void* user, uint32_t env, const uint8_t** state,
                              uint64_t* bytes) {
      auto* const self = static_cast<StatesApiTest*>(user);
      *state = reinterpret_cast<const uint8_t*>(&self->counter_.steps[env]);
      *bytes = sizeof(float);
      return 0;
    };
    services_.load_state = [](void* user, uint32_t env, const uint8_t* state,
                              uint64_t bytes) {
      auto* const self = static_cast<StatesApiTest*>(user);
      if (bytes != sizeof(float)) {
        tandem_engine_fail(self->engine_, "no count");
        return 1;
      }
      std::memcpy(&self->counter_.steps[env], state, bytes);
      return 0;
    };
    services_.contract_fields = &kField;
    services_.contract_field_count = 1;
    counter_.before = [this](const tandem_work& work) {
      if (work.kind != TANDEM_WORK_RESET) return 0;
      const tandem_contract* const its =
          work.contracts == nullptr ? nullptr : work.contracts[work.count - 1];
      seen_.push_back({.envs = work.count,
                       .has_contract = its != nullptr,
                       .seed = its == nullptr ? 0 : its->seed,
                       .begins = its != nullptr && its->begins != 0});
      return 0;
    };
  }
  void TearDown() override {
    End();
    EXPECT_EQ(tandem_client_close(client_), TANDEM_OK);
    ApiTest::TearDown();
  }

  void Serve() {
    tandem_engine_options options = Options();
    options.services = &services_;
    if (!GetParam()) return Start(options);
    ASSERT_EQ(tandem_engine_create(&options, nullptr, &engine_), TANDEM_OK)
        << LastError();
    loop_ = std::thread([this] {
      auto work = Sized<tandem_work>();
      while (!over_) {
        ASSERT_EQ(tandem_engine_next(engine_, 0.01, &work), TANDEM_OK);
        counter_.Do(work);
        if (work.kind == TANDEM_WORK_RESET || work.kind == TANDEM_WORK_STEP) {
          ASSERT_EQ(tandem_engine_done(engine_, nullptr), TANDEM_OK);
        }
      }
    });
  }
  // Ends the engine's thread; then seen_ may be read.
  void End() {
    over_ = true;
    if (loop_.joinable()) loop_.join();
    Stop();
  }
  // Steps, and returns the observations.
  Floats Step() {
    const float actions[] = {1, 1};
    EXPECT_EQ(tandem_client_step(client_, actions, 2, 60), TANDEM_OK)
        << LastError();
    return Obs();
  }
  tandem_code Reset() {
    const tandem_reset both[] = {{0, 0, 0}, {1, 0, 0}};
    EXPECT_EQ(tandem_client_send_reset(client_, both, 2), TANDEM_OK);
    return tandem_client_recv(client_, 60);
  }
  Floats Obs() {
    const auto* const obs =
        static_cast<const float*>(Array(client_, "obs").data);
    return {obs[0], obs[2]};
  }
  Saved Save() {
    rpc::SaveStatesRequestT request;
    request.env_ids = {0, 1};
    Answer answer = Call(client_, rpc::MethodId::SaveStates, request);
    EXPECT_EQ(answer.code, TANDEM_OK) << answer.error;
    return std::move(*answer.envelope.payload.AsSaveStatesResponse());
  }
  tandem_code Load(const Saved& saved, const Envs& envs) {
    rpc::LoadStatesRequestT request;
    request.fingerprint = saved.fingerprint;
    request.env_ids = envs;
    for (const uint32_t env : envs) {
      request.states.push_back(
          std::make_unique<rpc::EnvStateT>(*saved.states[env]));
    }
    return Call(client_, rpc::MethodId::LoadStates, std::move(request)).code;
  }
  void SetContract(bool any) {
    rpc::ResetAgentRequestT request;
    request.env_ids = {0, 1};
    request.at_next_reset = true;
    request.seed = 7;
    if (any) {
      request.simulation_contract =
          std::make_unique<rpc::SimulationContractT>();
      request.simulation_contract->friction_range = {0.5F, 1};
    }
    EXPECT_EQ(Call(client_, rpc::MethodId::ResetAgent, std::move(request)).code,
              TANDEM_OK);
  }

  // A RESET: the number of its environments, and the contract of the last one.
  struct Seen {
    uint32_t envs;
    bool has_contract;
    uint64_t seed;
    bool begins;
    bool operator==(const Seen&) const = default;
  };
  // The last ones.
  std::vector<Seen> LastResets(size_t count) {
    End();
    return {seen_.end() - static_cast<ptrdiff_t>(count), seen_.end()};
  }

  static constexpr const char* kField = "friction_range";
  tandem_services services_ = Sized<tandem_services>();
  std::vector<Seen> seen_;  // of the engine's thread
  tandem_client* client_ = nullptr;
  std::atomic<bool> over_{false};
  std::thread loop_;
};

INSTANTIATE_TEST_SUITE_P(Ways, StatesApiTest, testing::Bool());

TEST_P(StatesApiTest, AResetLeavesOutTheEnvironmentsThatContinue) {
  Serve();
  client_ = Attach();
  Step();
  EXPECT_EQ(Step(), (Floats{2, 2}));
  const Saved saved = Save();
  Step();
  EXPECT_EQ(Load(saved, {1}), TANDEM_OK);
  EXPECT_EQ(Reset(), TANDEM_OK);
  EXPECT_EQ(Obs(), (Floats{0, 2}));
  EXPECT_EQ(Step(), (Floats{1, 3}));
  EXPECT_EQ(Load(saved, {0, 1}), TANDEM_OK);
  EXPECT_EQ(Reset(), TANDEM_OK);
  EXPECT_EQ(Obs(), (Floats{2, 2}));
  EXPECT_EQ(Step(), (Floats{3, 3}));
  EXPECT_EQ(LastResets(1)[0].envs, 1u);  // none for both
}

TEST_P(StatesApiTest, AStateThatTheProgramRefusesFailsTheReset) {
  Serve();
  client_ = Attach();
  Step();
  Saved saved = Save();
  saved.states[0]->data.pop_back();
  EXPECT_EQ(Load(saved, {0, 1}), TANDEM_OK);
  EXPECT_EQ(Reset(), TANDEM_ENGINE_FAILED);
  EXPECT_TRUE(absl::StrContains(LastError(), "no count")) << LastError();
  EXPECT_EQ(Reset(), TANDEM_OK);  // without the other state
  EXPECT_EQ(Obs(), (Floats{0, 0}));
  EXPECT_EQ(Step(), (Floats{1, 1}));
}

TEST_P(StatesApiTest, AStateHasTheContractOfItsEnvironment) {
  Serve();
  client_ = Attach();
  SetContract(true);
  const Saved not_begun = Save();
  EXPECT_EQ(Reset(), TANDEM_OK);
  const Saved begun = Save();
  for (const Saved* const saved : {&not_begun, &begun}) {
    SetContract(false);
    EXPECT_EQ(Reset(), TANDEM_OK);
    EXPECT_EQ(Load(*saved, {0, 1}), TANDEM_OK);
    EXPECT_EQ(Reset(), TANDEM_OK);  // puts the states in place
    EXPECT_EQ(Reset(), TANDEM_OK);
  }
  const Seen none = {2, false, 0, false};
  const std::vector<Seen> expected = {
      none, {2, true, 8, true}, none, {2, true, 8, false}};
  EXPECT_EQ(LastResets(4), expected);
}

TEST_P(StatesApiTest, DamagedContractsAreRefused) {
  Serve();
  client_ = Attach();
  SetContract(true);
  EXPECT_EQ(Reset(), TANDEM_OK);
  const Saved good = Save();
  std::vector<uint8_t>& data = good.states[0]->data;
  const std::vector<uint8_t> whole = data;
  size_t refused = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    data = whole;
    data[at] ^= 0xff;
    const tandem_code code = Load(good, {0});
    EXPECT_TRUE(code == TANDEM_OK || code == TANDEM_INVALID_ARGUMENT) << code;
    data.assign(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(at));
    if (Load(good, {0}) == TANDEM_INVALID_ARGUMENT) ++refused;
  }
  EXPECT_EQ(refused, whole.size() - sizeof(float));  // but the program's bytes
}

TEST_F(ApiTest, AnEngineWithoutStatesSaysSo) {
  Start(Options());
  tandem_client* const client = Attach();
  const Answer answer =
      Call(client, rpc::MethodId::SaveStates, rpc::SaveStatesRequestT());
  EXPECT_EQ(answer.code, TANDEM_UNSUPPORTED);
  EXPECT_TRUE(absl::StrContains(answer.error, "SaveStates")) << answer.error;
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
}

}  // namespace
}  // namespace tandem
