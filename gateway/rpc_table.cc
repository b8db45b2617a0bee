#include "gateway/rpc_table.h"

namespace tandem::gateway {

absl::Span<const RpcRow> AllRpcs() {
#define TANDEM_UNARY(service, rpc, request, response, door) \
  {#service, #rpc, Door::door, false},
#define TANDEM_STREAM(service, rpc, request, response, door) \
  {#service, #rpc, Door::door, true},
  static constexpr RpcRow kRows[] = {TANDEM_RPCS(TANDEM_UNARY, TANDEM_STREAM)};
#undef TANDEM_UNARY
#undef TANDEM_STREAM
  return kRows;
}

absl::string_view NameOf(Door door) {
  switch (door) {
    case Door::kEngine:
      return "engine";
    case Door::kStep:
      return "step";
    case Door::kGateway:
      return "gateway";
  }
  return "";
}

}  // namespace tandem::gateway
