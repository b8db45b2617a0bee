// The functions of tandem.h for clients, and their RPCs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/engine_host.h"
#include "engine_adapter/host/testing/counting_engine.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "sdk/tandem.h"
#include "sdk/testing/api_fixture.h"
#include "sdk/testing/pair_engine.h"
#include "transport/envelope.h"

namespace tandem {
namespace {

TEST_F(ApiTest, StepsAndResets) {
  Start(Options());
  tandem_client* const client = Attach();
  const tandem_array obs = Array(client, "obs");
  EXPECT_EQ(obs.dtype, TANDEM_FLOAT32);
  EXPECT_EQ(obs.dimensions, 2u);
  EXPECT_EQ(obs.shape[0], 2u);
  EXPECT_EQ(obs.shape[1], 2u);
  EXPECT_EQ(obs.bytes, 16u);
  const auto* const seen = static_cast<const float*>(obs.data);
  const tandem_reset resets[] = {{.env = 1, .has_seed = 1, .seed = 42}};
  ASSERT_EQ(tandem_client_send_reset(client, resets, 1), TANDEM_OK);
  ASSERT_EQ(tandem_client_recv(client, 60), TANDEM_OK) << LastError();
  EXPECT_EQ(seen[3], 42);
  const float actions[] = {0.5, 100};
  ASSERT_EQ(tandem_client_step(client, actions, 2, 60), TANDEM_OK);
  EXPECT_EQ(seen[0], 1);
  EXPECT_EQ(seen[2], 0);  // ended, and was reset
  EXPECT_EQ(static_cast<float*>(Array(client, "final_obs").data)[2], 1);
  EXPECT_EQ(static_cast<float*>(Array(client, "rewards").data)[0], 0.5F);
  EXPECT_EQ(static_cast<uint8_t*>(Array(client, "terminateds").data)[1], 1);
  // NULL: the actions in the array.
  static_cast<float*>(Array(client, "actions").data)[0] = 3;
  ASSERT_EQ(tandem_client_send(client, nullptr, 0), TANDEM_OK);
  EXPECT_EQ(tandem_client_send(client, nullptr, 0), TANDEM_STEP_PENDING);
  ASSERT_EQ(tandem_client_recv(client, 60), TANDEM_OK);
  EXPECT_EQ(static_cast<float*>(Array(client, "rewards").data)[0], 3);
  const float nan[] = {NAN, 0};
  EXPECT_EQ(tandem_client_step(client, nan, 2, 60), TANDEM_INVALID_ACTION);
  EXPECT_EQ(tandem_client_step(client, nan, 1, 60), TANDEM_INVALID_ACTION);
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
  EXPECT_EQ(tandem_client_recv(client, 60), TANDEM_CLIENT_CLOSED);
  EXPECT_EQ(tandem_client_close(client), TANDEM_CLIENT_CLOSED);
}

TEST_F(ApiTest, AClientOfAnEndedEngineReconnectsToTheNext) {
  Start(Options());
  tandem_client* const client = Attach();
  const float actions[] = {1, 2};
  ASSERT_EQ(tandem_client_step(client, actions, 2, 60), TANDEM_OK);
  Stop();
  ASSERT_EQ(tandem_engine_destroy(engine_), TANDEM_OK);
  EXPECT_EQ(tandem_client_step(client, actions, 2, 60), TANDEM_PEER_GONE);
  Start(Options());
  ASSERT_EQ(tandem_client_reconnect(client, 60), TANDEM_OK) << LastError();
  EXPECT_EQ(tandem_client_step(client, actions, 2, 60), TANDEM_OK);
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
}

TEST_F(ApiTest, RefusesInvalidArgumentsOfAClient) {
  Start(Options());
  tandem_client* const client = Attach();
  EXPECT_EQ(tandem_client_recv(client, NAN), TANDEM_INVALID_ARGUMENT);
  const tandem_reset reset = {};
  EXPECT_EQ(tandem_client_send_reset(client, &reset, 3),
            TANDEM_INVALID_ARGUMENT);
  auto array = Sized<tandem_array>();
  EXPECT_EQ(tandem_engine_array(reinterpret_cast<tandem_engine*>(client), "obs",
                                &array),
            TANDEM_CLIENT_CLOSED);
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
}

TEST_F(ApiTest, TheDescriptionIsCutOffAtTheSizeOfTheText) {
  tandem_engine_options options = Options();
  options.description = R"({"max_episode_steps": 321})";
  Start(options);
  tandem_client* const client = Attach();
  const uint64_t bytes = tandem_client_description(client, nullptr, 0);
  std::string text(bytes, '\0');
  EXPECT_EQ(tandem_client_description(client, text.data(), bytes + 1), bytes);
  EXPECT_TRUE(absl::StrContains(text, R"("max_episode_steps":321)")) << text;
  char start[] = "xyz";
  EXPECT_EQ(tandem_client_description(client, start, 2), bytes);
  EXPECT_STREQ(start, "{");
  EXPECT_EQ(start[2], 'z');
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
  EXPECT_EQ(tandem_client_description(client, nullptr, 0), 0u);
}

// An engine with streams, in C++.
class RpcApiTest : public ApiTest {
 protected:
  void SetUp() override {
    ApiTest::SetUp();
    auto host = EngineHost::Create(&counting_, {.name = name_});
    ASSERT_TRUE(host.ok()) << host.status();
    host_ = *std::move(host);
    host_->Start();
    client_ = Attach();
    rpc_ = tandem_client_rpc(client_);
  }
  void TearDown() override {
    EXPECT_EQ(tandem_client_close(client_), TANDEM_OK);
    host_.reset();
    ApiTest::TearDown();
  }
  template <typename Request>
  static PackedCall Packed(rpc::MethodId method, Request request) {
    rpc::EnvelopeT call;
    call.method = method;
    call.payload.Set(std::move(request));
    return PackedCall(call);
  }
  tandem_code Call(const PackedCall& call) {
    uint8_t* answer = nullptr;
    uint64_t size = 0;
    const tandem_code code = tandem_rpc_call(
        rpc_, call.bytes().data(), call.bytes().size(), 60, &answer, &size);
    EXPECT_EQ(answer != nullptr, code == TANDEM_OK);
    tandem_free(answer);
    return code;
  }
  tandem_code Open(const PackedCall& call, uint64_t* stream) {
    return tandem_rpc_open(rpc_, call.bytes().data(), call.bytes().size(),
                           stream);
  }

