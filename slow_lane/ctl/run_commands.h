// The commands that ask the daemon once: submit, list, cancel, pause, resume,
// delete, health. Each prints what it found or did, and says how to end.
//
//   return RunList(&daemon, std::get<ListCommand>(options.command));

#ifndef TANDEM_SLOW_LANE_CTL_RUN_COMMANDS_H_
#define TANDEM_SLOW_LANE_CTL_RUN_COMMANDS_H_

#include <string>

#include "absl/status/statusor.h"
#include "slow_lane/ctl/connection.h"
#include "slow_lane/ctl/ctl_options.h"
#include "slow_lane/ctl/exit_code.h"

namespace tandem::slow_lane {

// Prints nothing: the new run's run_id.
absl::StatusOr<std::string> Submit(Connection* daemon,
                                   const SubmitCommand& command);

ExitCode RunList(Connection* daemon, const ListCommand& command);
ExitCode RunRuns(Connection* daemon, const RunsCommand& command);
ExitCode RunHealth(Connection* daemon);

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_CTL_RUN_COMMANDS_H_
