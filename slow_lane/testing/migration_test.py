"""A daemon with a table of schema version 1."""

import contextlib
import sqlite3
import subprocess
from pathlib import Path

from tandem.testing.daemons import DAEMON, running_daemon

_MAKE_OLD_TABLE = Path(__file__).parents[2] / "slow_lane/store/make_old_table"
_STEPS = 1_000_000
_DEADLINE_SECS = 120


def _data_dir(folder: Path, steps: int) -> Path:
    data_dir = folder / "data"
    data_dir.mkdir(mode=0o700)
    subprocess.run([_MAKE_OLD_TABLE, data_dir / "tandem.db", str(steps)], check=True, timeout=_DEADLINE_SECS)
    return data_dir


def _table_summary(data_dir: Path) -> tuple[int, tuple[int, int, int, float]]:
    """Returns the schema version, and count and sums of the steps' seq_id, step_index and reward."""
    with contextlib.closing(sqlite3.connect(f"file:{data_dir}/tandem.db?mode=ro", uri=True)) as table:
        (version,) = table.execute("PRAGMA user_version").fetchone()
        return version, table.execute(
            "SELECT count(*), sum(seq_id), sum(step_index), sum(reward) FROM steps"
        ).fetchone()


def test_a_daemon_moves_the_rows_of_an_old_table(tmp_path: Path) -> None:
    """The daemon serves after the migration."""
    data_dir = _data_dir(tmp_path, 1000)
    version, rows = _table_summary(data_dir)
    assert version == 1 and rows[0] == 1000
    with running_daemon(data_dir):
        assert _table_summary(data_dir) == (4, rows)


def test_sigterm_undoes_a_migration_and_the_next_daemon_does_it_again(tmp_path: Path) -> None:
    """SIGTERM comes when the daemon has printed that it migrates the table."""
    data_dir = _data_dir(tmp_path, _STEPS)
    before = _table_summary(data_dir)
    command = [str(DAEMON), f"--data_dir={data_dir}", "--listen=none"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as daemon:
        assert daemon.stderr is not None
        assert "older schema version" in daemon.stderr.readline()
        daemon.terminate()
        printed, errors = daemon.communicate(timeout=_DEADLINE_SECS)
    assert daemon.returncode == 0 and printed == ""
    assert "keeps its schema version" in errors
    assert before[0] == 1 and _table_summary(data_dir) == before
    with running_daemon(data_dir):
        assert _table_summary(data_dir) == (4, before[1])
