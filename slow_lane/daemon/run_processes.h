// A run's processes as the daemon starts and ends them.
//
// Data flow: LiveRun -> LaunchPlan -> the run's folder -> SpawnProxy -> the
// proxy launches the worker by it; later EndRunProcesses.
//
//   folder.WriteLaunchPlan(MakeLaunchPlan(run, folder, start_dir, address));
//   absl::StatusOr<ProcessIdentity> proxy = SpawnProxy(...);

#ifndef TANDEM_SLOW_LANE_DAEMON_RUN_PROCESSES_H_
#define TANDEM_SLOW_LANE_DAEMON_RUN_PROCESSES_H_

#include <sys/resource.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "slow_lane/daemon/live_run.h"
#include "slow_lane/runs/process_identity.h"
#include "slow_lane/runs/run_folder.h"

namespace tandem::slow_lane {

// 128 random bits in hexadecimal: of runs and of sessions.
std::string MakeToken();

// The daemon's environment, the configuration's on top, and
//   TANDEM_RUN_ID, TANDEM_RUN_DIR   the run and its folder
//   TANDEM_DAEMON                   `address`, where clients reach the daemon
//   TRAINER_WORKER_CONFIG_PATH      config.json, for MOSAIC's workers
//   CUDA_VISIBLE_DEVICES            the run's GPU slots, empty for none
//   PYTHONUNBUFFERED=1              a killed worker's last lines are not lost;
//                                   unless the configuration says otherwise
LaunchPlan MakeLaunchPlan(const LiveRun& run, const RunFolder& folder,
                          const std::string& start_dir,
                          const std::string& address);

// Raises this process's limit of open descriptors, of which each run takes two,
// as far as it may. Returns what it was.
rlim_t RaiseDescriptorLimit();

// Starts this very program as the run's proxy, in a session of its own; its
// output goes to the folder's proxy.log. It, and so the worker, may open
// `descriptors`: some programs cannot handle more than they expect.
absl::StatusOr<ProcessIdentity> SpawnProxy(const RunFolder& folder,
                                           const std::string& run_id,
                                           absl::Duration heartbeat,
                                           absl::Duration kill_grace,
                                           rlim_t descriptors);

// All processes of the run but its proxy.
TreeQuery QueryOf(const LiveRun& run);

// Ends these; a worker that was not launched yet never will be. Blocks. Empty,
// or what is left and why.
std::string EndRunProcesses(const RunFolder& folder, TreeQuery query,
                            double grace_secs);

// Whether the worker is gone; ends what it has left behind. pid 0: the worker
// is unknown, and all of the run's processes have to be gone. Blocks.
bool EndOrphans(const RunFolder& folder, const ProcessIdentity& worker,
                const TreeQuery& query, double grace_secs);

// Since the process started, suspended times included; changes of the clock
// don't matter. 0 for one of another boot: it died with its machine.
double SecondsSinceStart(const ProcessIdentity& process);

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_DAEMON_RUN_PROCESSES_H_
