-- What people ask of a run's events, in plain SQL: beside a running daemon, too.
--
--   sqlite3 -readonly data/tandem.db
--   sqlite> .parameter set :run_id "'my-run'"
--
-- Python: pandas.read_sql(QUERY, sqlite3.connect("file:tandem.db?mode=ro",
-- uri=True), params={"run_id": "my-run"}). DuckDB: ATTACH 'tandem.db' (TYPE
-- sqlite, READ_ONLY), and a string in place of :run_id. Name the run, and by
-- seq_id what you have already: only those rows are read. status counts as the
-- protocol does: 4 is executing, 6 faulted, 7 terminated. Times are nanoseconds
-- since 1970.

-- All runs, the newest first.
SELECT run_id, run_name, status, failure_reason,
  datetime(created_at_ns / 1000000000, 'unixepoch') AS created_at
FROM runs ORDER BY created_at_ns DESC;

-- The learning curve.
SELECT episode_index, steps, total_reward
FROM episodes WHERE run_id = :run_id ORDER BY seq_id;

-- The same, smoothed over ten episodes.
SELECT episode_index, avg(total_reward) OVER (
  ORDER BY seq_id ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS smoothed
FROM episodes WHERE run_id = :run_id ORDER BY seq_id;

-- What came since the last look.
SELECT seq_id, episode_index, step_index, reward
FROM steps WHERE run_id = :run_id AND seq_id > :since ORDER BY seq_id;

-- A field of what each step printed as JSON.
SELECT step_index, json_extract(observation_json, '$[0]') AS first_observation
FROM steps WHERE run_id = :run_id AND seq_id <= 1000 ORDER BY seq_id;

-- Steps for each second of the run.
SELECT timestamp_ns / 1000000000 AS second, count(*) AS steps
FROM steps WHERE run_id = :run_id GROUP BY second ORDER BY second;

-- How a run went, from its own words.
SELECT seq_id, event, payload_json,
  datetime(timestamp_ns / 1000000000, 'unixepoch') AS at
FROM lifecycle WHERE run_id = :run_id ORDER BY seq_id;

-- Lines that were meant as events and are none, and where they are.
SELECT byte_offset, bytes, reason, head
FROM malformed WHERE run_id = :run_id ORDER BY seq_id;

-- Each change of a run's state.
SELECT u.seq_id, u.status, u.failure_reason,
  datetime(u.at_ns / 1000000000, 'unixepoch') AS at
FROM run_updates AS u JOIN runs ON runs.run = u.run
WHERE runs.run_id = :run_id ORDER BY u.seq_id;
