// WorkerElection: the end of an exchange of several workers. Exactly one
// process publishes it: a worker that finds all done, or the supervisor.
//
// Data flow: `done` of all workers -> AllDone -> Win -> Publish -> the client.
// Ownership: each worker, and the supervisor, has one. docs/protocol.md,
// "Workers", is the specification, and tests/model/worker_model_test.py shows
// that each step is necessary.
//
//   // After the fence behind the store of this worker's `done`:
//   if (election.AllDone(exchange) && election.Win(exchange)) {
//     election.Publish(exchange);
//   }

#pragma once

#include <cstdint>
#include <span>

#include "schema/layout/lrbc.h"
#include "schema/layout/worker_slot.h"
#include "transport/region.h"

namespace tandem {

// A view; the mapping outlives it. Not thread-safe. Trusts no word of the
// region: whatever the slots have, a call ends.
class WorkerElection {
 public:
  // `plan` has passed CheckHeader, or is of PlanRegion. `index` is a worker's,
  // or kSupervisorIndex.
  WorkerElection(const RegionMapping& mapping, const LrbcHeader& plan,
                 uint32_t index)
      : header_(mapping.header()),
        head_(mapping.At<WorkersHeader>(plan.workers_offset)),
        slots_(mapping.At<WorkerSlot>(WorkerSlotOffset(plan, 0)),
               plan.num_workers),
        index_(index) {}

  // Whether all workers have done the exchange. Usually one load: it begins at
  // the worker that was not done last time.
  bool AllDone(uint64_t exchange) {
    for (size_t seen = 0; seen < slots_.size(); ++seen) {
      // SYNC(workers.done): acquire; the number, then that worker's rows.
      // SYNC(workers.finish): acquire; behind the fence of this worker.
      if (slots_[next_].done.load(std::memory_order_acquire) != exchange) {
        return false;
      }
      next_ = next_ + 1 == slots_.size() ? 0 : next_ + 1;
    }
    return true;
  }

  // Whether this process is the one that publishes the exchange. Returns true
  // once for each exchange, to one process of all.
  bool Win(uint64_t exchange) {
    // relaxed: compared with its next value only.
    uint64_t found = head_->publisher.load(std::memory_order_relaxed);
    while (!HasPublisher(found, exchange)) {
      if (WinFrom(&found, exchange)) return true;
    }
    return false;
  }
  // The same, unless the word is no longer `*found`; then `*found` gets it. For
  // the supervisor: other exchanges may have been published since it looked.
  bool WinFrom(uint64_t* found, uint64_t exchange) {
    // SYNC(workers.publisher): release; frame_seq as this process has seen it
    // before the winner.
    return head_->publisher.compare_exchange_weak(
        *found, PackPublisher(exchange, index_), std::memory_order_release);
  }

  // Hands the exchange to the client: clears what the client wrote for it but
  // the reset flags, which each worker has cleared in its rows; writes the
  // status; stores frame_seq. Allocates only if a worker has failed. The caller
  // rings the client.
  void Publish(uint64_t exchange);

 private:
  void StoreFailure(uint64_t exchange, size_t first);

  LrbcHeader* header_;
  WorkersHeader* head_;
  std::span<WorkerSlot> slots_;
  uint32_t index_;
  size_t next_ = 0;  // where AllDone begins
};

}  // namespace tandem
