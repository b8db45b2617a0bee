// Every method of the seven services, called through RpcHost.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "base/error.h"
#include "engine_adapter/conformance/reference/counter_engine.h"
#include "engine_adapter/rpc_config.h"
#include "engine_adapter/services/rpc_host.h"
#include "engine_adapter/testing/stepped_engine.h"
#include "schema/layout/service.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/ring/testing/ring_test_region.h"
#include "transport/rpc/envelope_reader.h"
#include "transport/rpc/envelope_writer.h"

namespace tandem {
namespace {

using Id = rpc::MethodId;
using Floats = std::vector<float>;
using Texts = std::vector<std::string>;

constexpr uint32_t kEnvs = 2;

class CounterPortsTest : public testing::Test {
 protected:
  CounterPortsTest() {
    auto engine = std::make_unique<CounterEngine>(
        CounterEngine::Options{.num_envs = kEnvs, .act_size = 2});
    engine_ = engine.get();
    stepped_.emplace(std::move(engine));
    host_.emplace(RpcConfig(), engine_, &*stepped_,
                  RpcHost::Links{.wake = [] {}});
    host_->Start(kClientCaller, EnvelopeReader(to_engine_.Reader(), {}),
                 EnvelopeWriter(to_client_.Writer()));
  }
  void SetUp() override { alarm(60); }
  void TearDown() override { alarm(0); }

  // Returns the next answer, or the next item of a stream.
  rpc::EnvelopeT Next() {
    for (;;) {
      now_ns_ += 1'000'000;
      (void)host_->Poll(now_ns_);
      stepped_->Idle();
      if (answers_.Next() != EnvelopeReader::Got::kEnvelope) continue;
      rpc::EnvelopeT answer;
      answers_.envelope().UnPackTo(&answer);
      return answer;
    }
  }
  template <typename Request>
  rpc::EnvelopeT Call(Id method, Request request) {
    rpc::EnvelopeT call;
    call.method = method;
    call.correlation_id = ++last_id_;
    call.payload.Set(std::move(request));
    EXPECT_EQ(calls_.Post(call), ErrorCode::kOk);
    return Next();
  }
  template <typename Request>
  void ExpectRefused(Id method, const Request& request, ErrorCode code,
                     absl::string_view text) {
    const rpc::EnvelopeT answer = Call(method, request);
    EXPECT_EQ(answer.error_code, static_cast<uint16_t>(code));
    EXPECT_TRUE(absl::StrContains(answer.error_message, text))
        << answer.error_message;
  }

  // Returns the counter's place.
  rpc::Vec3 Place(uint32_t env) {
    rpc::GetEntityRequestT request;
    request.name = "counter";
    request.env_id = env;
    const rpc::EnvelopeT answer = Call(Id::GetEntity, request);
    return *answer.payload.AsGetEntityResponse()->entity->transform->position;
  }
  // Returns an image with a pixel for each metre.
  rpc::ImageFrameT Frame(uint32_t env) {
    rpc::GetCameraFrameRequestT request;
    request.name = "camera";
    request.width = 100;
    request.height = 75;
    request.env_id = env;
    const rpc::EnvelopeT answer = Call(Id::GetCameraFrame, request);
    return *answer.payload.AsNamedImageFrame()->frame;
  }

