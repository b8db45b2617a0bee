// RunDaemon: the trainer daemon, from its lock to its last answer.
//
// Data flow: options -> the data folder's lock -> store, hub, supervisor ->
// gRPC on a TCP address and on Unix sockets -> SIGINT or SIGTERM -> stop.
//
//   return RunDaemon({.data_dir = "data", .listen = "127.0.0.1:50055"});

#ifndef TANDEM_SLOW_LANE_DAEMON_DAEMON_H_
#define TANDEM_SLOW_LANE_DAEMON_DAEMON_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tandem::slow_lane {

struct DaemonOptions {
  std::string data_dir;  // made if it isn't there
  std::string listen;    // HOST:PORT, port 0 for a free one; "none"
  std::string socket;    // one more Unix socket; empty: daemon.sock alone
  // Users besides the daemon's own, names and uids between commas.
  std::string allow_users;
  // For TCP clients whose user the kernel does not name; empty: refused.
  std::string token_file;
  absl::Duration heartbeat = absl::Seconds(60);
  absl::Duration timeout = absl::Seconds(300);
  absl::Duration kill_grace = absl::Seconds(5);
  std::optional<int32_t> gpu_slots;  // default: the NVIDIA GPUs of /dev
  std::optional<uint64_t> keep_runs;
  bool full_sync = true;
};

// Serves until SIGINT or SIGTERM; call it in main, before any thread is made.
// Prints one line to stdout once it serves. Runs go on when it stops. Changes
// the working directory to the data folder. A daemon that cannot serve removes
// the folder that it made. kAlreadyExists: another daemon has the folder;
// kUnavailable: the address or socket is taken.
absl::Status RunDaemon(const DaemonOptions& options);

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_DAEMON_DAEMON_H_
