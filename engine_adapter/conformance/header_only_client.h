// HeaderOnlyClient: a client that knows the seed's offsets and nothing more: no
// lock, no attach request, no doorbells, no checks of what it sends.
//
// Data flow: raw words of the region.
//
//   HeaderOnlyClient client("demo");
//   client.arrays().actions[0] = NAN;
//   client.Step();

#pragma once

#include <cstdint>
#include <string>

#include "base/os/machine.h"
#include "engine_adapter/conformance/server_process.h"
#include "schema/layout/lrbc.h"
#include "transport/memory/attached_region.h"
#include "transport/session/make_step_arrays.h"
#include "transport/step_arrays.h"

namespace tandem {

class HeaderOnlyClient {
 public:
  // The region exists. Throws if it is none.
  explicit HeaderOnlyClient(const std::string& name)
      : region_(AttachedRegion::Open(name).value()),
        arrays_(MakeStepArrays(*region_.mapping(), region_.plan(),
                               region_.fields())) {}

  const StepArrays& arrays() const { return arrays_; }

  // One exchange; waits until the rule's watchdog kills the engine.
  void Step() {
    LrbcHeader* const header = region_.mapping()->header();
    const uint64_t seq = header->action_seq.load(std::memory_order_relaxed) + 1;
    header->action_seq.store(seq, std::memory_order_release);
    while (header->frame_seq.load(std::memory_order_acquire) != seq &&
           !RuleWatchdog::HasKilled()) {
      YieldCore();
    }
  }

 private:
  AttachedRegion region_;
  StepArrays arrays_;
};

}  // namespace tandem
