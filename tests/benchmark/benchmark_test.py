"""A tiny run of the benchmark: every row is there, at every size, and gives figures. No time is judged."""

import functools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.benchmark import benchmark, frames, messages, report, steps
from tests.benchmark.measurement import BASELINE, LADDER, ROWS, SIZES, WAITS, Group, Row, RowUnavailable, Size
from tests.benchmark.python_rows import measure_row
from tests.benchmark.tables import Spread, markdown
from tools.testing import pytest_main

TINY = ["--quick", "--rounds=2", "--seconds=0.01", "--no_peers"]
HERE = [row for row in ROWS if row.interpreter is None]


def measure(suite: str, folder: Path, *more: str) -> Any:
    """Runs a suite and returns its part of the JSON."""
    found = folder / "found.json"
    prefix = f"tandem-benchmark-{uuid.uuid4().hex}"
    assert benchmark.main([suite, *TINY, f"--json={found}", *more], prefix=prefix) == 0
    results = json.loads(found.read_text(encoding="utf-8"))
    assert results["command"].startswith(f"tools/benchmark {suite} --quick")
    assert results["machine"]["cores"] >= 1
    assert list(results["suites"]) == [suite]
    assert not list(folder.glob("*.part"))
    assert not left_regions(prefix)
    return results["suites"][suite]


def test_every_row_is_measured_at_every_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON holds them all, with the machine and the command; the tables and the picture are made."""
    found = measure("steps", tmp_path, f"--out={tmp_path}")
    assert len(found["sizes"]) == len(SIZES)
    for one in found["sizes"]:
        # A container may forbid the namespace that iceoryx's rows run in.
        assert {row.key for row in HERE} - set(one["rows"]) in (set(), {"iceoryx_spin", "iceoryx_block"})
        for row in one["rows"].values():
            assert len(row["groups_ns"]) == len(row["baseline_before_ns"]) == 2
            for group in row["groups_ns"]:
                assert group["exchanges"] >= 10
                assert 0 < group["step_p50"] <= group["step_p99"]
                assert group["step_p50"] <= group["cycle_p50"]
                assert group["step_mean"] > 0
                assert group["client_cpu"] > 0
            assert 0 < row["summary"]["ratio"]["min"] <= row["summary"]["ratio"]["max"]
    assert (tmp_path / "steps.png").read_bytes().startswith(b"\x89PNG")
    tables = capsys.readouterr().out
    assert all(tables.count(f"| {row.label} ") == len(SIZES) for row in HERE if "iceoryx" not in row.key)


def test_a_row_alone_brings_what_it_is_compared_with(tmp_path: Path) -> None:
    """Others are not measured."""
    found = measure("steps", tmp_path, "--rows=host_b*")
    assert all(list(one["rows"]) == [BASELINE, "host_block"] for one in found["sizes"])


def test_profile_measures_the_ladder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its rows are those between bare spinning and Tandem."""
    measure("profile", tmp_path)
    tables = capsys.readouterr().out
    assert all(f"| {row.label} " in tables for row in LADDER)


def test_busy_processes_are_there_while_rows_are_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As many as the table says; adaptive is held against the better of the other two."""
    found = measure("busy", tmp_path)
    assert [(case["size"]["envs"], case["busy"]) for case in found["cases"]] == [
        (envs, busy) for envs in (1, 64) for busy in (0, 1, 2)
    ]
    for case in found["cases"]:
        assert set(case["adaptive_against_better"]) == {"host", "python"}
        for against in case["adaptive_against_better"].values():
            assert against["better"] in ("spin", "block")
            assert against["p50"] > 0 and against["p99"] > 0
    assert capsys.readouterr().out.count("| Tandem, Python, adaptive ") == 6
    with steps.busy_processes(2) as busy:
        assert [process.poll() for process in busy] == [None, None]
    assert all(process.returncode for process in busy)


def test_adaptive_is_held_against_the_lower_mean() -> None:
    """Even where the other has the better median."""

    def group(mean: float, p50: float, p99: float) -> Group:
        return Group(10, mean, p50, p99, p50, 1, 1)

    groups = {
        "host_spin": [group(4000, 1, 8000)],
        "host_adaptive": [group(6, 6, 12)],
        "host_block": [group(5, 4, 8)],
        "python_spin": [group(1, 1, 1)],
    }
    assert steps.against_better(groups) == {"host": {"better": "block", "p50": 1.5, "p99": 1.5}}


def test_adaptive_is_held_against_the_same_rounds() -> None:
    """Which cores two processes get changes: medians of either row alone might be of different ones."""

    def groups(*nanos: float) -> list[Group]:
        return [Group(10, nano, nano, 2 * nano, nano, 1, 1) for nano in nanos]

    found = steps.against_better(
        {"host_spin": groups(1, 1, 5), "host_adaptive": groups(1, 5, 5), "host_block": groups(50, 50, 50)}
    )
    assert found == {"host": {"better": "spin", "p50": 1, "p99": 1}}


def test_deaths_are_timed_for_every_strategy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Twenty kills each."""
    found = measure("deaths", tmp_path)
    assert list(found) == list(WAITS)
    for deaths in found.values():
        assert len(deaths["kills_ns"]) == 20
        assert min(deaths["kills_ns"]) > 0
        assert 0 < deaths["summary"]["median_ms"] <= deaths["summary"]["p99_ms"] <= deaths["summary"]["max_ms"]
    tables = capsys.readouterr().out
    assert all(f"| {wait} " in tables for wait in WAITS)


