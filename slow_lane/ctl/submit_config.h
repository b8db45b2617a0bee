// The TrainRunConfig of `tandemctl submit`.
//
// Data flow: SubmitCommand, the caller's folder and PATH -> config_json; or a
// file that is it, checked.
//
//   absl::StatusOr<std::string> program = FindProgram(name, getenv("PATH"));
//   std::string json = SubmitConfigJson(submit, *program, folder);

#ifndef TANDEM_SLOW_LANE_CTL_SUBMIT_CONFIG_H_
#define TANDEM_SLOW_LANE_CTL_SUBMIT_CONFIG_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "slow_lane/ctl/ctl_options.h"

namespace tandem::slow_lane {

// `name` itself, if it has a slash in it, else the first file of that name in
// `path` that this user may execute, as an absolute path: the daemon's PATH may
// be another one, and a virtual environment's python is not the system's.
// kNotFound: there is none.
absl::StatusOr<std::string> FindProgram(const std::string& name,
                                        absl::string_view path);

// kInvalidArgument: `text`, of the config `file` ("-": standard input), is no
// UTF-8; the message says from where on. What is none cannot be sent: gRPC
// would name neither the file nor the place.
absl::Status CheckUtf8(absl::string_view text, absl::string_view file);

// `submit` has no config_file; `program` is its first word, found. All GPUs
// asked for are mandatory. What of `program` and `folder` is no UTF-8 becomes
// U+FFFD.
std::string SubmitConfigJson(const SubmitCommand& submit,
                             const std::string& program,
                             const std::string& folder);

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_CTL_SUBMIT_CONFIG_H_
