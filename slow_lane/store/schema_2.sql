PRAGMA legacy_alter_table = ON;

-- Version 2. Tables of events become rowid tables, since an event may have 16 MiB: without rowids, SQLite compares a new
-- key with entire rows, overflow pages included. An index over (run, seq_id) holds the keys alone. Long text comes last,
-- so that a query for other columns reads no overflow page (docs/decisions/0031-event-tables-have-rowids.md). The views
-- of version 1 stay: with legacy_alter_table, RENAME does not read them.

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
