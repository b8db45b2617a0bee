-- Version 4. Scalars: a row for each number. A run's rows lie together, so that a curve reads only its run's pages; the
-- rows are small, so a key without a rowid costs little. NULL is NaN; infinities are REAL.

CREATE TABLE scalar_names (
  run INTEGER NOT NULL,
  name_id INTEGER NOT NULL,
  name TEXT NOT NULL,
  PRIMARY KEY (run, name_id)
) STRICT, WITHOUT ROWID;

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

CREATE VIEW scalars AS SELECT runs.run_id, seq_id, worker_id, step, name, value,
  timestamp_ns
  FROM runs CROSS JOIN scalar_rows CROSS JOIN scalar_names
  WHERE scalar_rows.run = runs.run AND scalar_names.run = runs.run
  AND scalar_names.name_id = scalar_rows.name_id;

ALTER TABLE positions ADD COLUMN scalars INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sources ADD COLUMN scalars INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN dropped_scalars INTEGER NOT NULL DEFAULT 0;

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
  PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;
ALTER TABLE runs ADD COLUMN attempt INTEGER NOT NULL DEFAULT 1;

CREATE VIEW attempts AS SELECT runs.run_id, number, started_ns, ended_ns,
  reason, steps, episodes, lifecycle, malformed, scalars
  FROM runs CROSS JOIN attempt_rows WHERE attempt_rows.run = runs.run;
