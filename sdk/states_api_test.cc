// States of environments of an engine of tandem.h. The games of examples/ keep
// the suite's rules about them.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "sdk/tandem.h"
#include "sdk/testing/api_fixture.h"

namespace tandem {
namespace {

using Saved = rpc::SaveStatesResponseT;

// A state of the fixture's Counter is its count.
class StatesApiTest : public ApiTest {
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
  }
  void SetUp() override {
    ApiTest::SetUp();
    tandem_engine_options options = Options();
    options.services = &services_;
    Start(options);
    client_ = Attach();
  }
  void TearDown() override {
    EXPECT_EQ(tandem_client_close(client_), TANDEM_OK);
    ApiTest::TearDown();
  }

  Saved Save() {
    rpc::SaveStatesRequestT request;
    request.env_ids = {0, 1};
    Answer answer = Call(client_, rpc::MethodId::SaveStates, request);
    EXPECT_EQ(answer.code, TANDEM_OK) << answer.error;
    return std::move(*answer.envelope.payload.AsSaveStatesResponse());
  }
  tandem_code Load(const Saved& saved) {
    rpc::LoadStatesRequestT request;
    request.fingerprint = saved.fingerprint;
    request.env_ids = {0, 1};
    for (const auto& state : saved.states) {
      request.states.push_back(std::make_unique<rpc::EnvStateT>(*state));
    }
    return Call(client_, rpc::MethodId::LoadStates, std::move(request)).code;
  }

  static constexpr const char* kField = "friction_range";
  tandem_services services_ = Sized<tandem_services>();
  tandem_client* client_ = nullptr;
};

TEST_F(StatesApiTest, AStateThatTheProgramRefusesFailsTheReset) {
  const float actions[] = {1, 1};
  ASSERT_EQ(tandem_client_step(client_, actions, 2, 60), TANDEM_OK);
  Saved saved = Save();
  saved.states[0]->data.pop_back();
  EXPECT_EQ(Load(saved), TANDEM_OK);
  const tandem_reset both[] = {{0, 0, 0}, {1, 0, 0}};
  ASSERT_EQ(tandem_client_send_reset(client_, both, 2), TANDEM_OK);
  EXPECT_EQ(tandem_client_recv(client_, 60), TANDEM_ENGINE_FAILED);
  EXPECT_TRUE(absl::StrContains(LastError(), "no count")) << LastError();
  // The next reset draws, in the other environment, too.
  ASSERT_EQ(tandem_client_send_reset(client_, both, 2), TANDEM_OK);
  ASSERT_EQ(tandem_client_recv(client_, 60), TANDEM_OK);
  const auto* const obs = static_cast<const float*>(Array(client_, "obs").data);
  EXPECT_EQ(obs[0], 0);
  EXPECT_EQ(obs[2], 0);
}

TEST_F(StatesApiTest, DamagedContractsAreRefused) {
  rpc::ResetAgentRequestT request;
  request.env_ids = {0};
  request.at_next_reset = true;
  request.simulation_contract = std::make_unique<rpc::SimulationContractT>();
  request.simulation_contract->friction_range = {0.5F, 1};
  ASSERT_EQ(Call(client_, rpc::MethodId::ResetAgent, std::move(request)).code,
            TANDEM_OK);
  const Saved saved = Save();
  std::vector<uint8_t>& data = saved.states[0]->data;
  const std::vector<uint8_t> whole = data;
  size_t refused = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    data = whole;
    data[at] ^= 0xff;
    const tandem_code code = Load(saved);
    EXPECT_TRUE(code == TANDEM_OK || code == TANDEM_INVALID_ARGUMENT) << code;
    data.assign(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(at));
    if (Load(saved) == TANDEM_INVALID_ARGUMENT) ++refused;
  }
  EXPECT_EQ(refused, whole.size() - sizeof(float));  // but the program's bytes
}

}  // namespace
}  // namespace tandem
