// RunProxy: the main function of a run's proxy process.
//
// Data flow: the run's folder -> the worker, launched once or found again; its
// stdout.jsonl -> events -> the daemon, which acknowledges durable ones; its
// end -> `exit` and the daemon. The proxy has no state of its own. Undelivered
// events are in the file, and its position is in the daemon's table. So proxy
// and daemon may be killed at any time, without an effect on the worker.
//
//   return RunProxy({.run_id = "01ARZ3NDEKTSV4RRFFQ69G5FAV"});  // in data_dir

#ifndef TANDEM_SLOW_LANE_PROXY_RUN_PROXY_H_
#define TANDEM_SLOW_LANE_PROXY_RUN_PROXY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tandem::slow_lane {

struct ProxyOptions {
  std::string run_id;
  absl::Duration heartbeat = absl::Seconds(60);
  absl::Duration kill_grace = absl::Seconds(5);
};

// Runs in the daemon's data folder. Returns when the run's end is recorded; or
// when the worker has ended and there is no daemon (the next daemon starts
// another proxy); or with the reason why this process is not the run's proxy.
absl::Status RunProxy(const ProxyOptions& options);

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_PROXY_RUN_PROXY_H_
