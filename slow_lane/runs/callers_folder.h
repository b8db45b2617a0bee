// EnterCallersFolder: relative paths are the caller's, also under `bazel run`.
//
//   if (absl::Status s = EnterCallersFolder(); !s.ok()) return s;

#ifndef TANDEM_SLOW_LANE_RUNS_CALLERS_FOLDER_H_
#define TANDEM_SLOW_LANE_RUNS_CALLERS_FOLDER_H_

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "transport/base/error.h"

namespace tandem::slow_lane {

// `bazel run` starts a program among its own files, and says in a variable
// where it was called. Programs that such a program starts inherit the
// variable, but not that place: for them, and for all others, nothing is done.
inline absl::Status EnterCallersFolder() {
  const char* const folder = std::getenv("BUILD_WORKING_DIRECTORY");
  if (folder == nullptr) return absl::OkStatus();
  std::error_code error;
  const std::string here = std::filesystem::current_path(error);
  if (error || !absl::StrContains(here, ".runfiles/")) return absl::OkStatus();
  if (chdir(folder) != 0) return MakeSystemError("chdir", folder, errno);
  return absl::OkStatus();
}

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_RUNS_CALLERS_FOLDER_H_
