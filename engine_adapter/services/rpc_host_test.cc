#include "engine_adapter/services/rpc_host.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "base/error.h"
#include "engine_adapter/classic_control/classic_control_tasks.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/mujoco/model/mujoco_log.h"
#include "engine_adapter/mujoco/mujoco_tasks.h"
#include "engine_adapter/rpc_config.h"
#include "engine_adapter/testing/stepped_engine.h"
#include "schema/layout/service.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/ring/testing/ring_test_region.h"
#include "transport/rpc/envelope_reader.h"
#include "transport/rpc/envelope_writer.h"

namespace tandem {
namespace {

using Id = rpc::MethodId;

constexpr int64_t kMs = 1'000'000;

class RpcHostTest : public testing::Test {
 protected:
  RpcHostTest() {
    InstallMujocoLog([](absl::string_view) {});
  }
  ~RpcHostTest() override { InstallMujocoLog(nullptr); }

  void Start(std::unique_ptr<Engine> engine, const RpcConfig& config) {
    Engine* const raw = engine.get();
    stepped_.emplace(std::move(engine));
    scene_.emplace(raw->scene(), raw->schema().num_envs, /*has_rewards=*/true,
                   LiveScene::Links());
    host_.emplace(config, raw, &*stepped_,
                  RpcHost::Links{.wake = [] {},
                                 .client_text = [this] { return client_; },
                                 .switched = [this] { ++switched_; },
                                 .live_scene = &*scene_});
    host_->Start(kClientCaller, EnvelopeReader(to_engine_.Reader(), {}),
                 EnvelopeWriter(to_client_.Writer()));
  }
  void StartMujoco(const RpcConfig& config) {
    Start(MakeMujocoEngine("HalfCheetah-v5", {}).value(), config);
  }
  std::vector<std::unique_ptr<rpc::ServiceInfoT>> Services() {
    absl::StatusOr<rpc::GetServicesResponseT> response = host_->GetServices({});
    return std::move(response->services);
  }
  // Returns how often GetServices' answer contains each method.
  std::map<Id, int> Methods() {
    std::map<Id, int> methods;
    for (const auto& service : Services()) {
      for (const Id method : service->methods) ++methods[method];
    }
    return methods;
  }
  template <typename Request>
  void Call(Id method, uint64_t id, Request request, int64_t now_ns) {
    rpc::EnvelopeT call;
    call.method = method;
    call.correlation_id = id;
    call.payload.Set(std::move(request));
    ASSERT_EQ(calls_.Post(call), ErrorCode::kOk);
    (void)host_->Poll(now_ns);
  }
  rpc::EnvelopeT Answer() {
    rpc::EnvelopeT answer;
    const EnvelopeReader::Got got = answers_.Next();
    EXPECT_EQ(got, EnvelopeReader::Got::kEnvelope);
    if (got == EnvelopeReader::Got::kEnvelope) {
      answers_.envelope().UnPackTo(&answer);
    }
    return answer;
  }

