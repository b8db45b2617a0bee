// What a proxy does for a run whose worker is on another machine:
// MakeRemoteFolder there, BecomeRayJob on the daemon's machine.
//
// Data flow: the daemon's answer, the variables TANDEM_DAEMON and
// TANDEM_REMOTE_TOKEN -> the run's folder on this machine. The run's folder on
// the daemon's machine -> tandem.telemetry.ray_job, in place of this process.

#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/os/unique_fd.h"
#include "slow_lane/proxy/daemon_link.h"
#include "slow_lane/runs/run_config.h"
#include "slow_lane/runs/run_folder.h"

namespace tandem::slow_lane {

// Returns the daemon's address, for a process on another machine: the variable
// TANDEM_DAEMON.
std::string DaemonOfRemote();

// Blocks SIGTERM for this thread and its later ones, and returns a signalfd for
// it. Call it before gRPC makes threads.
absl::StatusOr<UniqueFd> OpenStopSignal();

// Reads the folder's config.json.
absl::StatusOr<RunConfig> ReadRunConfig(const RunFolder& folder);

// Makes the run's folder as the daemon makes those of its own machine, unless
// an earlier proxy has made it. The worker starts in it by default. Blocks at
// most 20 s for the daemon. Errors: as DaemonLink::FetchConfig; the system's.
absl::Status MakeRemoteFolder(const std::string& run_id,
                              const RunFolder& folder, const DaemonLink& link);

// Executes the program that submits the run to Ray, watches its job, and ends
// it after a cancel, with the Python of the variable TANDEM_RAY_PYTHON. That
// program has the lock. Returns only an error.
absl::Status BecomeRayJob(const std::string& run_id,
                          const std::string& public_address,
                          const ProxyLock& lock);

}  // namespace tandem::slow_lane
