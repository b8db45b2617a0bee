// Messages as gRPC's bytes, for services of any type of message.

#pragma once

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

namespace tandem::gateway {

grpc::ByteBuffer BytesOf(const google::protobuf::MessageLite& message);

// INVALID_ARGUMENT: the bytes are no such message.
grpc::Status Parse(const grpc::ByteBuffer& bytes,
                   google::protobuf::MessageLite* message);

}  // namespace tandem::gateway
