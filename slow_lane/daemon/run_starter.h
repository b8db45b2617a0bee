// RunStarter: starts runs in the order of their submission, as GPUs become
// free, and starts their proxies again when these end.
//
// Data flow: runs that are not dispatched -> GPU slots -> a folder with
// configuration and launch plan -> the table -> SpawnProxy -> a pidfd -> ... ->
// the next proxy, after a growing pause. SIGCHLD -> the folder's exit status,
// of a worker whose proxy is dead.
// Ownership: the supervisor's; its thread (EventLoop) alone calls.
//
//   RunStarter starter(options, &loop, &runs);
//   starter.Open("127.0.0.1:50055");
//   starter.Dispatch();       // after each change, and each second
//   starter.StartProxy(run);  // each second: it may have to wait
//   starter.WatchProxy(run, identity);

#ifndef TANDEM_SLOW_LANE_DAEMON_RUN_STARTER_H_
#define TANDEM_SLOW_LANE_DAEMON_RUN_STARTER_H_

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "slow_lane/daemon/event_loop.h"
#include "slow_lane/daemon/live_run.h"
#include "slow_lane/runs/process_identity.h"
#include "slow_lane/runs/run_folder.h"
#include "transport/base/unique_fd.h"

namespace tandem::slow_lane {

// Which of the machine's GPUs are free.
// One thread's.
class GpuSlots {
 public:
  // Slots 0 to total - 1, all free.
  explicit GpuSlots(int32_t total) : total_(total) {
    for (int32_t slot = 0; slot < total; ++slot) free_.insert(slot);
  }

  int32_t total() const { return total_; }

  // The lowest `count` free ones. Where there are fewer: none yet, if they are
  // mandatory; else as many as there are.
  std::optional<std::vector<int32_t>> Take(uint32_t count, bool mandatory) {
    if (mandatory && free_.size() < count) return std::nullopt;
    const auto end = std::next(
        free_.begin(),
        static_cast<std::ptrdiff_t>(std::min<size_t>(count, free_.size())));
    const std::vector<int32_t> taken(free_.begin(), end);
    free_.erase(free_.begin(), end);
    return taken;
  }

  // Taken by a run of an earlier daemon.
  void Mark(const std::vector<int32_t>& slots) {
    for (const int32_t slot : slots) free_.erase(slot);
  }

  // Those beyond the total (an earlier daemon had more) are forgotten.
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
  // All outlive it. Raises this process's limit of open descriptors.
  RunStarter(const RunOptions& options, EventLoop* loop, LiveRuns* runs);

  // Begins to take the exit statuses of children. The caller has blocked
  // SIGCHLD. From any thread.
  absl::Status WatchChildren();

  // Before it nothing is dispatched. `address`: the daemon's, for
  // TANDEM_DAEMON.
  void Open(const std::string& address) { address_ = address; }
  // Runs that request GPUs keep their order; others overtake them.
  void Dispatch();
  // Starts a proxy of a dispatched run, unless one lives or the pause after the
  // last one is not over.
  void StartProxy(LiveRun* run);
  // The run's proxy has connected, or was just started.
  void WatchProxy(LiveRun* run, const ProcessIdentity& proxy);
  // Before the run is deleted.
  void UnwatchProxy(LiveRun* run);

  GpuSlots& gpus() { return gpus_; }

 private:
  // False: it waits for them.
  bool TakeGpus(LiveRun* run, bool gpus_are_awaited);
  absl::Status Prepare(const LiveRun& run);
  void Spawn(const std::string& run_id);
  void ProxyEnded(const std::string& run_id);
  void ReapChildren();
  // For a worker whose proxy is dead: only its parent, this process, gets its
  // exit status.
  void RecordExit(const ProcessIdentity& ended, const WorkerExit& exit);

  const RunOptions& options_;
  EventLoop* const loop_;
  LiveRuns* const runs_;
  const rlim_t descriptors_;  // that workers may open
  GpuSlots gpus_;
  std::string address_;
  UniqueFd children_;  // a signalfd of SIGCHLD
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_DAEMON_RUN_STARTER_H_
