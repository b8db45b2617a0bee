// `tandemctl export`.

#ifndef TANDEM_SLOW_LANE_CTL_EXPORT_COMMAND_H_
#define TANDEM_SLOW_LANE_CTL_EXPORT_COMMAND_H_

#include "absl/status/status.h"
#include "slow_lane/ctl/connection.h"
#include "slow_lane/ctl/ctl_options.h"

namespace tandem::slow_lane {

// The events that are durable now. A file appears whole, or stays as it was.
absl::Status ExportEvents(Connection* daemon, const ExportCommand& command);

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_CTL_EXPORT_COMMAND_H_
