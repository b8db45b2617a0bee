// The texts of --help, as string constants: of tandemctl, and of each command.

#ifndef TANDEM_SLOW_LANE_CTL_CTL_HELP_H_
#define TANDEM_SLOW_LANE_CTL_CTL_HELP_H_

namespace tandem::slow_lane {

extern const char kCtlHelp[];
extern const char kSubmitHelp[];
extern const char kListHelp[];
extern const char kWatchHelp[];
extern const char kCancelHelp[];
extern const char kPauseHelp[];
extern const char kResumeHelp[];
extern const char kDeleteHelp[];
extern const char kLogsHelp[];
extern const char kExportHelp[];
extern const char kHealthHelp[];

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_CTL_CTL_HELP_H_