  TestRegion to_engine_{1 << 16};
  TestRegion to_client_{1 << 16};
  EnvelopeWriter calls_{to_engine_.Writer()};
  EnvelopeReader answers_{to_client_.Reader(), {}};
  uint64_t last_id_ = 0;
  int64_t now_ns_ = 0;
  CounterEngine* engine_ = nullptr;
  std::optional<SteppedEngine> stepped_;  // owns the engine
  std::optional<RpcHost> host_;
};

rpc::SetEntityTransformRequestT Move(uint64_t id, float x, float y) {
  rpc::SetEntityTransformRequestT request;
  request.id = id;
  request.env_id = 1;
  request.transform = std::make_unique<rpc::TransformT>();
  request.transform->position = std::make_unique<rpc::Vec3>(x, y, 0.F);
  return request;
}

rpc::SendControlRequestT Control(uint32_t actuator, float value) {
  rpc::SendControlRequestT request;
  request.env_ids = {1};
  request.indexed.push_back(std::make_unique<rpc::IndexedControlEntryT>());
  request.indexed.back()->actuator_index = actuator;
  request.indexed.back()->value = value;
  return request;
}

rpc::ResetAgentRequestT WithNoise(const Floats& noise) {
  rpc::ResetAgentRequestT request;
  request.env_ids = {0, 1};
  request.seed = 7;
  request.simulation_contract = std::make_unique<rpc::SimulationContractT>();
  request.simulation_contract->pose_position_noise = noise;
  return request;
}

rpc::DebugDrawRequestT Arrow(float length) {
  rpc::DebugDrawRequestT request;
  request.env_id = 1;
  request.arrows.push_back(std::make_unique<rpc::DebugArrowT>());
  request.arrows.back()->origin = std::make_unique<rpc::Vec3>(50.F, 40.F, 0.F);
  request.arrows.back()->direction =
      std::make_unique<rpc::Vec3>(length, 0.F, 0.F);
  return request;
}

// Returns the number of coloured pixels in the lowest row.
size_t BarPixels(const rpc::ImageFrameT& frame) {
  size_t coloured = 0;
  for (size_t x = 0; x < frame.width; ++x) {
    const size_t row = size_t{frame.height} - 1;
    if (frame.data.at(3 * (row * frame.width + x)) != 255) ++coloured;
  }
  return coloured;
}

TEST_F(CounterPortsTest, ServesEveryService) {
  EXPECT_EQ(host_->enabled_services(), (1U << kServices) - 1);
}

TEST_F(CounterPortsTest, SceneListsItsEntities) {
  const rpc::EnvelopeT about =
      Call(Id::GetSceneInfo, rpc::GetSceneInfoRequestT());
  EXPECT_EQ(about.payload.AsGetSceneInfoResponse()->scene_name, "counters");
  EXPECT_EQ(about.payload.AsGetSceneInfoResponse()->entity_count, 3U);
  for (int step = 0; step < 3; ++step) stepped_->Exchange();
  rpc::ListEntitiesRequestT request;
  request.include_transforms = true;
  request.include_components = true;
  const rpc::EnvelopeT listed = Call(Id::ListEntities, request);
  const auto& entities = listed.payload.AsListEntitiesResponse()->entities;
  ASSERT_EQ(entities.size(), 3U);
  EXPECT_EQ(entities[0]->name, "world");
  EXPECT_EQ(entities[0]->transform->position->x(), 0);
  EXPECT_EQ(entities[1]->name, "counter");
  EXPECT_EQ(entities[1]->id, kCounterId);
  EXPECT_EQ(entities[1]->transform->position->x(), 3);
  EXPECT_EQ(entities[1]->components, (Texts{"body"}));
  EXPECT_EQ(entities[2]->transform->position->x(), kCameraPlace.x);
}

TEST_F(CounterPortsTest, TheCounterCountsOnFromWhereItWasMoved) {
  stepped_->Exchange();
  EXPECT_TRUE(Call(Id::SetEntityTransform, Move(kCounterId, 10, 20))
                  .payload.AsSetEntityTransformResponse()
                  ->success);
  EXPECT_EQ(Place(1).x(), 10);
  stepped_->Exchange();
  EXPECT_EQ(Place(1).x(), 11);
  EXPECT_EQ(Place(1).y(), 20);
  EXPECT_EQ(Place(0).x(), 2);
  EXPECT_EQ(stepped_->rig.obs[4], 2);  // environment 1's count
  ASSERT_TRUE(stepped_->rig.ResetAll().ok());
  EXPECT_EQ(Place(1).x(), 0);
  EXPECT_EQ(Place(1).y(), 0);
}

TEST_F(CounterPortsTest, RefusesOtherMoves) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  ExpectRefused(Id::SetEntityTransform, Move(kCounterId, kInfinity, 0),
                ErrorCode::kInvalidArgument, "inf");
  ExpectRefused(Id::SetEntityTransform, Move(kWorldId, 1, 1),
                ErrorCode::kUnsupported, "entity 1");
  rpc::SetEntityTransformRequestT turn = Move(kCounterId, 1, 1);
  turn.transform->rotation = std::make_unique<rpc::Quat>(1.F, 0.F, 0.F, 0.F);
  ExpectRefused(Id::SetEntityTransform, turn, ErrorCode::kUnsupported,
                "rotation");
  EXPECT_EQ(Place(1).x(), 0);
}

TEST_F(CounterPortsTest, TheJointIsTheCount) {
  const rpc::EnvelopeT answer =
      Call(Id::GetMujocoInfo, rpc::GetMujocoInfoRequestT());
  const rpc::GetMujocoInfoResponseT& info =
      *answer.payload.AsGetMujocoInfoResponse();
  EXPECT_EQ(info.nq, 1U);
  EXPECT_EQ(info.nv, 1U);
  EXPECT_EQ(info.joint_names, (Texts{"count"}));
  EXPECT_EQ(info.actuator_names, (Texts{"action 0", "action 1"}));
  for (int step = 0; step < 3; ++step) stepped_->Exchange();
  rpc::GetJointStateRequestT request;
  request.env_ids = {1};
  for (const Id method : {Id::GetJointState, Id::StreamJointState}) {
    const rpc::EnvelopeT joints = Call(method, request);
    const rpc::JointStateT& state =
        *joints.payload.AsGetJointStateResponse()->state;
    EXPECT_EQ(state.env_id, 1U);
    EXPECT_EQ(state.positions, (Floats{3}));
    EXPECT_EQ(state.velocities, (Floats{10}));  // metres per second
  }
}

TEST_F(CounterPortsTest, AControlReplacesAnActionOnce) {
  stepped_->rig.actions = {1, 2, 3, 4};
  EXPECT_EQ(Call(Id::SendControl, Control(1, 10))
                .payload.AsSendControlResponse()
                ->actuators_written,
            1U);
  stepped_->Exchange();
  EXPECT_EQ(stepped_->rig.rewards, (Floats{3, 13}));
  EXPECT_EQ(engine_->ports().mujoco->Controls(1), (Floats{3, 10}));
  stepped_->Exchange();
  EXPECT_EQ(stepped_->rig.rewards, (Floats{3, 7}));
  EXPECT_EQ(Call(Id::SendControl, Control(0, 5)).error_message, "");
  EXPECT_EQ(engine_->ports().mujoco->Controls(1), (Floats{5, 4}));
  ExpectRefused(Id::SendControl, Control(2, 1), ErrorCode::kInvalidArgument,
                "below 2");
}

TEST_F(CounterPortsTest, TelemetryHasTheCountAndTheActions) {
  const rpc::EnvelopeT answer =
      Call(Id::GetTelemetrySchema, rpc::GetTelemetrySchemaRequestT());
  const rpc::TelemetrySchemaT& schema =
      *answer.payload.AsGetTelemetrySchemaResponse()->schema;
  EXPECT_EQ(schema.observation_names, (Texts{"count"}));
  EXPECT_EQ(schema.nu, 2U);
  stepped_->rig.actions = {1, 2, 3, 4};
  stepped_->Exchange();
  rpc::StreamTelemetryRequestT request;
  request.env_ids = {1};
  const rpc::EnvelopeT item = Call(Id::StreamTelemetry, request);
  EXPECT_EQ(item.payload.AsTelemetryFrame()->observation_qpos, (Floats{1}));
  EXPECT_EQ(item.payload.AsTelemetryFrame()->action_ctrl, (Floats{3, 4}));
}

TEST_F(CounterPortsTest, TheAgentsNumbersHaveNames) {
  const rpc::EnvelopeT answer =
      Call(Id::GetAgentSchema, rpc::GetAgentSchemaRequestT());
  const rpc::AgentSchemaT& schema =
      *answer.payload.AsGetAgentSchemaResponse()->schema;
  EXPECT_EQ(schema.observation_size, 4U);
  EXPECT_EQ(schema.observation_names.size(), 4U);
  EXPECT_EQ(schema.action_names, (Texts{"action 0", "action 1"}));
}

TEST_F(CounterPortsTest, AContractMovesTheStartOfEachEpisode) {
  rpc::ResetAgentRequestT request = WithNoise({1, 2, 0});
  request.simulation_contract->friction_range = {0.5F, 1};
  request.simulation_contract->terrain_type = "moon";
  EXPECT_EQ(Call(Id::ResetAgent, request)
                .payload.AsResetAgentResponse()
                ->unused_fields,
            (Texts{"friction_range", "terrain_type"}));
  const rpc::Vec3 first = Place(0);
  EXPECT_NE(first.x(), 0);
  EXPECT_NE(first.y(), 0);
  EXPECT_EQ(first.z(), 0);
  EXPECT_NE(Place(1).x(), first.x());
  ASSERT_TRUE(stepped_->rig.ResetAll().ok());
  EXPECT_NE(Place(0).x(), first.x());
  // The same seed draws the same places.
  EXPECT_EQ(Call(Id::ResetAgent, request).error_message, "");
  EXPECT_EQ(Place(0).x(), first.x());
  request.simulation_contract = nullptr;
  EXPECT_EQ(Call(Id::ResetAgent, request).error_message, "");
  EXPECT_EQ(Place(0).x(), 0);
}

TEST_F(CounterPortsTest, RefusesInvalidNoise) {
  for (const Floats& noise :
       {Floats{-1, 0, 0}, Floats{1, 1}, Floats{NAN, 0, 0}}) {
    ExpectRefused(Id::ResetAgent, WithNoise(noise), ErrorCode::kInvalidArgument,
                  "pose_position_noise");
  }
}

TEST_F(CounterPortsTest, TheCameraShowsTheCount) {
  const rpc::EnvelopeT listed =
      Call(Id::ListCameras, rpc::ListCamerasRequestT());
  const auto& cameras = listed.payload.AsListCamerasResponse()->cameras;
  ASSERT_EQ(cameras.size(), 1U);
  EXPECT_EQ(cameras[0]->id, kCameraId);
  EXPECT_LE(BarPixels(Frame(1)), 1U);
  for (int step = 0; step < 30; ++step) stepped_->Exchange();
  EXPECT_EQ(BarPixels(Frame(1)), 31U);  // with half a pixel at each end
}

TEST_F(CounterPortsTest, RefusesOtherImages) {
  rpc::GetCameraFrameRequestT request;
  request.name = "north";
  ExpectRefused(Id::GetCameraFrame, request, ErrorCode::kInvalidArgument,
                "'camera' 3");
  request.name = "camera";
  request.kind = rpc::CameraStreamKind::DEPTH;
  ExpectRefused(Id::GetCameraFrame, request, ErrorCode::kUnsupported, "DEPTH");
  request.kind = rpc::CameraStreamKind::COLOR;
  request.width = 1'000'000;
  ExpectRefused(Id::GetCameraFrame, request, ErrorCode::kInvalidArgument,
                "1000000");
}

TEST_F(CounterPortsTest, TheViewportHasTheCamerasView) {
  const rpc::EnvelopeT about =
      Call(Id::GetViewportInfo, rpc::GetViewportInfoRequestT());
  EXPECT_EQ(about.payload.AsGetViewportInfoResponse()->available_viewports,
            (Texts{"main"}));
  rpc::GetViewportFrameRequestT request;
  request.width = 100;
  request.height = 75;
  const rpc::EnvelopeT answer = Call(Id::GetViewportFrame, request);
  EXPECT_EQ(answer.payload.AsNamedImageFrame()->frame->data, Frame(0).data);
  rpc::StartViewportStreamRequestT stream;
  stream.format = "png";
  const rpc::EnvelopeT item = Call(Id::StreamViewport, stream);
  EXPECT_EQ(item.payload.AsImageFrame()->name, "main");
}

TEST_F(CounterPortsTest, DebugDrawsIntoTheImagesOfOneEnvironment) {
  const std::vector<uint8_t> before = Frame(1).data;
  EXPECT_TRUE(Call(Id::Draw, Arrow(9)).payload.AsDebugDrawResponse()->success);
  EXPECT_NE(Frame(1).data, before);
  EXPECT_EQ(Frame(0).data, before);
  ExpectRefused(Id::Draw, Arrow(NAN), ErrorCode::kInvalidArgument, "nan");
}

TEST_F(CounterPortsTest, TheNextClientFindsNoTraceOfTheLast) {
  const std::vector<uint8_t> before = Frame(1).data;
  EXPECT_EQ(Call(Id::ResetAgent, WithNoise({1, 1, 0})).error_message, "");
  EXPECT_EQ(Call(Id::Draw, Arrow(9)).error_message, "");
  EXPECT_EQ(Call(Id::SendControl, Control(0, 100)).error_message, "");
  engine_->ClearClientState();
  ASSERT_TRUE(stepped_->rig.ResetAll().ok());
  EXPECT_EQ(Frame(1).data, before);
  EXPECT_EQ(Place(1).x(), 0);
  stepped_->Exchange();
  EXPECT_EQ(stepped_->rig.rewards, (Floats{0, 0}));
}

}  // namespace
}  // namespace tandem
