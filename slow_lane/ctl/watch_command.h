// `tandemctl watch`.
//
//   BlockWatchSignals();  // first of all
//   return RunWatch(&daemon, command);

#ifndef TANDEM_SLOW_LANE_CTL_WATCH_COMMAND_H_
#define TANDEM_SLOW_LANE_CTL_WATCH_COMMAND_H_

#include "slow_lane/ctl/connection.h"
#include "slow_lane/ctl/ctl_options.h"
#include "slow_lane/ctl/exit_code.h"

namespace tandem::slow_lane {

// Before any other thread is there: RunWatch takes them when it can.
void BlockWatchSignals();

// Looks each second, until Ctrl-C, until nobody reads it, or until the one run
// ends. A daemon that goes away is waited for; one that never was there, also
// not for a submission just now, is an error. So is a run that the daemon
// forgets before its end was seen: kFailed, for nobody knows whether the run
// has failed.
ExitCode RunWatch(Connection* daemon, const WatchCommand& command);

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_CTL_WATCH_COMMAND_H_
