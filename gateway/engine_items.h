// EngineItems: the items of an engine's stream.
//
// Data flow: a program's request -> CallOf -> the engine's stream -> TakeAnswer
// -> items.

#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "gateway/engine_link.h"
#include "gateway/stream_items.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/envelope.h"
#include "transport/rpc_client.h"

namespace tandem::gateway {

class EngineItems final : public StreamItems {
 public:
  // Opens the stream at the first item. `item` has the items' type. Both `link`
  // and `item` outlive the object.
  EngineItems(EngineLink* link, rpc::MethodId method,
              const google::protobuf::Message& request,
              const google::protobuf::Message& item);
  ~EngineItems() override;

  // Errors: those of EngineLink::Client, RpcClient::Next and TakeAnswer.
  absl::StatusOr<std::unique_ptr<google::protobuf::Message>> Next(
      Deadline deadline) override;

 private:
  EngineLink* const link_;
  const rpc::MethodId method_;
  PackedCall call_;
  const google::protobuf::Message& item_;
  std::shared_ptr<RpcClient> client_;  // nullptr: not open
  uint64_t id_ = 0;
};

}  // namespace tandem::gateway
