// RunConfig: what a run is, from the config_json that a client submits.
//
// Data flow: JSON (MOSAIC's TrainRunConfig) -> ParseRunConfig -> RunConfig ->
// the launch of its worker. The canonical text (sorted keys, defaults filled
// in) is what is stored, and what the digest is of.
//
//   absl::StatusOr<RunConfig> config =
//       ParseSubmittedConfig(request.config_json());
//   if (!config.ok()) return config.status();
//   config->gpus_requested;  // 0 to 8
//   config->digest;          // of config->canonical_json
//
// Keys of metadata that mean something here; whatever else is in it is kept.
//
//   metadata.tandem.working_directory  folder that the worker starts in, an
//                                      absolute path; default: that in which
//                                      the daemon was started
//   metadata.tandem.step_stride        1 or more: of the printed steps only
//                                      each step_stride-th is kept, beginning
//                                      with the first; default 1
//   metadata.worker.worker_id          the name that its events carry

#ifndef TANDEM_SLOW_LANE_RUNS_RUN_CONFIG_H_
#define TANDEM_SLOW_LANE_RUNS_RUN_CONFIG_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem::slow_lane {

// The members by which the daemon acts; all others are checked, and are in
// canonical_json.
struct RunConfig {
  std::string run_name;     // 1 to 120 characters
  std::string entry_point;  // a program, by path or by the worker's PATH
  std::vector<std::string> arguments;              // without the program
  std::map<std::string, std::string> environment;  // on top of the daemon's
  uint32_t gpus_requested = 0;
  bool gpus_mandatory = false;
  bool persist_logs = true;
  std::optional<uint64_t> max_duration_secs;
  std::optional<uint64_t> max_steps;
  std::optional<std::string> working_directory;
  uint64_t step_stride = 1;
  std::optional<std::string> worker_id;

  std::string canonical_json;  // parses to the same config, byte for byte
  std::string digest;          // its SHA-256, 64 hexadecimal digits
};

// kInvalidArgument with every problem found (20 at most are written out): JSON
// path, what was expected, what was found. Allocates; no system call.
absl::StatusOr<RunConfig> ParseRunConfig(absl::string_view json);

// Of what is submitted, as given and canonical. Each run's is kept in memory;
// exec takes far less.
inline constexpr size_t kMaxConfigBytes = size_t{4} << 20;

// The same, of what comes from outside: kInvalidArgument for what is too large.
absl::StatusOr<RunConfig> ParseSubmittedConfig(absl::string_view json);

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_RUNS_RUN_CONFIG_H_
