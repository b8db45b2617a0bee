// RpcConfig: the services that an engine answers, and the rates of their
// streams.
//
// Data flow: a server's flags and file -> RpcFlags -> EngineHost -> RpcHost.
//
//   RpcConfig config;
//   absl::Status status = ParseServices("agent,scene", &config);
//   status = ParseStreamRates("camera=10,viewport=5", &config);

#pragma once

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
    double stream_hz = 60;  // maximum of one stream
  };

  OfService& operator[](Service service) {
    return services[static_cast<size_t>(service)];
  }
  const OfService& operator[](Service service) const {
    return services[static_cast<size_t>(service)];
  }

  std::array<OfService, kServices> services = {};
};

// Enables the services of `text` and disables all others: "agent,scene", "all"
// or "none". kInvalidArgument for any other text.
absl::Status ParseServices(absl::string_view text, RpcConfig* config);

// Sets the stream rates of services: "camera=10,telemetry=100", or {"camera":
// 10, "telemetry": 100}. kInvalidArgument for a rate outside of kLeastStreamHz
// to kMaxStreamHz, or for a service without streams; the text begins with
// `field`.
absl::Status ParseStreamRates(absl::string_view text, RpcConfig* config,
                              absl::string_view field = "--stream_hz");

// Returns the bytes of each RPC ring. kInvalidArgument: `kib` is no power of
// two, too small or too large; the text begins with `field`.
absl::StatusOr<uint32_t> RpcRingBytes(uint32_t kib, absl::string_view field);

struct RpcFlags {
  RpcConfig config = {};
  uint32_t ring_bytes = 0;
  uint32_t image_slot_bytes = 0;
  rpc::SimulationMode mode = rpc::SimulationMode::FAST;
};

// Returns the values of the flags services, stream_hz, rpc_ring_kib,
// image_slot_bytes and mode, which every server has. Call it after
// ParseCommandLine. kInvalidArgument for an invalid value.
absl::StatusOr<RpcFlags> RpcFromFlags();

}  // namespace tandem
