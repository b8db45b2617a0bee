// MomentWatch: whether anything can have changed since a stream polled last.
//
// Data flow: SimulationPort's changes -> IsNew -> a stream's next item, or
// none. Ownership: one stream's.
//
//   if (!watch.IsNew()) return Items();  // nothing new

#ifndef TANDEM_ENGINE_ADAPTER_SERVICES_MOMENT_WATCH_H_
#define TANDEM_ENGINE_ADAPTER_SERVICES_MOMENT_WATCH_H_

#include <cstdint>
#include <optional>

#include "engine_adapter/ports/simulation_port.h"

namespace tandem {

class MomentWatch {
 public:
  explicit MomentWatch(const SimulationPort* simulation)
      : simulation_(simulation) {}

  // True the first time, and once after each change.
  bool IsNew() {
    const uint64_t now = simulation_->changes();
    const bool is_new = seen_ != now;
    seen_ = now;
    return is_new;
  }

  // For RpcStream::pass. True once after each change that was not taken; it
  // stays new to IsNew, so that the newest moment is taken once there is room.
  bool Pass() {
    const uint64_t now = simulation_->changes();
    const bool is_lost = seen_ != now && passed_ != now;
    passed_ = now;
    return is_lost;
  }

  // What was seen last was not taken: it is new again.
  void Reset() { seen_.reset(); }

 private:
  const SimulationPort* simulation_;
  std::optional<uint64_t> seen_;
  std::optional<uint64_t> passed_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_SERVICES_MOMENT_WATCH_H_
