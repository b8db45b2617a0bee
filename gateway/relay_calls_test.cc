#include "gateway/relay_calls.h"

#include <gtest/gtest.h>

#include <string>

#include "schema/messages/hazel_rpc_generated.h"
#include "schema/protos/hazel/agent.pb.h"
#include "schema/protos/hazel/mujoco.pb.h"
#include "schema/protos/hazel/viewport.pb.h"
#include "transport/envelope.h"

namespace tandem::gateway {
namespace {

namespace pb = hazel::rpc;

const rpc::Envelope& EnvelopeOf(const PackedCall& call) {
  return *rpc::GetEnvelope(call.bytes().data());
}

std::string RobotSentFor(const std::string& name) {
  pb::GetJointStateRequest request;
  request.set_robot_name(name);
  const PackedCall call = CallOf(rpc::MethodId::GetJointState, request);
  const auto* const sent =
      EnvelopeOf(call).payload_as_GetJointStateRequest()->robot_name();
  return sent == nullptr ? "" : sent->str();
}

TEST(RelayCalls, OnlyAgentsNamesReachTheEngine) {
  EXPECT_EQ(RobotSentFor("agent_12"), "agent_12");
  EXPECT_EQ(RobotSentFor("unitreego2"), "");
  EXPECT_EQ(RobotSentFor("agent_"), "");
  EXPECT_EQ(RobotSentFor("agent_smith"), "");
  EXPECT_EQ(RobotSentFor(""), "");
}

TEST(RelayCalls, LuckyEnginesViewportIsTandems) {
  pb::StartViewportStreamRequest request;
  request.set_viewport_name("Main");
  request.set_target_fps(7);
  const PackedCall call = CallOf(rpc::MethodId::StreamViewport, request);
  const auto& sent = *EnvelopeOf(call).payload_as_StartViewportStreamRequest();
  EXPECT_EQ(sent.viewport_name()->str(), "main");
  EXPECT_EQ(sent.target_fps(), 7U);
}

TEST(RelayCalls, ImagesAreRequestedAsPixelsInASlot) {
  pb::GetCameraFrameRequest request;
  request.set_name("track");
  request.set_width(32);
  request.set_format("jpeg");
  request.set_kind(pb::CAMERA_STREAM_DEPTH);
  const PackedCall call = CallOf(rpc::MethodId::GetCameraFrame, request);
  const auto& sent = *EnvelopeOf(call).payload_as_GetCameraFrameRequest();
  EXPECT_EQ(sent.name()->str(), "track");
  EXPECT_EQ(sent.width(), 32U);
  EXPECT_EQ(sent.kind(), rpc::CameraStreamKind::DEPTH);
  EXPECT_TRUE(sent.to_slot());
  EXPECT_TRUE(sent.format() == nullptr || sent.format()->size() == 0);
}

}  // namespace
}  // namespace tandem::gateway
