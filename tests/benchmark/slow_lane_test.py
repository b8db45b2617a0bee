"""The slow lane's suite, coarsely: each row gives figures, and no error is found on the way. No time is judged."""

import uuid
from pathlib import Path

import pytest

from tandem.testing.daemons import running_daemon
from tests.benchmark import slow_lane_calls as calls
from tests.benchmark import slow_lane_events as events
from tests.benchmark import slow_lane_large_event as large_event
from tests.benchmark import slow_lane_many_workers as many_workers
from tests.benchmark import slow_lane_resume as resume
from tests.benchmark.slow_lane_processes import ROWS_OF_RUN, wait_for_rows
from tests.benchmark.slow_lane_suite import SUITE
from tests.benchmark.suite import Plan
from tools.testing import pytest_main


def _plan(*rows: str) -> Plan:
    return Plan(frozenset(rows), rounds=1, seconds=0.05, quick=True, prefix=f"tandem-slow-lane-{uuid.uuid4().hex}")


def test_each_row_of_events_is_measured() -> None:
    """Tandem's and those of asyncio; MLflow's needs an environment of its own."""
    rows = set(events.ROWS) - set(events.INTERPRETERS)
    found = SUITE.measure(_plan(*rows))
    assert set(found.figures) == {"events"}
    figures = found.figures["events"]
    assert set(figures) == rows
    assert all(len(one["durable"]) == 1 and one["durable"][0] > 0 for one in figures.values())
    for row in ("blocks", "event_writer", "print_json"):
        assert figures[row]["alone"][0] > 0
    assert all(f"| {events.ROWS[row]} " in found.tables[0] for row in rows)


def test_calls_are_timed_idle_and_flooded() -> None:
    """From both languages."""
    found = SUITE.measure(_plan(*calls.ROWS)).figures["calls"]
    assert set(found) == set(calls.ROWS)
    for states in found.values():
        assert set(states) == {"idle", "flooded"}
        assert all(0 < one["p50_ns"][0] <= one["p99_ns"][0] for one in states.values())


def test_a_watcher_gets_all_steps_by_each_way() -> None:
    """Numbers are checked by the watchers themselves."""
    found = SUITE.measure(_plan(*resume.ROWS)).figures["resume"]
    assert set(found) == set(resume.ROWS)
    assert all(one["seconds"][0] > 0 and one["client_cpu"][0] > 0 for one in found.values())


def test_a_large_event_is_measured_beside_a_small_one() -> None:
    """The small one is measured too: it is what the ratio is to."""
    found = SUITE.measure(_plan("beside_1_MB")).figures["large_event"]
    assert set(found) == {large_event.BASELINE, "beside_1_MB"}
    assert all(seconds > 0 for seconds in found["beside_1_MB"])


def test_rows_are_held_against_paced_workers(tmp_path: Path) -> None:
    """Every row is there, and its age known."""
    found = many_workers.measure_round(tmp_path, workers=3, seconds=2)
    assert found.steps == 6000
    assert 0 <= found.lag_p50_ms <= found.lag_p99_ms <= found.lag_max_ms
    assert 0 < found.cores <= found.all_cores


def test_rows_that_do_not_come_are_an_error(tmp_path: Path) -> None:
    """The message says how many there are."""
    with running_daemon(tmp_path / "data") as daemon:
        with pytest.raises(RuntimeError, match="expected 5 rows within 0.01 s, found None"):
            wait_for_rows(daemon.table, ROWS_OF_RUN, "none", 5, timeout_secs=0.01)


if __name__ == "__main__":
    pytest_main.run(__file__)
