-- Version 3. The workers that have registered, by RegisterWorker, and their capabilities.

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
