// The table of runs, and that of their changes of state.
//
// Data flow: the registry's RunRow -> tables runs and run_updates -> the
// registry at its next start, and WatchRuns(since_seq).
// Ownership: plain functions on the caller's connection. Those that write
// belong in a change posted to the store; those that read may use any
// connection.
//
//   store->Post([&row](Database& database) {
//     row.status = gymgui::trainer::RUN_STATUS_TERM;
//     return UpdateRun(database, &row);
//   }, done);

#ifndef TANDEM_SLOW_LANE_STORE_RUN_TABLE_H_
#define TANDEM_SLOW_LANE_STORE_RUN_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schema/protos/slow_lane.pb.h"
#include "schema/protos/trainer.pb.h"
#include "slow_lane/store/database.h"

namespace tandem::slow_lane {

// A run as it is kept. Times are nanoseconds since 1970.
struct RunRow {
  // Never changed after InsertRun.
  std::string run_id;
  std::string run_name;
  std::string config_json;
  std::string digest;  // of the configuration
  std::string token;   // found in its processes' environment
  int64_t created_at_ns = 0;

  // Its state: UpdateRun.
  gymgui::trainer::RunStatus status = gymgui::trainer::RUN_STATUS_INIT;
  std::optional<std::string> failure_reason;
  int64_t updated_at_ns = 0;
  // Among the changes of all runs; grows, and is never reused. Set by InsertRun
  // and UpdateRun.
  uint64_t update_seq = 0;

  // Bookkeeping: UpdateRun or SaveRun.
  bool cancel_requested = false;
  uint32_t proxy_starts = 0;
  std::vector<int32_t> gpu_slots;  // its own, until it has ended
  v1::ProcessIdentity worker;      // pid 0: none yet
  int64_t last_beat_at_ns = 0;     // 0: none yet
};

// The run's number, by which the tables of events name it; kNotFound.
absl::StatusOr<int64_t> FindRun(Database& database, const std::string& run_id);

// Adds the run and its first state; sets run->update_seq. kAlreadyExists: the
// run_id is taken.
absl::Status InsertRun(Database& database, RunRow* run);

// Writes state and bookkeeping, and a change of state that watchers get; sets
// run->update_seq. kNotFound: there is no such run.
absl::Status UpdateRun(Database& database, RunRow* run);

// Writes the bookkeeping only, which no watcher gets. kNotFound as above.
absl::Status SaveRun(Database& database, const RunRow& run);

// All runs, in the order of their making.
absl::StatusOr<std::vector<RunRow>> LoadRuns(Database& database);

// Changes of state with update_seq > since, in order, at most `limit`. Of each
// row run_id, digest, created_at_ns and the state as of the change.
absl::StatusOr<std::vector<RunRow>> ReadUpdates(Database& database,
                                                uint64_t since, size_t limit);

// Takes the run out of every table that has it by its name, and leaves its
// events to RemoveLeftoverRows; kNotFound. EventStore::DeleteRun calls it.
absl::Status DetachRun(Database& database, const std::string& run_id);

// Removes up to `limit` rows of detached runs; how many. 0: none are left.
absl::StatusOr<size_t> RemoveLeftoverRows(Database& database, size_t limit);

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_STORE_RUN_TABLE_H_
