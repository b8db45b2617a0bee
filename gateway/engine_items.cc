#include "gateway/engine_items.h"

#include <optional>
#include <utility>

#include "base/error.h"
#include "gateway/relay_calls.h"

namespace tandem::gateway {

using google::protobuf::Message;

EngineItems::EngineItems(EngineLink* link, rpc::MethodId method,
                         const Message& request, const Message& item)
    : link_(link),
      method_(method),
      call_(CallOf(method, request)),
      item_(item) {}

EngineItems::~EngineItems() {
  if (client_ != nullptr) client_->Close(id_);
}

absl::StatusOr<std::unique_ptr<Message>> EngineItems::Next(Deadline deadline) {
  if (client_ == nullptr) {
    TANDEM_ASSIGN_OR_RETURN(const std::shared_ptr<RpcClient> client,
                            link_->Client());
    TANDEM_ASSIGN_OR_RETURN(id_, client->Open(std::move(call_)));
    client_ = client;
  }
  TANDEM_ASSIGN_OR_RETURN(std::optional<RpcMessage> next,
                          client_->Next(id_, deadline));
  if (!next.has_value()) return nullptr;
  std::unique_ptr<Message> item(item_.New());
  TANDEM_RETURN_IF_ERROR(TakeAnswer(method_, &*next, item.get()));
  return item;
}

}  // namespace tandem::gateway