def test_frames_are_measured_in_every_ring(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each row gives a rate; the table has them all, and no segment is left."""
    found = measure("frames", tmp_path)
    assert list(found["unseen_ns"]) == ["an environment", "64 environments"]
    assert len(found["rings"]) == len(frames.SIZES) * len(frames.CAPACITIES)
    for ring in found["rings"]:
        assert list(ring["rates"]) == list(frames.ROWS)
        assert all(len(rates) == 2 and min(rates) > 0 for rates in ring["rates"].values())
    table = capsys.readouterr().out
    assert all(f"| {label} " in table for label in frames.ROWS.values())
    assert "while nobody looks: " in table


def test_frames_of_some_rows_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With what they are compared with, and nothing else."""
    found = measure("frames", tmp_path, "--rows=loan", "--rounds=1")
    assert list(found) == ["rings"]
    assert all(list(ring["rates"]) == ["publish", "loan", "memcpy", "streaming"] for ring in found["rings"])
    assert "while nobody looks" not in capsys.readouterr().out


def test_messages_are_measured_by_every_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each gives rates and latencies at each size; the tables have them all."""
    cases = measure("messages", tmp_path)["sizes"]
    assert [case["message_bytes"] for case in cases] == list(messages.SIZES)
    for case in cases:
        for figures in (case["rates"], case["p50_ns"], case["p99_ns"]):
            assert list(figures) == list(messages.ROWS)
            assert all(len(rounds) == 2 and min(rounds) > 0 for rounds in figures.values())
    tables = capsys.readouterr().out
    assert all(tables.count(f"| {row.label} ") == len(messages.SIZES) for row in messages.ROWS.values())


def test_calls_are_measured_by_every_strategy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One after the other, and paced."""
    found = measure("calls", tmp_path)
    assert list(found) == list(WAITS)
    for figures in found.values():
        assert all(len(rounds) == 2 and min(rounds) > 0 for rounds in figures.values())
    tables = capsys.readouterr().out
    assert all(tables.count(f"| {wait} ") == 1 for wait in WAITS)


def test_list_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    """Suites with their rows; with names, only those."""
    assert benchmark.main(["--list"]) == 0
    listed = capsys.readouterr().out
    assert all(f"\n{name}: " in f"\n{listed}" for name in benchmark.SUITES if name != "profile")
    assert benchmark.main(["deaths", "--list"]) == 0
    assert capsys.readouterr().out.startswith("deaths: ")


@pytest.mark.parametrize(
    ("command", "found"),
    [
        (["nonsense"], "nonsense"),
        (["--rows=nonsense"], "nonsense"),
        (["--rounds=0"], "0"),
        (["--seconds=nan"], "nan"),
        (["--seconds=inf"], "inf"),
        (["--json=/nowhere/found.json"], "No such file or directory: /nowhere/found.json"),
        (["--json=/dev"], "no plain file: /dev"),
        (["--json="], "no plain file: "),
        (["--out=/dev/null"], "File exists: /dev/null"),
        (["--out=/proc"], "No such file or directory: /proc"),
        (["--out="], "an empty name"),
    ],
)
def test_a_wrong_command_line_says_what_was_expected(
    command: list[str], found: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """And measures nothing."""
    with pytest.raises(SystemExit, match="2"):
        sys.exit(benchmark.main(command))
    errors = capsys.readouterr().err
    assert "expected" in errors and f"found {found}" in errors


def test_the_help_names_every_flag() -> None:
    """And no other; it needs no build."""
    shown = subprocess.run(["tools/benchmark", "--quick", "--help"], capture_output=True, text=True, check=True).stdout
    usage, *lines = shown.splitlines()
    explained = [words[0] for words in (line.split() for line in lines if line.startswith("  --"))]
    flags = re.findall(r"--\w+", benchmark.make_parser().format_usage())
    assert sorted(explained) == sorted(re.findall(r"--\w+", usage)) == sorted(flags)


def test_no_row_to_measure_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And says what was left out."""
    found = tmp_path / "found.json"
    assert benchmark.main(["steps", *TINY, "--rows=python_grpc", f"--json={found}"]) == 1
    assert "found only such as need peers" in capsys.readouterr().err
    assert not found.exists()


def test_a_failed_row_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is left out, and said again at the end; a suite that cannot go on leaves the next ones."""

    def measure_but(failing: str, row: Row, size: Size, seconds: float, region: str) -> Group:
        if row.key == failing:
            subprocess.run(["false"], check=True)
        return measure_row(row, size, seconds, region)

    command = ["steps", "deaths", *TINY, "--rows=alone,host_block,spin", f"--json={tmp_path / 'found.json'}"]
    for failing, left, said in [("alone", ["steps", "deaths"], "steps alone"), (BASELINE, ["deaths"], "steps")]:
        monkeypatch.setattr(steps, "measure_row", functools.partial(measure_but, failing))
        assert benchmark.main(command) == 1
        suites = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))["suites"]
        assert list(suites) == left
        for size in suites.get("steps", {"sizes": ()})["sizes"]:
            assert list(size["rows"]) == [BASELINE, "host_block"]
        errors = capsys.readouterr().err
        assert "Command '['false']' returned non-zero exit status 1.\nNext: run that command by hand." in errors
        assert errors.endswith(f"found that these failed: {said}\n")


