// StartDaemon: starts the slow lane's daemon for a front end.
//
// Data flow: the program tandem-daemon -> a process of its own session, whose
// messages appear on this program's standard error -> it answers at `target`.
// Ownership: the daemon and its runs go on when this program ends. Its own
// folder has the lock that keeps it alone.
//
//   const absl::Status started = StartDaemon("tandem-data", DaemonTarget());

#ifndef TANDEM_VIZ_CORE_DAEMON_STARTER_H_
#define TANDEM_VIZ_CORE_DAEMON_STARTER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tandem {

// Returns the path of tandem-daemon: beside this program, or else in PATH, or
// else in the folder of a Bazel run. kUnsupported: it is nowhere.
absl::StatusOr<std::string> FindDaemonProgram();

// Starts a daemon that listens at `target`, HOST:PORT or unix:PATH, and waits
// until it answers; no effect if one answers already. Blocks for at most 10 s.
// Errors: FindDaemonProgram's; kNotReady: it has exited, or does not answer.
absl::Status StartDaemon(const std::string& data_dir,
                         const std::string& target);

}  // namespace tandem

#endif  // TANDEM_VIZ_CORE_DAEMON_STARTER_H_
