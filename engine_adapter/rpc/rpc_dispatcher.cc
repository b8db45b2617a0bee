#include "engine_adapter/rpc/rpc_dispatcher.h"

#include "absl/strings/str_cat.h"
#include "transport/base/error.h"

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

std::optional<double> RpcDispatcher::StreamHz(rpc::MethodId method) const {
  const auto limit = stream_hz_.find(method);
  return limit == stream_hz_.end() ? std::nullopt
                                   : std::optional<double>(limit->second);
}

}  // namespace tandem
