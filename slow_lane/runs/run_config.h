// RunConfig: the configuration of a run, from the config_json of a client.
//
// Data flow: JSON (MOSAIC's TrainRunConfig) -> ParseRunConfig -> RunConfig ->
// the launch of its worker. The canonical text (sorted keys, with defaults) is
// stored; the digest is computed from it.
//
// slow_lane/docs/slow_lane.md describes each key.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem::slow_lane {

// The values that the daemon uses. All others are checked, and are in
// canonical_json.
struct RunConfig {
  std::string run_name;     // 1 to 120 characters
  std::string entry_point;  // a program, by path or by the worker's PATH
  std::vector<std::string> arguments;              // without the program
  std::map<std::string, std::string> environment;  // on top of the daemon's
  uint64_t cpus = 1;
  uint64_t memory_mb = 256;
  bool enforce_resources = false;  // whether the two are limits
  bool reserve_memory = false;     // whether memory_mb is reserved, as cpus is
  int32_t priority = 0;            // in the queue; higher ones start first
  uint32_t gpus_requested = 0;
  bool gpus_mandatory = false;
  bool persist_logs = true;
  bool keep_checkpoints = true;  // for the worker, as the next
  std::optional<std::string> output_prefix;
  std::optional<uint64_t> max_duration_secs;
  std::optional<uint64_t> max_steps;
  std::optional<std::string> working_directory;
  uint64_t step_stride = 1;
  // The longest silence of the worker; 0: no limit. Not set: the daemon's, for
  // a worker that sends heartbeats.
  std::optional<uint64_t> fault_after_secs;
  std::map<std::string, std::string> fast_lane;  // variables of the worker
  std::optional<std::string> worker_id;
  // For people: of a sweep, and in comparisons. Texts, or JSON of other values.
  std::map<std::string, std::string> parameters;
  std::string sweep;
  // Restarts of the worker, at most restart_max, after these causes of its end:
  // RunOutcome::cause.
  uint64_t restart_max = 0;
  std::set<std::string> restart_on;
  bool on_ray = false;  // the worker is a job of Ray, by metadata.tandem.ray

  std::string canonical_json;  // parses to the same config, byte for byte
  std::string digest;          // its SHA-256, 64 hexadecimal digits
};

// kInvalidArgument with every problem found, at most 20 in words: JSON path,
// the expected and the found value. Allocates; makes no system call.
absl::StatusOr<RunConfig> ParseRunConfig(absl::string_view json);

// The maximum of a submitted configuration, in the given and the canonical
// form. Each run's is kept in memory; exec accepts far less.
inline constexpr size_t kMaxConfigBytes = size_t{4} << 20;

// The same, for untrusted input: kInvalidArgument if it is too large.
absl::StatusOr<RunConfig> ParseSubmittedConfig(absl::string_view json);

}  // namespace tandem::slow_lane
