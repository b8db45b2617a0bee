// EngineWorkers: the supervisor's end of a region's workers.
//
// Data flow: Order -> the workers' acknowledgements; a worker's death ->
// TakeOver publishes in its place; a client's arrival -> all are held.
// Ownership: SupervisorSide has one; its thread calls it. docs/protocol.md,
// "Workers", is the specification.
//
//   workers.Order(WorkerOrder::kHold);
//   ... until workers.AllAcknowledged() ...
//   if (workers.ProgressAt(frame_seq).begun) {
//     workers.Order(WorkerOrder::kFinish, frame_seq + 1);
//   }

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/lrbc.h"
#include "schema/layout/worker_slot.h"
#include "transport/memory/owned_region.h"
#include "transport/region.h"
#include "transport/session/worker_election.h"
#include "transport/wait/doorbell.h"

namespace tandem {

// Trusts no word of a slot. Not thread-safe.
class EngineWorkers {
 public:
  // `region` is private still: its header is as PlanRegion made it.
  explicit EngineWorkers(const OwnedRegion& region);

  uint32_t size() const { return static_cast<uint32_t>(rows_.size()); }

  // Sends an order, and wakes the workers. Legal while AllAcknowledged; `go`
  // never follows `go`. One system call if a worker sleeps.
  void Order(WorkerOrder order, uint64_t value = 0);
  // Whether each worker has carried out the last order. Before the first order
  // it holds, also while no worker has attached.
  bool AllAcknowledged() const;

  // How far the workers are with the exchange after `frame_seq`. Legal while
  // they are held.
  struct Progress {
    bool valid = true;   // each number is `frame_seq` or one more
    bool begun = false;  // some have done it
    bool done = true;    // all have done it
  };
  Progress ProgressAt(uint64_t frame_seq) const;
  // Whether each worker has this number of completed exchanges.
  bool AllHave(uint64_t count) const;
  // The next exchange that they end is `count` + 1. Legal while they are held.
  void SetCount(uint64_t count);
  // Forgets the lanes that no worker has begun. Legal while the workers are
  // held, and no client is admitted.
  void DropLanes();

  // Publishes the exchange, without an election. Legal while the workers are
  // held, and all have done it.
  void Publish(uint64_t exchange);
  // Publishes the pending exchange if all workers have done it, and none of
  // them publishes it: the winner of the election died; or the last to finish
  // died, and an earlier call found the same at least kPatienceNs ago. Returns
  // whether it did. Illegal while a kCount order is not acknowledged. A system
  // call only if a worker has won an election and has not published yet.
  bool TakeOver(const OwnedRegion& region, int64_t now_ns);

  // Returns a worker that died and was not returned before. Continues where the
  // last call ended; ends behind the last worker, and after kLocksPerCall
  // system calls of 1 to 2 us.
  std::optional<uint32_t> FindDead(const OwnedRegion& region);
  // Whether FindDead begins with worker 0: it has tested all workers.
  bool TestedAll() const { return next_lock_ == 0; }
  // Makes a dead worker's slot free for its replacement, which continues where
  // the dead one stopped. Publishes in its place first, if `takes_over`, as
  // TakeOver. False: its process still holds the slot.
  bool Replace(uint32_t worker, const OwnedRegion& region, bool takes_over,
               int64_t now_ns);
  // Whether a process has this slot. One system call.
  bool IsAlive(uint32_t worker, const OwnedRegion& region) const {
    return region.PeerAlive(LockByte(worker));
  }

  // A number that changes with each exchange and each lane.
  uint64_t Activity() const;
  // Steps of environments since birth, for display: an exchange counts for all
  // environments, also those that it resets or skips.
  uint64_t Steps() const;
  // "worker 2 (pid 4711, environments 4 to 7), stepping environment 5 for 1.20
  // s", for people: any numbers.
  std::string TextOf(uint32_t worker, int64_t now_ns) const;
  // Tells the client why the region ends. Call it before the region is removed.
  void ShowEnd(ErrorCode code, absl::string_view text);

 private:
  static constexpr size_t kLocksPerCall = 64;
  // A last finisher that lives publishes within this time, unless it is
  // preempted. Shorter than the time between two polls of the supervisor, 5 ms.
  static constexpr int64_t kPatienceNs = 4'000'000;

  int64_t LockByte(uint32_t worker) const {
    return static_cast<int64_t>(first_lock_byte_ + worker * sizeof(WorkerSlot));
  }

  std::shared_ptr<const RegionMapping> mapping_;
  LrbcHeader* header_;
  WorkersHeader* head_;
  std::span<WorkerSlot> slots_;
  std::vector<WorkerRows> rows_;
  uint64_t first_lock_byte_;
  WorkerElection election_;
  Doorbell engine_bell_;
  Doorbell client_bell_;
  uint32_t order_ = 0;            // private truth
  std::vector<bool> known_dead_;  // returned by FindDead
  size_t next_lock_ = 0;          // that FindDead tests
  // The last exchange that TakeOver found done by all, without a winner; and
  // when it found that first.
  uint64_t overdue_ = 0;
  int64_t overdue_at_ns_ = 0;
};

}  // namespace tandem
