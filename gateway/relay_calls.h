// Calls of an engine's methods, made of programs' requests.
//
// Data flow: a program's request -> CallOf -> the engine -> TakeAnswer -> the
// program's response, or an item of its stream.

#pragma once

#include <google/protobuf/message.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/envelope.h"
#include "transport/rpc_client.h"

namespace tandem::gateway {

// Returns the engine's method that answers an RPC that the engine serves; NONE
// for others.
rpc::MethodId MethodOf(absl::string_view name);

// Returns the converted request. A robot's name is left out unless it is an
// agent's; the viewport "Main" is "main"; images are requested as pixels.
// `env`: of an image.
PackedCall CallOf(rpc::MethodId method,
                  const google::protobuf::Message& request, uint32_t env = 0);

// Converts the engine's answer, or its stream's item, whose image it takes.
// `response` has the RPC's type. Errors: kEngineFailed, if the answer has
// another type; those of TakeImage.
absl::Status TakeAnswer(rpc::MethodId method, RpcMessage* answer,
                        google::protobuf::Message* response);

}  // namespace tandem::gateway
