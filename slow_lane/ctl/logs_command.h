// `tandemctl logs`.

#ifndef TANDEM_SLOW_LANE_CTL_LOGS_COMMAND_H_
#define TANDEM_SLOW_LANE_CTL_LOGS_COMMAND_H_

#include "absl/status/status.h"
#include "slow_lane/ctl/connection.h"
#include "slow_lane/ctl/ctl_options.h"

namespace tandem::slow_lane {

// Writes to standard output; with `follow` until the run ends, whether or not
// the daemon is there all the time.
absl::Status ShowLogs(Connection* daemon, const LogsCommand& command);

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_CTL_LOGS_COMMAND_H_
