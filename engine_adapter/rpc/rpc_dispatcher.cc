#include "engine_adapter/rpc/rpc_dispatcher.h"

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "schema/messages/rpc_methods.h"

namespace tandem {

absl::Status RpcDispatcher::Check(rpc::MethodId method) const {
  const auto off = switched_off_.find(method);
  if (off != switched_off_.end()) {
    return MakeError(ErrorCode::kUnsupported, off->second);
  }
  if (HasHandler(method)) return absl::OkStatus();
  return MakeError(ErrorCode::kUnsupported,
                   absl::StrCat(NameOf(method),
                                ": this engine does not serve it; "
                                "GetServices lists its services"));
}

void RpcDispatcher::ServePayloads(
    rpc::MethodId method, std::function<void(std::span<const uint8_t> envelope,
                                             RpcAnswer<rpc::PayloadUnion>)>
                              handler) {
  handlers_[method] = [handler = std::move(handler)](
                          RpcConnection* caller, const rpc::Envelope& call) {
    const rpc::Payload request = PayloadsOf(call.method()).request;
    if (call.payload_type() != request || call.payload() == nullptr) {
      caller->SendResponse<rpc::PayloadUnion>(
          call.method(), call.correlation_id(),
          RpcConnection::WrongPayload(call, request));
      return;
    }
    const std::optional<RpcAnswer<rpc::PayloadUnion>> answer =
        caller->Later<rpc::PayloadUnion>(call);
    if (!answer) return;
    absl::Status status = Guarded([&] {
      handler(caller->call_bytes(), *answer);
      return absl::OkStatus();
    });
    // No effect if the handler answered before the exception.
    if (!status.ok()) (*answer)(std::move(status));
  };
}

std::optional<double> RpcDispatcher::StreamHz(rpc::MethodId method) const {
  const auto limit = stream_hz_.find(method);
  return limit == stream_hz_.end() ? std::nullopt
                                   : std::optional<double>(limit->second);
}

}  // namespace tandem
