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

-- Version 1. Columns are the fields of the messages; an empty field is NULL. NaN is NULL as well.

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
