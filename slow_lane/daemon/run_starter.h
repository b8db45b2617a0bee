// RunStarter: starts runs by priority and age, when processors, memory and GPUs
// are free, and starts a new proxy after a proxy has ended.
//
// Data flow: runs that are not dispatched -> room, GPU slots -> a folder with
// configuration and launch plan -> the table -> SpawnProxy -> a pidfd -> ... ->
// the next proxy, after an increasing pause. SIGCHLD -> the exit status of a
// worker whose proxy is dead, into the folder.
// Ownership: the supervisor owns it; only its thread (EventLoop) calls it.

#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/os/unique_fd.h"
#include "program/grpc/event_loop.h"
#include "slow_lane/daemon/cpu_shares.h"
#include "slow_lane/daemon/live_run.h"
#include "slow_lane/daemon/machine_room.h"
#include "slow_lane/daemon/run_queue.h"
#include "slow_lane/runs/process_identity.h"
#include "slow_lane/runs/run_config.h"
#include "slow_lane/runs/run_folder.h"

namespace tandem::slow_lane {

// The free GPUs of the machine. Not thread-safe.
class GpuSlots {
 public:
  // Slots 0 to total - 1, all free.
  explicit GpuSlots(int32_t total) : total_(total) {
    for (int32_t slot = 0; slot < total; ++slot) free_.insert(slot);
  }

  int32_t total() const { return total_; }

  // Takes the lowest `count` free slots. If there are fewer: returns nullopt if
  // they are mandatory, else takes all free ones.
  std::optional<std::vector<int32_t>> Take(uint32_t count, bool mandatory) {
    if (mandatory && free_.size() < count) return std::nullopt;
    std::vector<int32_t> taken;
    while (taken.size() < count && !free_.empty()) {
      taken.push_back(free_.extract(free_.begin()).value());
    }
    return taken;
  }

  // Marks slots that a run of an earlier daemon has.
  void Mark(const std::vector<int32_t>& slots) {
    for (const int32_t slot : slots) free_.erase(slot);
  }

  // Frees slots. Ignores slots beyond the total, which an earlier daemon had.
  void Release(const std::vector<int32_t>& slots) {
    for (const int32_t slot : slots) {
      if (slot >= 0 && slot < total_) free_.insert(slot);
    }
  }

 private:
  const int32_t total_;
  std::set<int32_t> free_;
};

class RunStarter {
 public:
  // All arguments must outlive this object. Raises this process's limit of open
  // descriptors.
  RunStarter(const RunOptions& options, EventLoop* loop, LiveRuns* runs);

  // Begins to collect the exit statuses of children. The caller must have
  // blocked SIGCHLD. Any thread may call it.
  absl::Status WatchChildren();

  // Enables dispatches. `address`: the daemon's address, for TANDEM_DAEMON.
  void Open(const std::string& address) { address_ = address; }
  // Takes up a run of an earlier daemon.
  void TakeUp(LiveRun* run);
  // Adds a run to the queue: a new one, or the next attempt once it is durable.
  void Enqueue(LiveRun* run);
  // Dispatches runs that can start. The first run that waits for processors or
  // memory delays all later ones, so none of them can starve it. A run that
  // waits for GPUs delays only later runs that request GPUs.
  void Dispatch();
  // Sets `waiting_for` of the runs in the queue. Visits all of them.
  void NameWaits();
  // Returns what the run reserves while it is dispatched; nothing for a run on
  // Ray, and without a queue.
  MachineShare ShareOf(const RunConfig& config) const;
  // kInvalidArgument: the run needs more GPUs than there are; or more
  // processors or memory, with strict_resources.
  absl::Status CheckFits(const RunConfig& config) const;
  // Returns a text for people: that the run asks for more than the machine has;
  // empty: it does not.
  std::string AsksForMore(const RunConfig& config) const;
  // Frees the GPUs of an attempt, and its share of enforced processors.
  void Release(LiveRun* run);
  // The same at the end of the run, which reserves nothing from then on.
  void Forget(LiveRun* run);
  // Starts a proxy of a dispatched run, unless a proxy lives or the pause after
  // the last one has not ended.
  void StartProxy(LiveRun* run);
  // Call this when the run's proxy has connected, or was just started.
  void WatchProxy(LiveRun* run, const ProcessIdentity& proxy);
  // Call this before the run is deleted.
  void UnwatchProxy(LiveRun* run);

 private:
  // Dispatches a run, or returns what it waits for.
  RunQueue::Wait Start(LiveRun* run, MachineRoom* room);
  // Returns false if the run must wait for GPUs.
  bool TakeGpus(LiveRun* run);
  // kUnavailable: the last attempt's proxy has not exited yet.
  absl::Status Prepare(const LiveRun& run);
  void Spawn(const std::string& run_id);
  void ProxyEnded(const std::string& run_id);
  void ReapChildren();
  // Records the exit of a worker whose proxy is dead. Only this process, its
  // parent now, gets the exit status.
  void RecordExit(const ProcessIdentity& ended, const WorkerExit& exit);

  const RunOptions& options_;
  EventLoop* const loop_;
  LiveRuns* const runs_;
  const rlim_t descriptors_;  // the limit for workers
  GpuSlots gpus_;
  CpuShares cpus_;
  RunQueue queue_;
  // Runs that were dispatched, until their end or until they are in the queue
  // again.
  std::set<LiveRun*> holders_;
  std::string address_;
  UniqueFd children_;  // a signalfd of SIGCHLD
};

}  // namespace tandem::slow_lane
