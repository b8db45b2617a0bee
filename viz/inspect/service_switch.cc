#include "viz/inspect/service_switch.h"

#include <utility>

#include "absl/status/statusor.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/base/clock.h"
#include "transport/base/error.h"
#include "transport/rpc/rpc_client.h"
#include "transport/session/attendant_side.h"

namespace tandem {

absl::Status SwitchServices(absl::string_view region,
                            std::span<const std::string> enable,
                            std::span<const std::string> disable) {
  constexpr double kTimeoutSecs = 10;
  TANDEM_ASSIGN_OR_RETURN(
      const auto side,
      AttendantSide::Attach(
          region, {.label = "tandem-inspect", .timeout_secs = kTimeoutSecs}));
  TANDEM_ASSIGN_OR_RETURN(const auto calls, RpcClient::Create(side.get(), {}));
  for (const bool enabled : {false, true}) {
    for (const std::string& name : enabled ? enable : disable) {
      rpc::SetServiceRequestT request;
      request.name = name;
      request.enabled = enabled;
      rpc::EnvelopeT call;
      call.method = rpc::MethodId::SetService;
      call.payload.Set(std::move(request));
      TANDEM_RETURN_IF_ERROR(
          calls->Call(call, Deadline::After(kTimeoutSecs)).status());
    }
  }
  return absl::OkStatus();
}

}  // namespace tandem
