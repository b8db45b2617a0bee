#include "gateway/message_bytes.h"

#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>

#include <cstdint>

namespace tandem::gateway {

grpc::ByteBuffer BytesOf(const google::protobuf::MessageLite& message) {
  const grpc::Slice slice(message.ByteSizeLong());
  // gRPC's own serialisation writes so, too.
  message.SerializeWithCachedSizesToArray(const_cast<uint8_t*>(slice.begin()));
  return grpc::ByteBuffer(&slice, 1);
}

grpc::Status Parse(const grpc::ByteBuffer& bytes,
                   google::protobuf::MessageLite* message) {
  grpc::ByteBuffer unread(bytes);
  grpc::ProtoBufferReader reader(&unread);
  if (reader.status().ok() && message->ParseFromZeroCopyStream(&reader)) {
    return grpc::Status::OK;
  }
  return {grpc::StatusCode::INVALID_ARGUMENT,
          "expected a " + message->GetTypeName() +
              ", found bytes that are none; next: the client needs the "
              "protocol hazel.rpc 0.5.0"};
}

}  // namespace tandem::gateway
