// How tandemctl ends, and what it says when it fails.

#ifndef TANDEM_SLOW_LANE_CTL_EXIT_CODE_H_
#define TANDEM_SLOW_LANE_CTL_EXIT_CODE_H_

#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "transport/base/printable.h"

namespace tandem::slow_lane {

enum ExitCode : int {
  kDone = 0,
  kFailed = 1,
  kWrongUsage = 2,
  kNotWell = 3,  // the run that was watched has failed; the daemon is not well
};

inline ExitCode Fail(const absl::Status& status, ExitCode code = kFailed) {
  // It may repeat what a command line, a daemon or a run says.
  const std::string message = PrintableLines(status.message());
  std::fprintf(stderr, "tandemctl: %s\n", message.c_str());
  return code;
}

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_CTL_EXIT_CODE_H_
