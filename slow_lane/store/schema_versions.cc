#include "slow_lane/store/schema_versions.h"

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "transport/base/clock.h"

namespace tandem::slow_lane {
namespace {

// Columns are the fields of the messages; an empty field is NULL here. NaN is
// NULL as well.
constexpr char kVersion1[] = R"sql(
CREATE TABLE runs (
  run INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id TEXT NOT NULL UNIQUE,
  run_name TEXT NOT NULL,
  config_json TEXT NOT NULL,
  digest TEXT NOT NULL,
  token TEXT NOT NULL,
  status INTEGER NOT NULL,
  failure_reason TEXT,
  gpu_slots TEXT NOT NULL,
  created_at_ns INTEGER NOT NULL,
  updated_at_ns INTEGER NOT NULL,
  update_seq INTEGER NOT NULL,
  cancel_requested INTEGER NOT NULL,
  proxy_starts INTEGER NOT NULL,
  worker_pid INTEGER NOT NULL,
  worker_start_time INTEGER NOT NULL,
  worker_boot_id TEXT NOT NULL,
  last_beat_at_ns INTEGER NOT NULL
) STRICT;

CREATE TABLE run_updates (
  seq_id INTEGER PRIMARY KEY AUTOINCREMENT,
  run INTEGER NOT NULL,
  status INTEGER NOT NULL,
  failure_reason TEXT,
  gpu_slots TEXT NOT NULL,
  at_ns INTEGER NOT NULL
) STRICT;
CREATE INDEX run_updates_by_run ON run_updates (run);

CREATE TABLE detached_runs (
  run INTEGER PRIMARY KEY
) STRICT;

CREATE TABLE positions (
  run INTEGER PRIMARY KEY,
  byte_offset INTEGER NOT NULL,
  steps INTEGER NOT NULL,
  episodes INTEGER NOT NULL,
  lifecycle INTEGER NOT NULL,
  malformed INTEGER NOT NULL,
  text_lines INTEGER NOT NULL
) STRICT;

CREATE TABLE sources (
  run INTEGER NOT NULL,
  worker_id TEXT NOT NULL,
  steps INTEGER NOT NULL,
  episodes INTEGER NOT NULL,
  lifecycle INTEGER NOT NULL,
  malformed INTEGER NOT NULL,
  PRIMARY KEY (run, worker_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE step_rows (
  run INTEGER NOT NULL,
  seq_id INTEGER NOT NULL,
  source_number INTEGER NOT NULL,
  worker_id TEXT,
  episode_index INTEGER NOT NULL,
  step_index INTEGER NOT NULL,
  action_json TEXT,
  observation_json TEXT,
  reward REAL,
  terminated INTEGER NOT NULL,
  truncated INTEGER NOT NULL,
  timestamp_ns INTEGER,
  policy_label TEXT,
  backend TEXT,
  agent_id TEXT,
  render_hint_json TEXT,
  frame_ref TEXT,
  payload_version INTEGER NOT NULL,
  render_payload_json TEXT,
  episode_seed INTEGER NOT NULL,
  PRIMARY KEY (run, seq_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE episode_rows (
  run INTEGER NOT NULL,
  seq_id INTEGER NOT NULL,
  source_number INTEGER NOT NULL,
  worker_id TEXT,
  episode_index INTEGER NOT NULL,
  total_reward REAL,
  steps INTEGER NOT NULL,
  terminated INTEGER NOT NULL,
  truncated INTEGER NOT NULL,
  metadata_json TEXT,
  timestamp_ns INTEGER,
  agent_id TEXT,
  PRIMARY KEY (run, seq_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE lifecycle_rows (
  run INTEGER NOT NULL,
  seq_id INTEGER NOT NULL,
  source_number INTEGER NOT NULL,
  worker_id TEXT,
  event TEXT,
  payload_json TEXT,
  timestamp_ns INTEGER,
  PRIMARY KEY (run, seq_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE malformed_rows (
  run INTEGER NOT NULL,
  seq_id INTEGER NOT NULL,
  source_number INTEGER NOT NULL,
  worker_id TEXT,
  byte_offset INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  reason TEXT,
  head TEXT,
  PRIMARY KEY (run, seq_id)
) STRICT, WITHOUT ROWID;

-- CROSS JOIN: first the run, then its rows by their key. DuckDB reads the views,
-- too, and takes no ON behind it.
CREATE VIEW steps AS SELECT runs.run_id, seq_id, source_number, worker_id,
  episode_index, step_index, action_json, observation_json, reward, terminated,
  truncated, timestamp_ns, policy_label, backend, agent_id, render_hint_json,
  frame_ref, payload_version, render_payload_json, episode_seed
  FROM runs CROSS JOIN step_rows WHERE step_rows.run = runs.run;

CREATE VIEW episodes AS SELECT runs.run_id, seq_id, source_number, worker_id,
  episode_index, total_reward, steps, terminated, truncated, metadata_json,
  timestamp_ns, agent_id
  FROM runs CROSS JOIN episode_rows WHERE episode_rows.run = runs.run;

CREATE VIEW lifecycle AS SELECT runs.run_id, seq_id, source_number, worker_id,
  event, payload_json, timestamp_ns
  FROM runs CROSS JOIN lifecycle_rows WHERE lifecycle_rows.run = runs.run;

CREATE VIEW malformed AS SELECT runs.run_id, seq_id, source_number, worker_id,
  byte_offset, bytes, reason, head
  FROM runs CROSS JOIN malformed_rows WHERE malformed_rows.run = runs.run;
)sql";

// Tables of events become rowid tables, since an event may have 16 MiB: without
// rowids, SQLite compares a new key with whole rows, overflow pages included.
// An index over (run, seq_id) holds the keys alone. Long text comes last, so
// that a query for other columns reads no overflow page
// (docs/decisions/0031-event-tables-have-rowids.md). The views of version 1
// stay: with legacy_alter_table, RENAME does not look at them.
constexpr char kVersion2[] = R"sql(
PRAGMA legacy_alter_table = ON;

CREATE TABLE step_rows_2 (
  run INTEGER NOT NULL,
  seq_id INTEGER NOT NULL,
  source_number INTEGER NOT NULL,
  episode_index INTEGER NOT NULL,
  step_index INTEGER NOT NULL,
  reward REAL,
  terminated INTEGER NOT NULL,
  truncated INTEGER NOT NULL,
  timestamp_ns INTEGER,
  payload_version INTEGER NOT NULL,
  episode_seed INTEGER NOT NULL,
  worker_id TEXT,
  agent_id TEXT,
  policy_label TEXT,
  backend TEXT,
  frame_ref TEXT,
  action_json TEXT,
  observation_json TEXT,
  render_hint_json TEXT,
  render_payload_json TEXT,
  UNIQUE (run, seq_id)
) STRICT;
INSERT INTO step_rows_2 SELECT
  run, seq_id, source_number, episode_index, step_index, reward, terminated,
  truncated, timestamp_ns, payload_version, episode_seed, worker_id, agent_id,
  policy_label, backend, frame_ref, action_json, observation_json,
  render_hint_json, render_payload_json
  FROM step_rows ORDER BY run, seq_id;
DROP TABLE step_rows;
ALTER TABLE step_rows_2 RENAME TO step_rows;

CREATE TABLE episode_rows_2 (
  run INTEGER NOT NULL,
  seq_id INTEGER NOT NULL,
  source_number INTEGER NOT NULL,
  episode_index INTEGER NOT NULL,
  total_reward REAL,
  steps INTEGER NOT NULL,
  terminated INTEGER NOT NULL,
  truncated INTEGER NOT NULL,
  timestamp_ns INTEGER,
  worker_id TEXT,
  agent_id TEXT,
  metadata_json TEXT,
  UNIQUE (run, seq_id)
) STRICT;
INSERT INTO episode_rows_2 SELECT
  run, seq_id, source_number, episode_index, total_reward, steps, terminated,
  truncated, timestamp_ns, worker_id, agent_id, metadata_json
  FROM episode_rows ORDER BY run, seq_id;
DROP TABLE episode_rows;
ALTER TABLE episode_rows_2 RENAME TO episode_rows;

CREATE TABLE lifecycle_rows_2 (
  run INTEGER NOT NULL,
  seq_id INTEGER NOT NULL,
  source_number INTEGER NOT NULL,
  timestamp_ns INTEGER,
  worker_id TEXT,
  event TEXT,
  payload_json TEXT,
  UNIQUE (run, seq_id)
) STRICT;
INSERT INTO lifecycle_rows_2 SELECT
  run, seq_id, source_number, timestamp_ns, worker_id, event, payload_json
  FROM lifecycle_rows ORDER BY run, seq_id;
DROP TABLE lifecycle_rows;
ALTER TABLE lifecycle_rows_2 RENAME TO lifecycle_rows;

CREATE TABLE malformed_rows_2 (
  run INTEGER NOT NULL,
  seq_id INTEGER NOT NULL,
  source_number INTEGER NOT NULL,
  byte_offset INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  worker_id TEXT,
  reason TEXT,
  head TEXT,
  UNIQUE (run, seq_id)
) STRICT;
INSERT INTO malformed_rows_2 SELECT
  run, seq_id, source_number, byte_offset, bytes, worker_id, reason, head
  FROM malformed_rows ORDER BY run, seq_id;
DROP TABLE malformed_rows;
ALTER TABLE malformed_rows_2 RENAME TO malformed_rows;

PRAGMA legacy_alter_table = OFF;
)sql";

constexpr Migration kMigrations[] = {kVersion1, kVersion2};

// Refuses a file that some other program made.
absl::Status CheckOwner(Database& database) {
  absl::StatusOr<int64_t> id = database.ReadInt("PRAGMA application_id");
  if (!id.ok()) return id.status();
  if (*id == kApplicationId) return absl::OkStatus();
  absl::StatusOr<int64_t> tables =
      database.ReadInt("SELECT count(*) FROM sqlite_schema");
  if (!tables.ok()) return tables.status();
  if (*id == 0 && *tables == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "expected a database of Tandem's (application_id ", kApplicationId,
      ") or an empty one, found one with application_id ", *id, " and ",
      *tables,
      " tables, indices and views; name another file: ", database.path()));
}

// While it lives, a connection's statements call `watch` about ten times a
// second, and are interrupted once that returns an error.
class WatchedStatements {
 public:
  WatchedStatements(sqlite3* connection, MigrationWatch watch)
      : connection_(connection), watch_(watch) {
    constexpr int kInstructions = 100;  // a few rows, which may have 16 MiB
    sqlite3_progress_handler(connection, kInstructions, &Interrupt, this);
  }
  WatchedStatements(const WatchedStatements&) = delete;
  WatchedStatements& operator=(const WatchedStatements&) = delete;
  ~WatchedStatements() {
    sqlite3_progress_handler(connection_, 0, nullptr, nullptr);
  }

  // What the watch returned last.
  const absl::Status& status() const { return status_; }

 private:
  static int Interrupt(void* self) {
    return static_cast<WatchedStatements*>(self)->LookOnce() ? 0 : 1;
  }
  bool LookOnce() {
    const int64_t now = MonotonicNanos();
    if (status_.ok() && next_.PassedAt(now)) {
      next_ = Deadline::After(kLookSecs, now);
      status_ = watch_(sqlite3_last_insert_rowid(connection_));
    }
    return status_.ok();
  }

  static constexpr double kLookSecs = 0.1;

  sqlite3* const connection_;
  const MigrationWatch watch_;
  Deadline next_ = Deadline::Now();
  absl::Status status_;
};

// Without a watch if the file is new: then there are no rows to move.
absl::Status MigrateTo(Database& database, size_t version, Migration sql,
                       const MigrationWatch* watch) {
  std::optional<WatchedStatements> watched;
  if (watch != nullptr) watched.emplace(database.connection(), *watch);
  const absl::Status status = database.Execute(sql);
  if (watched.has_value() && !watched->status().ok()) return watched->status();
  if (!status.ok()) return status;
  // The removal of the old tables is not watched: once more, before the commit.
  if (watch != nullptr) {
    const absl::Status last =
        (*watch)(sqlite3_last_insert_rowid(database.connection()));
    if (!last.ok()) return last;
  }
  return database.Execute(
      absl::StrCat("PRAGMA user_version = ", version,
                   "; PRAGMA application_id = ", kApplicationId));
}

}  // namespace

absl::Span<const Migration> AllMigrations() { return kMigrations; }

absl::Status BringUpToDate(Database& database,
                           absl::Span<const Migration> migrations,
                           MigrationWatch watch) {
  bool is_new = false;
  while (true) {
    // Another store may do the same: each step looks again, under the lock.
    if (absl::Status status = database.Begin(); !status.ok()) return status;
    absl::Status status = CheckOwner(database);
    absl::StatusOr<int64_t> version = database.ReadInt("PRAGMA user_version");
    if (status.ok()) status = version.status();
    const auto newest = static_cast<int64_t>(migrations.size());
    if (status.ok() && (*version > newest || *version < 0)) {
      status = absl::FailedPreconditionError(absl::StrCat(
          "expected a database of schema version ", newest,
          " or older, found version ", *version,
          "; use the Tandem that wrote it, or a newer one, or another data "
          "folder: ",
          database.path()));
    }
    if (status.ok() && *version < newest) {
      is_new = is_new || *version == 0;
      status = MigrateTo(database, static_cast<size_t>(*version) + 1,
                         migrations[static_cast<size_t>(*version)],
                         is_new ? nullptr : &watch);
      if (status.ok()) status = database.Commit();
      if (status.ok()) continue;
    }
    database.Rollback();
    return status;
  }
}

}  // namespace tandem::slow_lane
