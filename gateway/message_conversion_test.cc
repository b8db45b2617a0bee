#include "gateway/message_conversion.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <memory>

#include "schema/protos/hazel/agent.pb.h"
#include "schema/protos/hazel/camera.pb.h"
#include "schema/protos/hazel/debug.pb.h"
#include "schema/protos/hazel/mujoco.pb.h"
#include "schema/protos/hazel/mujoco_scene.pb.h"
#include "schema/protos/hazel/scene.pb.h"
#include "schema/protos/hazel/telemetry.pb.h"
#include "schema/protos/hazel/viewport.pb.h"

namespace tandem::gateway {
namespace {

namespace pb = hazel::rpc;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

void FillField(const FieldDescriptor* field, Message* message);

// Sets each field to a value that is not its default; of a oneof, the last.
void Fill(Message* message) {
  const auto* const type = message->GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    FillField(type->field(i), message);
  }
}

void FillField(const FieldDescriptor* field, Message* message) {
  const auto& reflection = *message->GetReflection();
  const bool many = field->is_repeated();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.SetBool(message, field, true);
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.SetInt32(message, field, -7);
    case FieldDescriptor::CPPTYPE_UINT32:
      if (!many) return reflection.SetUInt32(message, field, 0xfffffff0);
      reflection.AddUInt32(message, field, 3);
      return reflection.AddUInt32(message, field, 0);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.SetDouble(message, field, 0.1);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection.SetUInt64(message, field, ~uint64_t{0});
    case FieldDescriptor::CPPTYPE_FLOAT:
      if (!many) return reflection.SetFloat(message, field, -1.5F);
      reflection.AddFloat(message, field, 2.5F);
      return reflection.AddFloat(message, field, 0);
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.SetEnumValue(message, field, 1);
    case FieldDescriptor::CPPTYPE_STRING:
      if (!many) return reflection.SetString(message, field, "a\xc3\xa4");
      reflection.AddString(message, field, "b");
      return reflection.AddString(message, field, "");
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return Fill(many ? reflection.AddMessage(message, field)
                       : reflection.MutableMessage(message, field));
    default:
      FAIL() << field->full_name() << ": a type that no message had";
  }
}

std::unique_ptr<Message> Round(const Message& from, rpc::Payload payload) {
  const flatbuffers::TypeTable& type = *TypeOf(payload);
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(Pack(from, type, &builder));
  std::unique_ptr<Message> back(from.New());
  Unpack(*flatbuffers::GetRoot<flatbuffers::Table>(builder.GetBufferPointer()),
         type, back.get());
  return back;
}

// Both sides' messages of each method that the gateway passes on.
struct Pair {
  const Message& message;
  rpc::Payload payload;
};

TEST(MessageConversion, EachFieldOfEachMessageGoesThereAndBack) {
  const Pair pairs[] = {
#define TANDEM_PAIR(Name) {pb::Name::default_instance(), rpc::Payload::Name}
      TANDEM_PAIR(GetAgentSchemaRequest),
      TANDEM_PAIR(GetAgentSchemaResponse),
      TANDEM_PAIR(ResetAgentRequest),
      TANDEM_PAIR(ResetAgentResponse),
      TANDEM_PAIR(GetJointStateRequest),
      TANDEM_PAIR(GetJointStateResponse),
      TANDEM_PAIR(GetMujocoInfoRequest),
      TANDEM_PAIR(GetMujocoInfoResponse),
      {pb::SetControlRequest::default_instance(),
       rpc::Payload::SendControlRequest},
      {pb::SetControlResponse::default_instance(),
       rpc::Payload::SendControlResponse},
      TANDEM_PAIR(GetModelInfoRequest),
      TANDEM_PAIR(GetModelInfoResponse),
      TANDEM_PAIR(GetFullStateRequest),
      TANDEM_PAIR(GetFullStateResponse),
      TANDEM_PAIR(StreamFullStateRequest),
      TANDEM_PAIR(SetQposRequest),
      TANDEM_PAIR(SetQposResponse),
      TANDEM_PAIR(GetActuatorGainsRequest),
      TANDEM_PAIR(GetActuatorGainsResponse),
      TANDEM_PAIR(GetTelemetrySchemaRequest),
      TANDEM_PAIR(GetTelemetrySchemaResponse),
      TANDEM_PAIR(StreamTelemetryRequest),
      TANDEM_PAIR(TelemetryFrame),
      TANDEM_PAIR(GetSceneInfoRequest),
      TANDEM_PAIR(GetSceneInfoResponse),
      TANDEM_PAIR(ListEntitiesRequest),
      TANDEM_PAIR(ListEntitiesResponse),
      TANDEM_PAIR(GetEntityRequest),
      TANDEM_PAIR(GetEntityResponse),
      TANDEM_PAIR(SetEntityTransformRequest),
      TANDEM_PAIR(SetEntityTransformResponse),
      TANDEM_PAIR(SetSimulationModeRequest),
      TANDEM_PAIR(SetSimulationModeResponse),
      TANDEM_PAIR(GetSimulationModeRequest),
      TANDEM_PAIR(GetSimulationModeResponse),
      TANDEM_PAIR(ListCamerasRequest),
      TANDEM_PAIR(ListCamerasResponse),
      TANDEM_PAIR(GetCameraFrameRequest),
      TANDEM_PAIR(StreamCameraRequest),
      TANDEM_PAIR(GetViewportInfoRequest),
      TANDEM_PAIR(GetViewportInfoResponse),
      TANDEM_PAIR(GetViewportFrameRequest),
      TANDEM_PAIR(StartViewportStreamRequest),
      TANDEM_PAIR(DebugDrawRequest),
      TANDEM_PAIR(DebugDrawResponse),
#undef TANDEM_PAIR
  };
  for (const Pair& pair : pairs) {
    std::unique_ptr<Message> full(pair.message.New());
    Fill(full.get());
    const std::unique_ptr<Message> back = Round(*full, pair.payload);
    EXPECT_TRUE(
        google::protobuf::util::MessageDifferencer::Equals(*full, *back))
        << full->DebugString() << "came back as\n"
        << back->DebugString();
    const std::unique_ptr<Message> empty(pair.message.New());
    EXPECT_EQ(Round(*empty, pair.payload)->ByteSizeLong(), 0U)
        << empty->GetTypeName();
  }
}

TEST(MessageConversion, AnIdIsSentWithoutAName) {
  pb::GetEntityRequest request;
  request.mutable_id()->set_id(7);
  const auto back = Round(request, rpc::Payload::GetEntityRequest);
  EXPECT_EQ(static_cast<const pb::GetEntityRequest&>(*back).id().id(), 7U);
}

TEST(MessageConversion, AnUnknownEnumNumberStaysUnknown) {
  pb::SetSimulationModeRequest request;
  request.set_mode(static_cast<pb::SimulationMode>(1000));
  const auto back = Round(request, rpc::Payload::SetSimulationModeRequest);
  EXPECT_EQ(static_cast<const pb::SetSimulationModeRequest&>(*back).mode(),
            0xff);
}

}  // namespace
}  // namespace tandem::gateway
