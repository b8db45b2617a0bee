// The flags of commands and of simulated time, which every server has.
//
// Data flow: command line or --config's file -> RpcFlags -> EngineHost.
//
//   absl::StatusOr<RpcFlags> flags = RpcFromFlags();

#ifndef TANDEM_ENGINE_ADAPTER_SERVICES_RPC_FLAGS_H_
#define TANDEM_ENGINE_ADAPTER_SERVICES_RPC_FLAGS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine_adapter/services/rpc_config.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

struct RpcFlags {
  RpcConfig config = {};
  uint32_t ring_bytes = 0;
  rpc::SimulationMode mode = rpc::SimulationMode::FAST;
};

// kInvalidArgument for a value that cannot be. Call after ParseCommandLine.
absl::StatusOr<RpcFlags> RpcFromFlags();

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_SERVICES_RPC_FLAGS_H_
