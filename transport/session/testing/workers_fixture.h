// WorkersTest: a test with a WorkerRig. AwaitHeldWorkers: waits until no worker
// of a region takes exchanges.
//
// Data flow: the words of orders and acknowledgements -> the test goes on.
// Ownership: the test has the client; the supervisor is on another thread.
//
//   ClientSide client = Begin(WorkerSpec(2, 2));
//   rig_->OnSupervisor([](SupervisorSide& side) { side.ShowPaused(true); });
//   AwaitHeldWorkers(client);

#pragma once

#include <cstdint>
#include <optional>

#include "schema/layout/lrbc.h"
#include "schema/layout/worker_slot.h"
#include "transport/client_side.h"
#include "transport/session/testing/echo_engine.h"
#include "transport/session/testing/worker_rig.h"

namespace tandem {

// A test with a WorkerRig.
class WorkersTest : public SessionTest {
 protected:
  // Starts it, and attaches a client.
  ClientSide Begin(const RegionSpec& spec, WorkerRig::Options options = {}) {
    rig_.emplace(name_, spec, options);
    return AttachOrFail(name_);
  }

  std::optional<WorkerRig> rig_;
};

// The supervisor must have a cause to hold them, such as a pause.
inline void AwaitHeldWorkers(const ClientSide& client) {
  const LrbcHeader& plan = client.plan();
  const auto* const head =
      client.mapping()->At<WorkersHeader>(plan.workers_offset);
  const auto* const slots =
      client.mapping()->At<WorkerSlot>(WorkerSlotOffset(plan, 0));
  AwaitTrue([&] {
    // relaxed: only compared.
    const uint32_t order = head->order.load(std::memory_order_relaxed);
    // relaxed: as above.
    bool held = head->order_kind.load(std::memory_order_relaxed) ==
                static_cast<uint32_t>(WorkerOrder::kHold);
    for (uint32_t worker = 0; worker < plan.num_workers; ++worker) {
      // relaxed: as above.
      const uint32_t ack = slots[worker].ack.load(std::memory_order_relaxed);
      held = held && ack == order;
    }
    return held;
  });
}

}  // namespace tandem