def test_a_file_that_cannot_be_written_costs_no_suite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is named, and the rest measured and printed."""
    (tmp_path / "steps.png").mkdir()
    assert benchmark.main(["steps", "deaths", *TINY, "--rows=alone,spin", f"--out={tmp_path}"]) == 1
    printed = capsys.readouterr()
    assert "**A dead engine**" in printed.out
    assert f"'{tmp_path}/steps.png'; going on" in printed.err
    assert printed.err.endswith("found that these failed: files of steps\n")


def test_names_are_removed_wherever_they_have_the_prefix() -> None:
    """As what a frame writer has not published yet."""
    prefix = f"tandem-benchmark-{uuid.uuid4().hex}"
    with benchmark.names_removed(prefix):
        for name in (prefix, f".mosaic.fastlane.{prefix}-frames.tandem"):
            (Path("/dev/shm") / name).touch()
        assert len(left_regions(prefix)) == 2
    assert not left_regions(prefix)


def test_tables_line_up() -> None:
    """Markdown reads as text, too."""
    lines = markdown("title", ("row", "us"), [("a long row", str(Spread.of([1, 2, 30]))), ("b",)]).splitlines()
    assert lines == [
        "title",
        "",
        "| row        |                  us |",
        "|------------|--------------------:|",
        "| a long row | 2.00 (1.00 .. 30.0) |",
        "| b          |                     |",
    ]


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
    assert case.ratios("bare_spsc") == pytest.approx([1, 1])


def test_ratios_are_to_the_baseline_right_before() -> None:
    """A turn in which everything took twice as long changes no ratio."""

    def group(nanos: float) -> Group:
        return Group(10, nanos, nanos, nanos, nanos, nanos, nanos)

    summary = report.summarise({"other": [(group(3000), group(1000)), (group(6000), group(2000))]})
    assert summary["other"].ratio == Spread(3, 3, 3)
    assert summary["other"].step_p50_us == Spread(3, 4.5, 6)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_ends_it_and_leaves_nothing(number: signal.Signals) -> None:
    """Whenever it comes, the run ends with 130, one line, and no region."""
    prefix = f"tandem-benchmark-{uuid.uuid4().hex}"
    program = f"import sys\nfrom tests.benchmark import benchmark\nsys.exit(benchmark.run({prefix!r}))"
    command = [sys.executable, "-c", program, "steps", "--no_peers", "--rounds=1000", "--seconds=0.01"]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.Popen(command, env=variables, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert run.stderr is not None
    assert "round 1 of 1000" in run.stderr.readline()
    run.send_signal(number)
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 130
    assert errors.endswith("tandem: interrupted\n")
    assert "Traceback" not in errors
    # Engines notice that their client's process is gone by a signal of their own.
    until = time.monotonic() + 30
    while left_regions(prefix) and time.monotonic() < until:
        time.sleep(0.01)
    assert not left_regions(prefix)


def test_peer_without_its_interpreter_says_how_to_make_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """tools/test makes no such thing, and nothing makes one unasked."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for row in (row for row in ROWS if row.interpreter):
        with pytest.raises(RowUnavailable, match=f"Next: tools/extra_env {row.interpreter}"):
            measure_row(row, SIZES[0], 0.1, "tandem-benchmark-none")


def test_a_process_for_each_environment_is_for_few_environments() -> None:
    """Rows that are such exist at small sizes only, and all others at every size."""
    few = [row.key for row in ROWS if not row.exists_at(SIZES[-1])]
    assert few == ["python_async_vector_env", "python_subproc_vec_env"]
    assert all(row.exists_at(size) for row in ROWS for size in SIZES[:-1])


def left_regions(prefix: str) -> list[str]:
    """Lists what a run left behind."""
    return [
        str(path)
        for folder in (tempfile.gettempdir(), "/dev/shm")
        for path in Path(folder).iterdir()
        if prefix in path.name
    ]


if __name__ == "__main__":
    pytest_main.run(__file__)
