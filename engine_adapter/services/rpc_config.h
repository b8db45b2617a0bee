// RpcConfig: which services an engine answers, and the rates of their streams.
//
// Data flow: a server's flags and file -> RpcFlags -> EngineHost -> RpcHost.
//
//   RpcConfig config;
//   absl::Status status = ParseServices("agent,scene", &config);
//   status = ParseStreamRates("camera=10,viewport=5", &config);

#ifndef TANDEM_ENGINE_ADAPTER_SERVICES_RPC_CONFIG_H_
#define TANDEM_ENGINE_ADAPTER_SERVICES_RPC_CONFIG_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schema/layout/service.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

struct RpcConfig {
  static constexpr double kMaxStreamHz = 1000;

  struct OfService {
    bool enabled = true;
    double stream_hz = 60;  // of one stream, at most
  };

  OfService& operator[](Service service) {
    return services[static_cast<size_t>(service)];
  }
  const OfService& operator[](Service service) const {
    return services[static_cast<size_t>(service)];
  }

  std::array<OfService, kServices> services = {};
};

// "agent,scene", "all" or "none": these, and no others. kInvalidArgument.
absl::Status ParseServices(absl::string_view text, RpcConfig* config);

// "camera=10,telemetry=100", or {"camera": 10, "telemetry": 100}: of these
// services, from kLeastStreamHz to kMaxStreamHz. kInvalidArgument for others,
// those without streams among them.
absl::Status ParseStreamRates(absl::string_view text, RpcConfig* config);

struct RpcFlags {
  RpcConfig config = {};
  uint32_t ring_bytes = 0;
  rpc::SimulationMode mode = rpc::SimulationMode::FAST;
};

// Of the flags that every server has: services, stream_hz, rpc_ring_kib,
// mode. Call after ParseCommandLine. kInvalidArgument for an invalid value.
absl::StatusOr<RpcFlags> RpcFromFlags();

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_SERVICES_RPC_CONFIG_H_
