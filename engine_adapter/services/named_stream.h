// NamedStream: a stream of pictures, each with its camera's name.
//
//   return NamedStream(std::move(stream->source), camera.name);

#ifndef TANDEM_ENGINE_ADAPTER_SERVICES_NAMED_STREAM_H_
#define TANDEM_ENGINE_ADAPTER_SERVICES_NAMED_STREAM_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "engine_adapter/rpc/rpc_answer.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

// `stream` gives rpc::ImageFrameT and nothing else.
inline RpcStream NamedStream(RpcStream stream, std::string name) {
  auto next = [next = std::move(stream.next), name = std::move(name)] {
    auto items = next();
    if (!items.ok()) return items;
    for (rpc::PayloadUnion& item : *items) item.AsImageFrame()->name = name;
    return items;
  };
  return {
      .hz = stream.hz, .next = std::move(next), .pass = std::move(stream.pass)};
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_SERVICES_NAMED_STREAM_H_
