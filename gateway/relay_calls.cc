#include "gateway/relay_calls.h"

#include <google/protobuf/descriptor.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/error.h"
#include "flatbuffers/flatbuffers.h"
#include "gateway/images.h"
#include "gateway/message_conversion.h"
#include "schema/layout/error_codes.h"
#include "schema/messages/rpc_methods.h"
#include "schema/protos/hazel/image.pb.h"

namespace tandem::gateway {
namespace {

namespace pb = hazel::rpc;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// "agent_3", but not "agent_smith".
bool IsAgent(absl::string_view name) {
  return absl::ConsumePrefix(&name, "agent_") && !name.empty() &&
         name.find_first_not_of("0123456789") == absl::string_view::npos;
}

// Replaces names of the program that an engine does not know:
//  - a robot's, such as "unitreego2": an engine knows agents' names only;
//  - "Main", LuckyEngine's viewport, by Tandem's "main".
void TranslateNames(Message* request) {
  const auto& reflection = *request->GetReflection();
  const auto* const type = request->GetDescriptor();
  if (const FieldDescriptor* const robot = type->FindFieldByName("robot_name");
      robot != nullptr && !IsAgent(reflection.GetString(*request, robot))) {
    reflection.ClearField(request, robot);
  }
  if (const FieldDescriptor* const viewport =
          type->FindFieldByName("viewport_name");
      viewport != nullptr &&
      reflection.GetString(*request, viewport) == "Main") {
    reflection.SetString(request, viewport, "main");
  }
}

}  // namespace

rpc::MethodId MethodOf(absl::string_view name) {
  // The name of the method, and of 0.1.84's RPC.
  if (name == "SetControl") return rpc::MethodId::SendControl;
  for (const rpc::MethodId method : rpc::EnumValuesMethodId()) {
    if (name == rpc::EnumNameMethodId(method)) return method;
  }
  return rpc::MethodId::NONE;
}

PackedCall CallOf(rpc::MethodId method, const Message& request, uint32_t env) {
  const std::unique_ptr<Message> translated(request.New());
  translated->CopyFrom(request);
  TranslateNames(translated.get());
  switch (method) {
    case rpc::MethodId::GetCameraFrame:
      return ImageRequest<rpc::GetCameraFrameRequest>(method, *translated, env);
    case rpc::MethodId::GetViewportFrame:
      return ImageRequest<rpc::GetViewportFrameRequest>(method, *translated,
                                                        env);
    case rpc::MethodId::StreamCamera:
      return ImageRequest<rpc::StreamCameraRequest>(method, *translated, env);
    case rpc::MethodId::StreamViewport:
      return ImageRequest<rpc::StartViewportStreamRequest>(method, *translated,
                                                           env);
    default:
      break;
  }
  const rpc::Payload type = PayloadsOf(method).request;
  flatbuffers::FlatBufferBuilder builder;
  const auto packed = Pack(*translated, *TypeOf(type), &builder);
  return PackedCall(&builder, method, type, packed.Union());
}

absl::Status TakeAnswer(rpc::MethodId method, RpcMessage* answer,
                        Message* response) {
  const rpc::Envelope& envelope = answer->envelope();
  const rpc::Payload type = PayloadsOf(method).answer;
  if (envelope.payload_type() != type) {
    return MakeError(ErrorCode::kEngineFailed,
                     absl::StrCat("expected the engine's answer to ",
                                  rpc::EnumNameMethodId(method),
                                  ", found another kind of message"));
  }
  if (const auto* const image = envelope.payload_as_ImageFrame()) {
    return TakeImage(answer, *image, static_cast<pb::ImageFrame*>(response));
  }
  if (const auto* const named = envelope.payload_as_NamedImageFrame()) {
    auto* const to = static_cast<pb::NamedImageFrame*>(response);
    if (named->name() != nullptr) to->set_name(named->name()->str());
    if (named->frame() == nullptr) {
      return MakeError(ErrorCode::kEngineFailed,
                       "expected an image in the engine's answer, found none");
    }
    return TakeImage(answer, *named->frame(), to->mutable_frame());
  }
  Unpack(*static_cast<const flatbuffers::Table*>(envelope.payload()),
         *TypeOf(type), response);
  return absl::OkStatus();
}

}  // namespace tandem::gateway
