// The states of a run, and the allowed transitions.
//
// Data flow: an event of a run -> MayFollow -> the table of runs. The states
// are those of the protocol: gymgui.trainer.RunStatus.
// slow_lane/docs/slow_lane.md has their table: what each means, and the states
// that may follow.

#pragma once

#include "absl/strings/string_view.h"
#include "schema/protos/trainer.pb.h"

namespace tandem::slow_lane {

using RunState = gymgui::trainer::RunStatus;

// Whether that table allows the transition; no state follows itself.
// UNSPECIFIED and unknown numbers follow no state, and no state follows them.
bool MayFollow(RunState from, RunState to);

// True for TERM and FAULT, which no state follows.
bool IsFinal(RunState state);

// Returns the name for tandemctl and messages: INITIALIZED, HANDSHAKE, READY,
// EXECUTING, PAUSED, FAULTED, TERMINATED; UNSPECIFIED for any other number.
absl::string_view NameOf(RunState state);

}  // namespace tandem::slow_lane
