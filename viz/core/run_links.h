// RunOfProcess, WantsFrames: which frames belong to a run of the daemon.
//
// Data flow: the variables of an engine's process -> the run's id; the
// configuration in a run's folder -> whether viewers show its frames.
// Ownership: any thread. Both read files; neither blocks on anything else.

#pragma once

#include <sys/types.h>

#include <string>

namespace tandem {

// Returns TANDEM_RUN_ID of a process, printable; "": it has none, has ended, or
// belongs to another user.
std::string RunOfProcess(pid_t pid);

// Whether the run's configuration has metadata.tandem.fast_lane
// (slow_lane/docs/slow_lane.md); false without a configuration.
bool WantsFrames(const std::string& folder);

}  // namespace tandem
