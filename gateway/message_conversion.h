// Conversion between messages of the gRPC protocol and of hazel_rpc.fbs, by the
// names of their fields.
//
// Data flow: a proto request -> Pack -> the engine; the engine's answer -> its
// table -> Unpack -> a proto response.
// Both have the same names, by design. Three differences are known here: an
// EntityId is a number, Vec3 and Quat are structs, a `oneof` of id and name is
// two fields. Fields that only one side has are left out.

#pragma once

#include <google/protobuf/message.h>

#include "flatbuffers/flatbuffers.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem::gateway {

// Returns the description of a payload's table; nullptr for NONE.
const flatbuffers::TypeTable* TypeOf(rpc::Payload payload);

// Builds a table of `type` from the message.
flatbuffers::Offset<flatbuffers::Table> Pack(
    const google::protobuf::Message& from, const flatbuffers::TypeTable& type,
    flatbuffers::FlatBufferBuilder* builder);

// Sets the fields of the message that `from`, a verified table of `type`, has.
void Unpack(const flatbuffers::Table& from, const flatbuffers::TypeTable& type,
            google::protobuf::Message* to);

}  // namespace tandem::gateway
