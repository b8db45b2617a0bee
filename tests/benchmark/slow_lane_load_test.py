"""A small load succeeds, and missing rows are reported. No amount of memory is compared with a limit."""

import sqlite3
from pathlib import Path

import pytest

from tandem.telemetry import TrainerClient
from tandem.testing.daemons import run_config, running_daemon, wait_until
from tests.benchmark import slow_lane_load as load
from tests.benchmark.slow_lane_processes import printer_command
from tools.testing import pytest_main


def test_a_small_load_succeeds(capsys: pytest.CaptureFixture[str]) -> None:
    """Every row is stored, and every watcher receives each step."""
    assert load.main(["--minutes=0.05", "--runs=5", "--watchers=7", "--hz=300"]) == 0
    out = capsys.readouterr().out
    assert "5 runs with 900 rows each, as printed; 7 watchers got each step once" in out
    assert "MiB an hour" in out


def test_a_row_that_is_missing_is_found(tmp_path: Path) -> None:
    """Also if the last row is missing."""
    with running_daemon(tmp_path / "data") as daemon:
        with TrainerClient(daemon.address) as client:
            run_id = client.submit(run_config(*printer_command(10))).run_id
            wait_until(lambda: client.runs()[0].status.final, "a run that has ended")
        assert load.missing_rows(daemon, run_id, 10) is None
        assert "expected 11 steps, found 10" in (load.missing_rows(daemon, run_id, 11) or "")
        for number in (10, 4):
            table = sqlite3.connect(daemon.table)
            table.execute("DELETE FROM step_rows WHERE seq_id = ?", (number,))
            table.commit()
            table.close()
            assert f"expected the row ({number}, {number - 1}," in (load.missing_rows(daemon, run_id, 10) or "")


def test_a_slope_is_that_of_the_later_part() -> None:
    """The samples grow by 1 MiB a minute after a start without growth."""
    samples = [load.Sample(minute, minute * 2**20 if minute >= 3 else 0, 0) for minute in range(9)]
    assert load.slope_per_hour(samples, [look.daemon for look in samples]) == pytest.approx(60 * 2**20)


if __name__ == "__main__":
    pytest_main.run(__file__)
