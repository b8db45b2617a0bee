// MakeLaunchPlan: what a run's configuration becomes on the machine of its
// worker.
//
// Data flow: RunConfig, this process's environment -> LaunchPlan -> launch.json
// -> LaunchWorker.
// Ownership: the daemon, or the proxy on another machine, calls it.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "slow_lane/runs/run_config.h"
#include "slow_lane/runs/run_folder.h"

namespace tandem::slow_lane {

// Holds the run's token for a proxy on another machine.
inline constexpr char kRemoteTokenVariable[] = "TANDEM_REMOTE_TOKEN";

// The values that are not the configuration's.
struct LaunchPlace {
  std::string run_id;
  std::string daemon;  // its address, for the worker
  std::string token;
  std::string working_directory;    // unless the configuration has one
  std::optional<std::string> gpus;  // CUDA_VISIBLE_DEVICES; nullopt: unchanged
  uint32_t attempt = 1;
};

// Returns this process's environment, "NAME=value", without the tokens of runs.
std::vector<std::string> OwnEnvironment();

// The worker's environment: this process's, the configuration's on top, and the
// variables of slow_lane/docs/slow_lane.md, except the token, which the launch
// adds.
LaunchPlan MakeLaunchPlan(const RunConfig& config, const RunFolder& folder,
                          const LaunchPlace& place);

}  // namespace tandem::slow_lane
