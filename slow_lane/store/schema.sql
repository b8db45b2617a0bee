-- The tables. Columns of events are the fields of their messages; an empty field is NULL. NaN is NULL as well.

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
  last_beat_at_ns INTEGER NOT NULL,
  dropped_scalars INTEGER NOT NULL DEFAULT 0,
  attempt INTEGER NOT NULL DEFAULT 1
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

-- The workers that have registered, by RegisterWorker, and their capabilities.
CREATE TABLE workers (
  run INTEGER NOT NULL,
  worker_id TEXT NOT NULL,
  worker_kind TEXT NOT NULL,
  proto_version TEXT NOT NULL,
  schema_id TEXT NOT NULL,
  schema_version INTEGER NOT NULL,
  supports_pause INTEGER NOT NULL,
  supports_checkpoint INTEGER NOT NULL,
  PRIMARY KEY (run, worker_id)
) STRICT, WITHOUT ROWID;

-- The attempts of each run that was started. Its rows of an attempt have greater numbers than those given here.
CREATE TABLE attempt_rows (
  run INTEGER NOT NULL,
  number INTEGER NOT NULL,
  started_ns INTEGER NOT NULL,
  ended_ns INTEGER NOT NULL,
  reason TEXT NOT NULL,
  steps INTEGER NOT NULL,
  episodes INTEGER NOT NULL,
  lifecycle INTEGER NOT NULL,
  malformed INTEGER NOT NULL,
  scalars INTEGER NOT NULL,
  steps_printed INTEGER NOT NULL,
  PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE positions (
  run INTEGER PRIMARY KEY,
  byte_offset INTEGER NOT NULL,
  steps INTEGER NOT NULL,
  episodes INTEGER NOT NULL,
  lifecycle INTEGER NOT NULL,
  malformed INTEGER NOT NULL,
  text_lines INTEGER NOT NULL,
  scalars INTEGER NOT NULL
) STRICT;

CREATE TABLE sources (
  run INTEGER NOT NULL,
  worker_id TEXT NOT NULL,
  steps INTEGER NOT NULL,
  episodes INTEGER NOT NULL,
  lifecycle INTEGER NOT NULL,
  malformed INTEGER NOT NULL,
  scalars INTEGER NOT NULL,
  PRIMARY KEY (run, worker_id)
) STRICT, WITHOUT ROWID;

-- Tables of events have rowids, since an event may have 16 MiB (docs/decisions/0031-event-tables-have-rowids.md). Long
-- text comes last, so that a query for other columns reads no overflow page.

CREATE TABLE step_rows (
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

CREATE TABLE episode_rows (
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

CREATE TABLE lifecycle_rows (
  run INTEGER NOT NULL,
  seq_id INTEGER NOT NULL,
  source_number INTEGER NOT NULL,
  timestamp_ns INTEGER,
  worker_id TEXT,
  event TEXT,
  payload_json TEXT,
  UNIQUE (run, seq_id)
) STRICT;

CREATE TABLE malformed_rows (
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

CREATE TABLE scalar_names (
  run INTEGER NOT NULL,
  name_id INTEGER NOT NULL,
  name TEXT NOT NULL,
  PRIMARY KEY (run, name_id)
) STRICT, WITHOUT ROWID;

-- A row for each number. Without rowids a run's rows lie together, so that a curve reads only its run's pages.
-- Infinities are REAL.
CREATE TABLE scalar_rows (
  run INTEGER NOT NULL,
  seq_id INTEGER NOT NULL,
  name_id INTEGER NOT NULL,
  step INTEGER NOT NULL,
  value REAL,
  timestamp_ns INTEGER,
  worker_id TEXT,
  PRIMARY KEY (run, seq_id, name_id)
) STRICT, WITHOUT ROWID;

-- CROSS JOIN: first the run, then its rows by their key. DuckDB reads the views, too, and takes no ON behind it.
CREATE VIEW steps AS SELECT runs.run_id, seq_id, source_number, worker_id, episode_index, step_index, action_json,
  observation_json, reward, terminated, truncated, timestamp_ns, policy_label, backend, agent_id, render_hint_json,
  frame_ref, payload_version, render_payload_json, episode_seed
  FROM runs CROSS JOIN step_rows WHERE step_rows.run = runs.run;

CREATE VIEW episodes AS SELECT runs.run_id, seq_id, source_number, worker_id, episode_index, total_reward, steps,
  terminated, truncated, metadata_json, timestamp_ns, agent_id
  FROM runs CROSS JOIN episode_rows WHERE episode_rows.run = runs.run;

CREATE VIEW lifecycle AS SELECT runs.run_id, seq_id, source_number, worker_id, event, payload_json, timestamp_ns
  FROM runs CROSS JOIN lifecycle_rows WHERE lifecycle_rows.run = runs.run;

CREATE VIEW malformed AS SELECT runs.run_id, seq_id, source_number, worker_id, byte_offset, bytes, reason, head
  FROM runs CROSS JOIN malformed_rows WHERE malformed_rows.run = runs.run;

CREATE VIEW scalars AS SELECT runs.run_id, seq_id, worker_id, step, name, value, timestamp_ns
  FROM runs CROSS JOIN scalar_rows CROSS JOIN scalar_names WHERE scalar_rows.run = runs.run
  AND scalar_names.run = runs.run AND scalar_names.name_id = scalar_rows.name_id;

CREATE VIEW attempts AS SELECT runs.run_id, number, started_ns, ended_ns, reason, steps, episodes, lifecycle, malformed,
  scalars, steps_printed FROM runs CROSS JOIN attempt_rows WHERE attempt_rows.run = runs.run;
