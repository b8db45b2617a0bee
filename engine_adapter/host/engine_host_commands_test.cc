// RPCs to a hosted engine, beside the steps of the same client.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "base/error.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/engine_host.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/host/testing/calling_client.h"
#include "engine_adapter/host/testing/counting_engine.h"
#include "schema/layout/service.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/client_side.h"
#include "transport/memory/testing/unique_region_name.h"

namespace tandem {
namespace {

class EngineHostCommandsTest : public testing::Test {
 protected:
  void SetUp() override {
    alarm(60);
    auto host = EngineHost::Create(&engine_, {.name = name_});
    ASSERT_TRUE(host.ok()) << host.status();
    host_ = *std::move(host);
    host_->Start();
  }
  void TearDown() override { alarm(0); }

  const std::string name_ = UniqueRegionName("host_commands");
  CountingEngine engine_;
  std::unique_ptr<EngineHost> host_;
};

TEST_F(EngineHostCommandsTest, AnswersWithoutSteps) {
  CallingClient client(name_);
  for (uint64_t id = 1; id <= 100; ++id) {
    client.Call<rpc::GetJointStateRequestT>(rpc::MethodId::GetJointState, id);
    EXPECT_EQ(client.Await().correlation_id, id);
  }
}

TEST_F(EngineHostCommandsTest, AreAnsweredOnceAndInOrderBesideSteps) {
  CallingClient client(name_);
  rpc::GetJointStateRequestT stream;
  stream.target_fps = 60;
  client.Call(rpc::MethodId::StreamJointState, 1'000'000, stream);
  uint64_t asked = 0;
  uint64_t answered = 0;
  uint64_t items = 0;
  float steps_told = 0;
  const auto take = [&](const rpc::EnvelopeT& envelope) {
    EXPECT_EQ(envelope.error_message, "");
    if (envelope.correlation_id == 1'000'000) {
      EXPECT_EQ(envelope.stream_number, ++items);
      return;
    }
    EXPECT_EQ(envelope.correlation_id, ++answered);
    const float steps =
        envelope.payload.AsGetJointStateResponse()->state->positions[0];
    EXPECT_GE(steps, steps_told);
    steps_told = steps;
  };
  for (int step = 1; step <= 20'000; ++step) {
    ASSERT_EQ(client.Step(), static_cast<float>(step));
    if (step % 10 == 0) {
      client.Call<rpc::GetJointStateRequestT>(rpc::MethodId::GetJointState,
                                              ++asked);
    }
    while (std::optional<rpc::EnvelopeT> envelope = client.Take()) {
      take(*envelope);
    }
  }
  while (answered < asked || items < 3) {
    client.Step();  // makes a new item for the stream
    while (std::optional<rpc::EnvelopeT> envelope = client.Take()) {
      take(*envelope);
    }
  }
  EXPECT_EQ(answered, 2'000u);
}

TEST_F(EngineHostCommandsTest, StreamsSendEachStateOnce) {
  CallingClient client(name_);
  client.Call<rpc::GetJointStateRequestT>(rpc::MethodId::StreamJointState, 7);
  for (uint64_t item = 1; item <= 5; ++item) {
    EXPECT_EQ(client.Await().stream_number, item);
    client.Step();
  }
}

TEST_F(EngineHostCommandsTest, NoAnswerReachesAnotherClient) {
  for (int i = 0; i < 10; ++i) {
    {
      CallingClient client(name_);
      rpc::SetPausedRequestT pause;
      pause.paused = true;
      client.Call(rpc::MethodId::SetPaused, 1, pause);
      EXPECT_EQ(client.Await().correlation_id, 1u);
      rpc::SingleStepRequestT steps;
      steps.steps = 1'000'000'000;
      client.Call(rpc::MethodId::SingleStep, 1, steps);
    }
    CallingClient next(name_);
    next.Call<rpc::GetJointStateRequestT>(rpc::MethodId::GetJointState, 1);
    EXPECT_EQ(next.Await().method, rpc::MethodId::GetJointState);
  }
}

TEST_F(EngineHostCommandsTest, ChangesByRpcsEndWithTheClient) {
  for (int i = 0; i < 2; ++i) {
    CallingClient client(name_);
    rpc::SendControlRequestT request;
    request.bulk = {0.5F};
    client.Call(rpc::MethodId::SendControl, 1, request);
    EXPECT_EQ(client.Await().correlation_id, 1u);
  }
  { const CallingClient last(name_); }
  host_->Stop();
  EXPECT_EQ(engine_.cleared_, 2);
  EXPECT_EQ(engine_.resets_, 3);  // including the first reset of all
}

TEST_F(EngineHostCommandsTest, ServicesAreSwitchedWhileAClientCallsThem) {
  constexpr int kSwitches = 1000;
  const auto shown = [this] {
    // relaxed: a word for observers.
    return host_->mapping()->header()->services.load(std::memory_order_relaxed);
  };
  CallingClient client(name_);
  int refused = 0;
  uint64_t id = 0;
  for (int i = 0; i < kSwitches; ++i) {
    const bool on = i % 2 == 1;
    ASSERT_TRUE(host_->EnableService(Service::kMujoco, on).ok());
    bool is_on = !on;
    while (is_on != on) {
      client.Step();
      client.Call<rpc::GetJointStateRequestT>(rpc::MethodId::GetJointState,
                                              ++id);
      const rpc::EnvelopeT answer = client.Await();
      ASSERT_EQ(answer.correlation_id, id);
      is_on = answer.error_code == 0;
      if (is_on) continue;
      ++refused;
      EXPECT_EQ(answer.error_code,
                static_cast<uint16_t>(ErrorCode::kUnsupported));
      EXPECT_TRUE(absl::StrContains(answer.error_message, "service mujoco"))
          << answer.error_message;
    }
    EXPECT_EQ((shown() & BitOf(Service::kMujoco)) != 0, on);
  }
  EXPECT_GE(refused, kSwitches / 2);
}

TEST_F(EngineHostCommandsTest, ASwitchHoldsForTheNextClientAndEndsStreams) {
  {
    CallingClient client(name_);
    client.Call<rpc::GetJointStateRequestT>(rpc::MethodId::StreamJointState, 1);
    EXPECT_EQ(client.Await().stream_number, 1u);
    ASSERT_TRUE(host_->EnableService(Service::kMujoco, false).ok());
    const rpc::EnvelopeT last = client.Await();
    EXPECT_TRUE(last.end_of_stream);
    EXPECT_TRUE(absl::StrContains(last.error_message, "switched off"))
        << last.error_message;
  }
  CallingClient next(name_);
  next.Call<rpc::GetJointStateRequestT>(rpc::MethodId::GetJointState, 1);
  EXPECT_EQ(next.Await().error_code,
            static_cast<uint16_t>(ErrorCode::kUnsupported));
}

TEST_F(EngineHostCommandsTest, AServiceThatTheEngineLacksIsNotSwitched) {
  const absl::Status status = host_->EnableService(Service::kCamera, true);
  EXPECT_EQ(CodeOf(status), ErrorCode::kUnsupported);
  EXPECT_TRUE(absl::StrContains(status.message(), "service camera")) << status;
}

// Only the lock shows it: a killed client rings no doorbell.
TEST(EngineHostRealTime, AKilledClientIsNoticedBetweenStepsOfTheClock) {
  alarm(60);
  const std::string name = UniqueRegionName("host_real_time");
  const pid_t client = fork();
  if (client == 0) {
    absl::StatusOr<ClientSide> side =
        ClientSide::Attach(name, {.timeout_secs = 50});
    for (;;) pause();
  }
  CountingEngine engine;
  std::atomic<int> attached{0};
  std::atomic<int> left{0};
  auto host = EngineHost::Create(
      &engine, {.name = name,
                .mode = rpc::SimulationMode::REALTIME,
                .log = [&](absl::string_view line) {
                  attached += absl::StrContains(line, "attached");
                  left += absl::StrContains(line, "left");
                }});
  ASSERT_TRUE(host.ok()) << host.status();
  (*host)->Start();
  while (attached == 0) usleep(1000);
  ASSERT_EQ(kill(client, SIGKILL), 0);
  ASSERT_EQ(waitpid(client, nullptr, 0), client);
  while (left == 0) usleep(1000);  // alarm is the watchdog
  (*host)->Stop();
  alarm(0);
}

}  // namespace
}  // namespace tandem
