// Service: the groups of methods that a client may call, as bits in the
// region's header. schema/messages/hazel_rpc.fbs defines the methods.
//
//   header->services.store(BitOf(Service::kAgent) | ..., relaxed);

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace tandem {

// A released number keeps its meaning; new ones are appended.
enum class Service : uint8_t {
  kAgent,
  kMujoco,
  kTelemetry,
  kScene,
  kCamera,
  kViewport,
  kDebug,
  kOwn,  // methods that an engine defines itself
};

// The names for users.
inline constexpr std::array kServiceNames = {"agent", "mujoco", "telemetry",
                                             "scene", "camera", "viewport",
                                             "debug", "own"};
inline constexpr size_t kServices = kServiceNames.size();

constexpr uint32_t BitOf(Service service) {
  return uint32_t{1} << static_cast<uint32_t>(service);
}
constexpr const char* NameOf(Service service) {
  return kServiceNames[static_cast<size_t>(service)];
}

// Returns the service with this name; nullopt: there is none.
inline std::optional<Service> ServiceNamed(absl::string_view name) {
  for (size_t i = 0; i < kServices; ++i) {
    if (name == kServiceNames[i]) return static_cast<Service>(i);
  }
  return std::nullopt;
}

}  // namespace tandem
