"""Steps, calls and streams at once: all answered once, in order, and right. No time is judged."""

import glob
import json
import uuid

import pytest

from tests.benchmark import together
from tests.benchmark.suite import Plan
from tools.testing import pytest_main


def test_steps_calls_and_streams_at_once_in_both_languages() -> None:
    """The two programs check every answer and item themselves, and fail if one is wrong; none is missing."""
    # Not by process id: sandboxes have their own, but share /dev/shm.
    region = f"tandem-together-{uuid.uuid4().hex}"
    found = together.measure_together(list(together.ROWS), 1, 5000, 500, 3, region)
    assert found.num_envs == 3
    for row in together.ROWS:
        (quiet,), (busy,) = found.quiet[row], found.together[row]
        assert quiet.calls == 0 and quiet.streams == []
        assert busy.calls == 1000
        assert len(busy.streams) == 3
        assert all(stream.items > 1 for stream in busy.streams)
        for run in (quiet, busy):
            assert run.steps_per_sec > 0
            assert 0 < run.step_p50_ns <= run.step_p99_ns <= run.step_max_ns
        assert 0 < busy.call_p50_ns <= busy.call_p99_ns
    assert not glob.glob(f"/dev/shm/*{region}*")


def test_the_suite_gives_a_table_and_figures_as_json() -> None:
    """Of the rows that were asked for."""
    plan = Plan(frozenset({"cpp"}), 1, 0.1, True, f"tandem-together-{uuid.uuid4().hex}")
    found = together.SUITE.measure(plan)
    assert f"| {together.ROWS['cpp']}, together / quiet " in found.tables[0]
    assert together.ROWS["python"] not in found.tables[0]
    assert json.loads(json.dumps(found.figures))["together"]["cpp"][0]["calls"] == 1000


def test_ratios_are_taken_within_a_round() -> None:
    """A round in which everything took twice as long changes no ratio."""

    def run(nanos: int) -> together.Run:
        return together.Run(1e9 / nanos, nanos, nanos, nanos, 0, 0, 0, [])

    found = together.Sessions(1, pictures=False)
    for slower in (1, 2):
        for row in together.ROWS:
            found.quiet[row].append(run(100 * slower))
            found.together[row].append(run(150 * slower))
    assert found.ratios("cpp", lambda run: run.step_p99_ns) == pytest.approx([1.5, 1.5])


if __name__ == "__main__":
    pytest_main.run(__file__)
