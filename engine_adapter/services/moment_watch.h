// MomentWatch: whether anything can have changed since a stream's last poll.
//
// Data flow: SimulationPort's changes -> IsNew -> a stream's next item, or
// none.
// Ownership: one stream owns it.

#pragma once

#include <cstdint>
#include <optional>

#include "engine_adapter/ports/simulation_port.h"

namespace tandem {

class MomentWatch {
 public:
  explicit MomentWatch(const SimulationPort* simulation)
      : simulation_(simulation) {}

  // Returns true the first time, and once after each change.
  bool IsNew() {
    const uint64_t now = simulation_->changes();
    const bool is_new = seen_ != now;
    seen_ = now;
    return is_new;
  }

  // For RpcStream::pass. Returns true once after each change that IsNew has not
  // returned. The change stays new for IsNew, so the stream sends the newest
  // moment when there is room.
  bool Pass() {
    const uint64_t now = simulation_->changes();
    const bool is_lost = seen_ != now && passed_ != now;
    passed_ = now;
    return is_lost;
  }

  // The last change was not sent: IsNew returns true again.
  void Reset() { seen_.reset(); }

 private:
  const SimulationPort* simulation_;
  std::optional<uint64_t> seen_;
  std::optional<uint64_t> passed_;
};

}  // namespace tandem
