// The table of runs, and the table of their changes of state.
//
// Data flow: the registry's RunRow -> tables runs and run_updates -> the
// registry at its next start, and WatchRuns(since_seq).
// Ownership: plain functions on the caller's connection. Functions that write
// must be called in a change posted to the store; functions that read may use
// any connection.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schema/protos/slow_lane.pb.h"
#include "schema/protos/trainer.pb.h"
#include "slow_lane/store/database.h"
#include "slow_lane/store/stream.h"

namespace tandem::slow_lane {

// The stored data of a run. Times are nanoseconds since 1970.
struct RunRow {
  // Never changed after InsertRun.
  std::string run_id;
  std::string run_name;
  std::string config_json;
  std::string digest;  // of the configuration
  std::string token;   // marks its processes
  int64_t created_at_ns = 0;

  // Its state: UpdateRun.
  gymgui::trainer::RunStatus status = gymgui::trainer::RUN_STATUS_INIT;
  std::optional<std::string> failure_reason;
  int64_t updated_at_ns = 0;
  // The number among the changes of all runs; it grows, and is never reused.
  // InsertRun and UpdateRun set it.
  uint64_t update_seq = 0;

  // Bookkeeping: UpdateRun or SaveRun.
  bool cancel_requested = false;
  uint32_t proxy_starts = 0;
  std::vector<int32_t> gpu_slots;  // reserved until its end
  v1::ProcessIdentity worker;      // pid 0: none yet
  int64_t last_beat_at_ns = 0;     // 0: none yet
  // The current attempt.
  uint32_t attempt = 1;
  int64_t attempt_started_ns = 0;  // 0: not yet
  int64_t attempt_ended_ns = 0;    // 0: not yet
  std::string attempt_reason;      // of its end; empty: exit code 0
  Numbers attempt_begin;           // its rows have greater numbers
  uint64_t attempt_printed = 0;    // steps that were printed before it

  // Registered workers, by their names: SaveWorker.
  std::map<std::string, v1::RegisteredWorker> workers;
};

// Returns the run's number in the tables of events; kNotFound.
absl::StatusOr<int64_t> FindRun(Database& database, const std::string& run_id);

// Adds the run and its first state; sets run->update_seq. kAlreadyExists: the
// run_id exists.
absl::Status InsertRun(Database& database, RunRow* run);

// Writes state and bookkeeping, and a change of state for watchers; sets
// run->update_seq. kNotFound: the run is unknown.
absl::Status UpdateRun(Database& database, RunRow* run);

// Writes the bookkeeping only, without a change for watchers. kNotFound as
// above.
absl::Status SaveRun(Database& database, const RunRow& run);

// Writes a worker of the run, in place of an earlier one of that name.
// kNotFound as above.
absl::Status SaveWorker(Database& database, const std::string& run_id,
                        const v1::RegisteredWorker& worker);

// Returns the run's attempts, as far as they were started.
absl::StatusOr<std::vector<v1::Attempt>> ReadAttempts(
    Database& database, const std::string& run_id);

// Returns all runs, in the order of their creation.
absl::StatusOr<std::vector<RunRow>> LoadRuns(Database& database);

// Returns changes of state with update_seq > since, in order, at most `limit`.
// Each row has run_id, digest, created_at_ns and the state after the change.
absl::StatusOr<std::vector<RunRow>> ReadUpdates(Database& database,
                                                uint64_t since, size_t limit);

// Removes the run from every table that contains its name; kNotFound. Leaves
// its events to RemoveLeftoverRows. EventStore::DeleteRun calls it.
absl::Status DetachRun(Database& database, const std::string& run_id);

// Removes up to `limit` rows of detached runs, and returns their number. 0:
// none are left.
absl::StatusOr<size_t> RemoveLeftoverRows(Database& database, size_t limit);

}  // namespace tandem::slow_lane
