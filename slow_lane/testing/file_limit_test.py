"""A daemon under `ulimit -f`: a write above the limit fails, and the daemon continues."""

import contextlib
import sqlite3
import sys
from pathlib import Path

from tandem.telemetry import TrainerClient
from tandem.testing.daemons import DAEMON, Daemon, run_config, wait_until

_EVENTS, _EVENT_BYTES = 20, 200_000


def test_a_daemon_at_the_limit_of_file_sizes_is_unhealthy_and_loses_nothing(tmp_path: Path) -> None:
    """The next daemon, without the limit, has all events."""
    limited = tmp_path / "limited"
    limited.write_text(f'#!/bin/sh\nulimit -f 2000\nexec "{DAEMON}" "$@"\n')
    limited.chmod(0o700)
    source = "import json\nfor n in range({}): print(json.dumps({{'event': 'y' * {}}}))"
    daemon = Daemon(tmp_path / "data", program=limited)
    try:
        with TrainerClient(daemon.address) as client:
            # The worker's output has the same limit: each worker prints less than it allows.
            config = run_config(sys.executable, "-c", source.format(_EVENTS // 4, _EVENT_BYTES))
            runs = [client.submit(config).run_id for _ in range(4)]
            wait_until(lambda: not client.health().healthy, "the daemon to report the limit")
    finally:
        assert daemon.stop() == 0
    daemon = Daemon(tmp_path / "data")
    try:
        with TrainerClient(daemon.address) as client:
            wait_until(lambda: all(run.status.final for run in client.runs()), "the runs to end")
        with contextlib.closing(sqlite3.connect(f"file:{daemon.table}?mode=ro", uri=True)) as table:
            rows = table.execute("SELECT run_id, count(*) FROM lifecycle GROUP BY run_id").fetchall()
        assert dict(rows) == dict.fromkeys(runs, _EVENTS // 4)
    finally:
        assert daemon.stop() == 0
