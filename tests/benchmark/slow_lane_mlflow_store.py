"""Puts steps' rewards into MLflow's SQLite store, and says how long that took, as JSON. Run by the peers' Python.

slow_lane_mlflow_store.py FOLDER EVENTS
"""

import json
import logging
import sys
import time
from pathlib import Path

_LARGEST_BATCH = 1000  # metrics; it refuses more


def main(folder: str, events: int) -> None:
    """Logs and prints.

    Args:
      folder: Where the database goes.
      events: How many metrics, one for each step.
    """
    logging.disable(logging.INFO)  # of each step of making the tables
    import mlflow
    from mlflow.entities import Metric
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
    from sqlalchemy import text

    store = SqlAlchemyStore(f"sqlite:///{folder}/mlflow.db", Path(folder, "artifacts").as_uri())
    experiment = store.create_experiment("benchmark")
    run = store.create_run(experiment, "benchmark", 0, [], "benchmark")
    begin = time.perf_counter()
    for first in range(0, events, _LARGEST_BATCH):
        indices = range(first, min(first + _LARGEST_BATCH, events))
        now_ms = time.time_ns() // 1_000_000
        metrics = [Metric("reward", index + 0.5, now_ms, index) for index in indices]
        store.log_batch(run.info.run_id, metrics, [], [])
    seconds = time.perf_counter() - begin
    with store.engine.connect() as connection:
        (rows,) = connection.execute(text("SELECT count(*) FROM metrics")).one()
        (journal,) = connection.execute(text("PRAGMA journal_mode")).one()
        (synchronous,) = connection.execute(text("PRAGMA synchronous")).one()
    if rows != events:
        raise RuntimeError(f"expected {events} rows, found {rows}")
    found = {"seconds": seconds, "journal_mode": journal, "synchronous": synchronous, "version": mlflow.__version__}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
