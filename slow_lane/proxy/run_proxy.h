// RunProxy: the main function of a run's proxy process.
//
// Data flow: the run's folder -> the worker, launched once or found again; its
// stdout.jsonl -> events -> the daemon, which acknowledges durable ones; its
// end -> `exit` and the daemon. The proxy has no state of its own. Undelivered
// events are in the file, and its position is in the daemon's table. So proxy
// and daemon may be killed at any time, without an effect on the worker.
//
// A remote proxy does the same on another machine, in a folder of that machine:
// it asks the daemon for the configuration, and waits for the daemon as long as
// the network is away. SIGTERM ends its worker. For a run on Ray, the proxy on
// the daemon's machine becomes the program that submits and watches the job.

#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tandem::slow_lane {

struct ProxyOptions {
  std::string run_id;
  absl::Duration heartbeat = absl::Seconds(60);
  absl::Duration kill_grace = absl::Seconds(5);
  std::string public_address;  // the daemon's, for other machines
  // The variables TANDEM_DAEMON and TANDEM_REMOTE_TOKEN have the daemon's
  // address and the run's token.
  bool is_remote = false;
};

// Runs in the daemon's data folder; a remote one in any folder of its user.
// Returns when the run's end is recorded; or when the worker has ended and
// there is no daemon (the next daemon starts another proxy; a remote one
// returns only after SIGTERM, kUnavailable); or with the reason why this
// process is not the run's proxy.
absl::Status RunProxy(const ProxyOptions& options);

}  // namespace tandem::slow_lane
