// MomentWatch: whether anything can have changed since a stream looked last.
//
// Data flow: SimulationPort's counts -> IsNew -> a stream's next item, or none.
// Ownership: one stream's.
//
//   if (!watch.IsNew()) return Items();  // nothing new

#ifndef TANDEM_ENGINE_ADAPTER_SERVICES_MOMENT_WATCH_H_
#define TANDEM_ENGINE_ADAPTER_SERVICES_MOMENT_WATCH_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "engine_adapter/services/simulation_port.h"

namespace tandem {

class MomentWatch {
 public:
  explicit MomentWatch(const SimulationPort* simulation)
      : simulation_(simulation) {}

  // True the first time, and once after each exchange and step.
  bool IsNew() {
    const std::optional now =
        std::pair(simulation_->frame_seq(), simulation_->steps());
    return std::exchange(seen_, now) != now;
  }

 private:
  const SimulationPort* simulation_;
  std::optional<std::pair<uint64_t, uint64_t>> seen_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_SERVICES_MOMENT_WATCH_H_
