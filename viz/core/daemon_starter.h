// StartDaemon: starts the slow lane's daemon for a front end. DaemonOptions:
// what the front end's flags say about it.
//
// Data flow: flags -> the program tandem-daemon -> a process of its own
// session, whose messages are in the file DATA_DIR.log -> it answers at
// `target`.
// Ownership: the daemon and its runs go on when this program ends. A lock in
// its data folder excludes a second daemon.

#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tandem {

// Starts a daemon that listens at `target`, HOST:PORT or unix:PATH, and waits
// until it answers; no effect if one answers already. Blocks for at most 10 s.
// Errors: FindProgram's; kNotReady: it has exited, or does not answer.
absl::Status StartDaemon(const std::string& data_dir,
                         const std::string& target);

// What a front end's flags say about its daemon.
struct DaemonOptions {
  std::string target = {};        // "": no daemon
  std::optional<bool> flag = {};  // --daemon, --nodaemon; or neither
  bool by_default = false;        // whether it starts one without a flag
  std::string data_dir = {};      // of a started daemon; "": DefaultDataDir()
};

// Reads --daemon_target ("auto": DaemonTarget), --daemon and --data_dir, which
// this library defines for all front ends. kInvalidArgument: --daemon without a
// target.
absl::StatusOr<DaemonOptions> DaemonOptionsOfFlags(bool by_default);

// Starts a daemon if the flag requests it; without the flag, if that is the
// default and the target is an address of this machine. Errors with the flag:
// StartDaemon's. Without it, a failure is a line on stderr by `program`, and
// this returns OK: the front end works without a daemon.
absl::Status StartWantedDaemon(const std::string& program,
                               const DaemonOptions& options);

// Returns the folder in which all front ends of the user start their daemon:
// tandem/data in $XDG_STATE_HOME, or else in ~/.local/state.
std::string DefaultDataDir();

}  // namespace tandem
