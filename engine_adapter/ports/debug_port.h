// DebugPort: lines and arrows in the pictures of an engine's environments.
//
// Data flow: service debug -> Draw -> every later picture for people: frames,
// cameras, viewports; not the observations' images.
// Ownership: the engine's; the thread that steps calls, between exchanges.
//
//   absl::Status status = port->Draw(request);

#ifndef TANDEM_ENGINE_ADAPTER_PORTS_DEBUG_PORT_H_
#define TANDEM_ENGINE_ADAPTER_PORTS_DEBUG_PORT_H_

#include "absl/status/status.h"

// Plain structs of schema/messages/hazel_rpc.fbs.
namespace tandem::rpc {
struct DebugDrawRequestT;
}  // namespace tandem::rpc

namespace tandem {

class DebugPort {
 public:
  virtual ~DebugPort() = default;

  // Into request.env_id, which exists. kInvalidArgument for numbers that
  // nothing can be drawn by, or more things than there is room for; nothing
  // has changed then.
  virtual absl::Status Draw(const rpc::DebugDrawRequestT& request) = 0;

  // Takes away what was drawn, in all environments.
  virtual void Clear() = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_PORTS_DEBUG_PORT_H_
