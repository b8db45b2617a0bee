// Images of an engine, in the form that programs for LuckyEngine read.
//
// Data flow: a request of the program -> ImageRequest -> the engine -> its
// message, with the image in it or in a slot of the region -> TakeImage -> RGBA
// or depth.

#pragma once

#include <google/protobuf/message.h>

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "flatbuffers/flatbuffers.h"
#include "gateway/message_conversion.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "schema/messages/rpc_methods.h"
#include "schema/protos/hazel/image.pb.h"
#include "transport/envelope.h"
#include "transport/rpc_client.h"

namespace tandem::gateway {

// The largest message that gRPC's clients receive by default, less the other
// parts of a message.
inline constexpr size_t kMostImageBytes = (4 << 20) - (64 << 10);

// Returns the engine's request of an image: `Request` is its table. Programs
// ask for "jpeg", too, but expect pixels: LuckyEngine has no encoder.
template <typename Request>
PackedCall ImageRequest(rpc::MethodId method,
                        const google::protobuf::Message& from, uint32_t env) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(Pack(from, *TypeOf(PayloadsOf(method).request), &builder));
  typename Request::NativeTableType request;
  flatbuffers::GetRoot<Request>(builder.GetBufferPointer())->UnPackTo(&request);
  request.format.clear();
  request.to_slot = true;
  request.env_id = env;
  rpc::EnvelopeT call;
  call.method = method;
  call.payload.Set(std::move(request));
  return call;
}

// Converts `from`, the image of `message`: colours to uint8[height, width, 4],
// red, green, blue, 255, the top row first; depth stays uint16[height, width].
// Errors:
//  - kRingFull: the image is larger than kMostImageBytes.
//  - kEngineFailed: the image's size does not fit its width and height.
//  - kPeerGone: the slot was taken away while it was read.
absl::Status TakeImage(RpcMessage* message, const rpc::ImageFrame& from,
                       hazel::rpc::ImageFrame* to);

// kRingFull: the images are larger than kMostImageBytes together.
absl::Status CheckTotalSize(
    const google::protobuf::RepeatedPtrField<hazel::rpc::NamedImageFrame>&
        images);

}  // namespace tandem::gateway
