"""A tiny run of the benchmark: every row is there, at every size, and gives figures. No time is judged."""

import glob
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.benchmark import benchmark, calls, frames, messages, report
from tests.benchmark.measurement import BASELINE, LADDER, PEERS_IN_PYTHON, ROWS, SIZES, Group, RowUnavailable
from tests.benchmark.python_rows import measure_python
from tools.testing import pytest_main

TINY = ["--quick", "--rounds=2", "--exchanges=20"]


def test_every_row_is_measured_at_every_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON holds them all, with the machine and the command; the tables and the picture are made."""
    found, picture = tmp_path / "found.json", tmp_path / "round_trip.png"
    command = [*TINY, f"--json={found}", f"--out={picture}"]
    assert benchmark.main(command) == 0
    results = json.loads(found.read_text(encoding="utf-8"))
    assert results["command"].startswith("tools/benchmark --quick")
    assert results["machine"]["cores"] >= 1
    assert len(results["results"]) == len(SIZES)
    for result in results["results"]:
        assert list(result["rows"]) == [row.key for row in ROWS]
        for row in result["rows"].values():
            assert len(row["groups_ns"]) == 2
            for group in row["groups_ns"]:
                assert group["exchanges"] >= 10
                assert 0 < group["step_p50"] <= group["step_p99"]
                assert group["step_p50"] <= group["cycle_p50"]
                assert group["client_cpu"] > 0
            assert 0 < row["summary"]["ratio"]["min"] <= row["summary"]["ratio"]["max"]
    assert list(results["deaths"]) == ["spin", "adaptive", "block"]
    for deaths in results["deaths"].values():
        assert len(deaths["kills_ns"]) == 20
        assert min(deaths["kills_ns"]) > 0
        assert 0 < deaths["summary"]["median_ms"] <= deaths["summary"]["p99_ms"] <= deaths["summary"]["max_ms"]
    assert picture.read_bytes().startswith(b"\x89PNG")
    tables = capsys.readouterr().out
    assert all(tables.count(f"| {row.label} ") == len(SIZES) for row in ROWS)
    assert all(f"| {wait} " in tables for wait in results["deaths"])
    assert not left_regions()


def test_profile_measures_the_ladder(capsys: pytest.CaptureFixture[str]) -> None:
    """Its rows are those between bare spinning and Tandem."""
    assert benchmark.main([*TINY, "--profile"]) == 0
    tables = capsys.readouterr().out
    assert all(f"| {row.label} " in tables for row in LADDER)


def test_frames_are_measured_in_every_ring(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each row gives a rate; the table has them all, and no segment is left."""
    found = tmp_path / "found.json"
    assert benchmark.main(["--frames", "--rounds=1", "--seconds=0.01", f"--json={found}"]) == 0
    results = json.loads(found.read_text(encoding="utf-8"))
    assert list(results["unseen_ns"]) == ["an environment", "64 environments"]
    cases = results["frames"]
    assert len(cases) == len(frames.SIZES) * len(frames.CAPACITIES)
    for case in cases:
        assert list(case["rates"]) == list(frames.ROWS)
        assert all(len(rates) == 1 and rates[0] > 0 for rates in case["rates"].values())
    table = capsys.readouterr().out
    assert all(f"| {label} |" in table for label in frames.ROWS.values())
    assert not glob.glob("/dev/shm/*mosaic.fastlane.benchmark-*")


def test_messages_are_measured_by_every_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each gives rates and latencies at each size; the tables have them all."""
    found = tmp_path / "found.json"
    assert benchmark.main(["--messages", "--rounds=2", "--seconds=0.01", f"--json={found}"]) == 0
    results = json.loads(found.read_text(encoding="utf-8"))
    cases = results["messages"]
    assert [case["message_bytes"] for case in cases] == list(messages.SIZES)
    for case in cases:
        for figures in (case["rates"], case["p50_ns"], case["p99_ns"]):
            assert list(figures) == list(messages.ROWS)
            assert all(len(rounds) == 2 and min(rounds) > 0 for rounds in figures.values())
    assert list(results["calls"]) == list(calls.WAITS)
    for figures in results["calls"].values():
        assert all(len(rounds) == 2 and min(rounds) > 0 for rounds in figures.values())
    tables = capsys.readouterr().out
    assert all(tables.count(f"| {wait} |") == 1 for wait in calls.WAITS)
    assert all(tables.count(f"| {row.label} |") == len(messages.SIZES) for row in messages.ROWS.values())
    assert not left_regions()


def test_floods_are_held_against_those_of_the_same_round_and_waiting() -> None:
    """A round in which everything was half as fast changes no ratio."""
    case = messages.Case(64)
    for speed in (2.0, 1.0):
        for rates in case.rates.values():
            rates.append(10 * speed)
        case.rates["ring_spin"][-1] = 9 * speed
        case.rates["spsc_adaptive"][-1] = 5 * speed
    assert case.ratios("ring_spin") == pytest.approx([0.9, 0.9])
    assert case.ratios("ring_adaptive") == pytest.approx([2, 2])


def test_ratios_are_taken_within_a_round() -> None:
    """A round in which everything took twice as long changes no ratio."""

    def group(nanos: float) -> Group:
        return Group(10, nanos, nanos, nanos, nanos, nanos)

    summary = report.summarise({BASELINE: [group(1000), group(2000)], "other": [group(3000), group(6000)]})
    assert summary["other"].ratio == report.Spread(3, 3, 3)
    assert summary["other"].step_p50_us == report.Spread(3, 4.5, 6)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_ends_it_and_leaves_nothing(number: signal.Signals) -> None:
    """Whenever it comes, the run ends with 130, one line, and no region."""
    command = [sys.executable, "-m", "tests.benchmark.benchmark", "--rounds=1000", "--exchanges=20"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert run.stderr is not None
    assert "round 1 of 1000" in run.stderr.readline()
    run.send_signal(number)
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 130
    assert errors.endswith("tandem: interrupted\n")
    assert "Traceback" not in errors
    # Engines notice that their client's process is gone by a signal of their own.
    until = time.monotonic() + 30
    while left_regions(run.pid) and time.monotonic() < until:
        time.sleep(0.01)
    assert not left_regions(run.pid)


def test_peer_without_its_environment_says_how_to_make_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """tools/test makes no such environment, and nothing makes one unasked."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for row in PEERS_IN_PYTHON:
        with pytest.raises(RowUnavailable, match=f"Next: tools/extra_env {row.environment}"):
            measure_python(row, SIZES[0], 0.1, "tandem-benchmark-none")


def test_a_process_for_each_environment_is_for_few_environments() -> None:
    """Rows that are such exist at small sizes only, and all others at every size."""
    few = [row.key for row in (*ROWS, *PEERS_IN_PYTHON) if not row.exists_at(SIZES[-1])]
    assert few == ["python_async_vector_env", "python_subproc_vec_env"]
    assert all(row.exists_at(size) for row in (*ROWS, *PEERS_IN_PYTHON) for size in SIZES[:-1])


def left_regions(pid: int | None = None) -> list[str]:
    """Lists what a run left behind: this process's, or another's."""
    name = f"tandem-benchmark-{os.getpid() if pid is None else pid}-*"
    return glob.glob(f"/dev/shm/{name}") + glob.glob(f"/dev/shm/.{name}")


if __name__ == "__main__":
    pytest_main.run(__file__)