  TestRegion to_engine_{1 << 16};
  TestRegion to_client_{1 << 16};
  EnvelopeWriter calls_{to_engine_.Writer()};
  EnvelopeReader answers_{to_client_.Reader(), {}};
  std::string client_;
  int switched_ = 0;
  std::optional<SteppedEngine> stepped_;
  std::optional<LiveScene> scene_;
  std::optional<RpcHost> host_;
};

TEST_F(RpcHostTest, EveryMethodOfTheSchemaIsAServices) {
  StartMujoco({});
  const std::map<Id, int> methods = Methods();
  for (const Id method : rpc::EnumValuesMethodId()) {
    const bool is_doors = method == Id::NONE || method == Id::CancelStream ||
                          method == Id::GetServices || method == Id::SetService;
    // CallOwn: this engine has no methods of its own.
    EXPECT_EQ(methods.contains(method) ? methods.at(method) : 0,
              is_doors || method == Id::CallOwn ? 0 : 1)
        << rpc::EnumNameMethodId(method);
  }
  EXPECT_EQ(host_->enabled_services(),
            ((1U << kServices) - 1) & ~BitOf(Service::kOwn));
}

TEST_F(RpcHostTest, NoMethodIsServedOfServicesThatAreSwitchedOff) {
  RpcConfig config;
  ASSERT_TRUE(ParseServices("none", &config).ok());
  StartMujoco(config);
  EXPECT_TRUE(Methods().empty());
  EXPECT_EQ(host_->enabled_services(), 0U);
  uint64_t id = 0;
  for (const Id method : rpc::EnumValuesMethodId()) {
    if (method == Id::NONE || method == Id::CancelStream ||
        method == Id::SetService || method == Id::CallOwn) {
      continue;
    }
    Call(method, ++id, rpc::GetServicesRequestT(), 0);
    const rpc::EnvelopeT answer = Answer();
    EXPECT_EQ(answer.correlation_id, id);
    if (method == Id::GetServices) {
      EXPECT_EQ(answer.payload.AsGetServicesResponse()->services.size(),
                kServices);
      continue;
    }
    EXPECT_EQ(answer.error_code,
              static_cast<uint16_t>(ErrorCode::kUnsupported));
    EXPECT_TRUE(absl::StrContains(answer.error_message, "switched off"))
        << answer.error_message;
    // The engine may have no command line.
    EXPECT_FALSE(absl::StrContains(answer.error_message, "--"))
        << answer.error_message;
  }
}

TEST_F(RpcHostTest, SwitchesAServiceWhileItRuns) {
  StartMujoco({});
  const uint32_t all = host_->enabled_services();
  EXPECT_TRUE(host_->Enable(Service::kMujoco, false).ok());
  EXPECT_EQ(host_->enabled_services(), all & ~BitOf(Service::kMujoco));
  Call(Id::GetJointState, 1, rpc::GetJointStateRequestT(), 0);
  rpc::EnvelopeT answer = Answer();
  EXPECT_EQ(answer.error_code, static_cast<uint16_t>(ErrorCode::kUnsupported));
  EXPECT_TRUE(absl::StrContains(answer.error_message, "service mujoco"))
      << answer.error_message;
  Call(Id::GetSceneInfo, 2, rpc::GetSceneInfoRequestT(), 0);
  EXPECT_EQ(Answer().error_code, 0);
  EXPECT_TRUE(host_->Enable(Service::kMujoco, true).ok());
  EXPECT_EQ(switched_, 2);
  EXPECT_EQ(host_->enabled_services(), all);
  Call(Id::GetJointState, 3, rpc::GetJointStateRequestT(), 0);
  EXPECT_EQ(Answer().error_code, 0);
}

TEST_F(RpcHostTest, ServicesAreSwitchedOneByOne) {
  RpcConfig config;
  ASSERT_TRUE(ParseServices("agent,scene", &config).ok());
  StartMujoco(config);
  EXPECT_EQ(host_->enabled_services(),
            BitOf(Service::kAgent) | BitOf(Service::kScene));
  const auto services = Services();
  ASSERT_EQ(services.size(), kServices);
  for (const auto& service : services) {
    EXPECT_EQ(service->enabled,
              service->name == "agent" || service->name == "scene");
  }
}

TEST_F(RpcHostTest, ServicesWithoutPortAreNotServed) {
  Start(MakeClassicControlEngine("CartPole-v1", {}).value(), {});
  const std::map<Id, int> methods = Methods();
  EXPECT_TRUE(methods.contains(Id::ResetAgent));
  EXPECT_TRUE(methods.contains(Id::SetPaused));
  EXPECT_FALSE(methods.contains(Id::ListEntities));
  EXPECT_FALSE(methods.contains(Id::GetJointState));
  EXPECT_EQ(host_->enabled_services(),
            BitOf(Service::kAgent) | BitOf(Service::kScene));
}

TEST_F(RpcHostTest, AServicesStreamsAreWithinItsRate) {
  RpcConfig config;
  ASSERT_TRUE(ParseStreamRates("telemetry=4.5,mujoco=100", &config).ok());
  StartMujoco(config);
  for (const auto& service : Services()) {
    if (service->name == "telemetry") {
      EXPECT_EQ(service->max_fps, 5U);
      EXPECT_EQ(service->max_hz, 4.5);
    }
    if (service->name == "mujoco") {
      EXPECT_EQ(service->max_fps, 100U);
      EXPECT_EQ(service->max_hz, 100);
    }
    if (service->name == "agent") {
      EXPECT_EQ(service->max_fps, 0U);
      EXPECT_EQ(service->max_hz, 0);
    }
    // Only services with streams may have a rate.
    RpcConfig given;
    EXPECT_EQ(ParseStreamRates(service->name + "=5", &given).ok(),
              service->max_fps > 0)
        << service->name;
  }
  rpc::StreamTelemetryRequestT telemetry;
  telemetry.target_fps = 50;
  Call(Id::StreamTelemetry, 1, telemetry, 5000 * kMs);
  EXPECT_EQ(Answer().stream_number, 1U);
  EXPECT_NEAR(static_cast<double>(*host_->DueNs(0)), 5222e6, 1e6);
  Call(Id::StreamJointState, 2, rpc::GetJointStateRequestT(), 5000 * kMs);
  EXPECT_EQ(Answer().correlation_id, 2U);
  EXPECT_EQ(host_->DueNs(0), 5010 * kMs);
}

TEST_F(RpcHostTest, AReaderThatWasLateGetsTheNewestMoment) {
  StartMujoco({});
  int64_t now_ns = 1000 * kMs;
  Call(Id::StreamTelemetry, 1, rpc::StreamTelemetryRequestT(), now_ns);
  for (int step = 0; step < 1000; ++step) {
    stepped_->Exchange();
    now_ns += 20 * kMs;
    (void)host_->Poll(now_ns);
  }
  // No step is made any more.
  uint64_t received = 0;
  rpc::EnvelopeT last;
  for (int quiet = 0; quiet < 2;) {
    quiet = answers_.Next() == EnvelopeReader::Got::kEnvelope ? 0 : quiet + 1;
    if (quiet == 0) {
      ++received;
      last = rpc::EnvelopeT();
      answers_.envelope().UnPackTo(&last);
    }
    now_ns += 20 * kMs;
    (void)host_->Poll(now_ns);
  }
  ASSERT_NE(last.payload.AsTelemetryFrame(), nullptr);
  EXPECT_EQ(last.payload.AsTelemetryFrame()->frame_seq, stepped_->frame_seq());
  EXPECT_GT(last.dropped, 0U);
  EXPECT_EQ(last.stream_number, received + last.dropped);
}

TEST_F(RpcHostTest, SetServiceSwitchesByName) {
  Start(MakeClassicControlEngine("CartPole-v1", {}).value(), {});
  rpc::SetServiceRequestT request;
  request.name = "agent";
  Call(Id::SetService, 1, request, 0);
  EXPECT_EQ(Answer().error_message, "");
  EXPECT_EQ(host_->enabled_services(), BitOf(Service::kScene));
  request.enabled = true;
  Call(Id::SetService, 2, request, 0);
  EXPECT_EQ(Answer().error_message, "");
  EXPECT_EQ(host_->enabled_services(),
            BitOf(Service::kScene) | BitOf(Service::kAgent));
  request.name = "mujoco";
  Call(Id::SetService, 3, request, 0);
  EXPECT_TRUE(absl::StrContains(Answer().error_message, "which cannot"));
  request.enabled = false;
  Call(Id::SetService, 4, request, 0);
  EXPECT_EQ(Answer().error_message, "");
  request.name = "cameras";
  Call(Id::SetService, 5, request, 0);
  EXPECT_TRUE(absl::StrContains(Answer().error_message, "found 'cameras'"));
}

TEST_F(RpcHostTest, AnAttendantMayResetOnlyWithoutAClient) {
  StartMujoco({});
  constexpr size_t kAttendant = kClientCaller + 2;
  host_->Stop(kClientCaller);
  host_->Start(kAttendant, EnvelopeReader(to_engine_.Reader(), {}),
               EnvelopeWriter(to_client_.Writer()));
  client_ = "the client of pid 12";
  Call(Id::ResetAgent, 1, rpc::ResetAgentRequestT(), 0);
  const rpc::EnvelopeT refused = Answer();
  EXPECT_EQ(refused.error_code,
            static_cast<uint16_t>(ErrorCode::kAlreadyAttached));
  EXPECT_TRUE(absl::StrContains(refused.error_message, "pid 12"));
  Call(Id::GetAgentSchema, 2, rpc::GetAgentSchemaRequestT(), 0);
  EXPECT_EQ(Answer().error_message, "");
  Call(Id::SetQpos, 5, rpc::SetQposRequestT(), 0);
  EXPECT_EQ(Answer().error_code,
            static_cast<uint16_t>(ErrorCode::kAlreadyAttached));
  Call(Id::SaveStates, 6, rpc::SaveStatesRequestT(), 0);
  EXPECT_EQ(Answer().error_message, "");
  client_ = "";
  Call(Id::LoadStates, 7, rpc::LoadStatesRequestT(), 0);
  EXPECT_EQ(Answer().error_code,
            static_cast<uint16_t>(ErrorCode::kUnsupported));
  Call(Id::ResetAgent, 3, rpc::ResetAgentRequestT(), 0);
  EXPECT_EQ(Answer().error_message, "");
  rpc::SetPausedRequestT pause;
  pause.paused = true;
  Call(Id::SetPaused, 4, pause, 0);
  EXPECT_TRUE(stepped_->paused());
  host_->Stop(kClientCaller);
  EXPECT_TRUE(stepped_->paused());
  host_->Stop(kAttendant);
  EXPECT_FALSE(stepped_->paused());
}

TEST_F(RpcHostTest, DropsClientThatLeft) {
  StartMujoco({});
  rpc::SendControlRequestT request;
  request.bulk = {0.5F};
  request.wait_for_next_step = true;
  Call(Id::SendControl, 1, std::move(request), 0);
  EXPECT_TRUE(host_->IsRunning(kClientCaller));
  EXPECT_FALSE(host_->IsQuiet());
  host_->Stop(kClientCaller);
  EXPECT_FALSE(host_->IsRunning(kClientCaller));
  EXPECT_TRUE(host_->IsQuiet());
  stepped_->Exchange();
  (void)host_->Poll(0);
  EXPECT_EQ(answers_.Next(), EnvelopeReader::Got::kNothing);
}

}  // namespace
}  // namespace tandem