  CountingEngine counting_;
  std::unique_ptr<EngineHost> host_;
  tandem_client* client_ = nullptr;
  tandem_rpc* rpc_ = nullptr;
};

TEST_F(RpcApiTest, AStreamHasItemsUntilItIsClosed) {
  rpc::GetJointStateRequestT request;
  request.target_fps = 1000;
  uint64_t stream = 0;
  ASSERT_EQ(Open(Packed(rpc::MethodId::StreamJointState, request), &stream),
            TANDEM_OK)
      << LastError();
  uint8_t* item = nullptr;
  uint64_t size = 0;
  const float action = 1;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(tandem_client_step(client_, &action, 1, 60), TANDEM_OK);
    ASSERT_EQ(tandem_rpc_next(rpc_, stream, 60, &item, &size), TANDEM_OK)
        << LastError();
    ASSERT_NE(item, nullptr);
    EXPECT_GT(size, 0u);
    EXPECT_NE(rpc::GetEnvelope(item)->payload_as_GetJointStateResponse(),
              nullptr);
    tandem_free(item);
  }
  for (int twice = 0; twice < 2; ++twice) {
    EXPECT_EQ(tandem_rpc_close(rpc_, stream), TANDEM_OK);
  }
  EXPECT_EQ(tandem_rpc_next(rpc_, stream, 60, &item, &size), TANDEM_OK);
  EXPECT_EQ(item, nullptr);
  EXPECT_EQ(size, 0u);
}

TEST_F(RpcApiTest, AStreamEndsWithTheEnginesError) {
  uint64_t stream = 0;
  ASSERT_EQ(
      Open(Packed(rpc::MethodId::StreamCamera, rpc::StreamCameraRequestT()),
           &stream),
      TANDEM_OK);
  uint8_t* item = nullptr;
  uint64_t size = 0;
  EXPECT_EQ(tandem_rpc_next(rpc_, stream, 60, &item, &size),
            TANDEM_UNSUPPORTED);
  EXPECT_EQ(item, nullptr);
  EXPECT_EQ(tandem_rpc_close(rpc_, stream), TANDEM_OK);
}

// Such a stream would never end, and such a call would leave one open.
TEST_F(RpcApiTest, OpensOnlyStreamsAndCallsNone) {
  uint64_t stream = 0;
  EXPECT_EQ(
      Open(Packed(rpc::MethodId::GetJointState, rpc::GetJointStateRequestT()),
           &stream),
      TANDEM_INVALID_ARGUMENT);
  EXPECT_TRUE(absl::StrContains(LastError(), "GetJointState")) << LastError();
  EXPECT_TRUE(absl::StrContains(LastError(), "tandem_rpc_call")) << LastError();
  EXPECT_EQ(Call(Packed(rpc::MethodId::StreamJointState,
                        rpc::GetJointStateRequestT())),
            TANDEM_INVALID_ARGUMENT);
  EXPECT_TRUE(absl::StrContains(LastError(), "tandem_rpc_open")) << LastError();
  EXPECT_EQ(
      Call(Packed(rpc::MethodId::GetJointState, rpc::GetJointStateRequestT())),
      TANDEM_OK)
      << LastError();
}

TEST_F(RpcApiTest, TooLargeRequestsAreNotSent) {
  const PackedCall call =
      Packed(rpc::MethodId::GetJointState, rpc::GetJointStateRequestT());
  uint8_t* answer = nullptr;
  uint64_t size = 0;
  for (const uint64_t wrong : {~uint64_t{0}, uint64_t{1} << 63}) {
    EXPECT_EQ(
        tandem_rpc_call(rpc_, call.bytes().data(), wrong, 60, &answer, &size),
        TANDEM_MESSAGE_TOO_LARGE);
  }
  EXPECT_EQ(Call(call), TANDEM_OK) << LastError();
}

TEST_F(ApiTest, FieldsHaveNamesTypesAndShapes) {
  PairEngine engine(/*num_envs=*/1);
  auto host = EngineHost::Create(&engine, {.name = name_});
  ASSERT_TRUE(host.ok()) << host.status();
  (*host)->Start();
  tandem_client* const client = Attach();
  EXPECT_EQ(Array(client, "obs").shape[1], 0u);
  const tandem_array pair = Array(client, "obs/pair");
  EXPECT_EQ(pair.dtype, TANDEM_INT16);
  EXPECT_EQ(pair.dimensions, 2u);
  EXPECT_EQ(pair.shape[0], 1u);
  EXPECT_EQ(pair.shape[1], 2u);
  EXPECT_EQ(pair.bytes, 4u);
  EXPECT_NE(Array(client, "final_obs/pair").data, pair.data);
  auto* const action = static_cast<int16_t*>(Array(client, "action/").data);
  action[1] = -7;
  ASSERT_EQ(tandem_client_step(client, nullptr, 0, 60), TANDEM_OK)
      << LastError();
  EXPECT_EQ(static_cast<int16_t*>(pair.data)[1], -7);
  EXPECT_EQ(*static_cast<double*>(Array(client, "reward64").data), 0.1);
  const float wrong = 1;
  EXPECT_EQ(tandem_client_step(client, &wrong, 1, 60), TANDEM_INVALID_ACTION);
  auto array = Sized<tandem_array>();
  EXPECT_EQ(tandem_client_array(client, "obs/deep", &array),
            TANDEM_UNSUPPORTED);
  EXPECT_TRUE(absl::StrContains(LastError(), "obs/deep")) << LastError();
  EXPECT_EQ(tandem_client_array(client, "status", &array),
            TANDEM_INVALID_ARGUMENT);
  EXPECT_TRUE(absl::StrContains(LastError(), "obs/pair")) << LastError();
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
}

}  // namespace
}  // namespace tandem
