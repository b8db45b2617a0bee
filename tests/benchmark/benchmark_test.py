"""Short runs of the benchmark: some rows of each suite give figures. No figure is compared with a limit."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.benchmark import benchmark
from tests.benchmark.harness import Measurement, Plan
from tests.benchmark.rows import Case, Figures, Row, RowUnavailable, Suite, Turn, turns

TINY = ["--quick", "--rounds=1", "--seconds=0.02", "--no_peers"]

# The keys of the measured rows, with the rows that they are compared with.
ROWS = {
    "steps": "spin socket grpc host_adaptive python_adaptive python_make_vec python_socket python_pipe",
    "busy": "host_spin host_adaptive host_block",
    "make_vec": "make_vec states tandem",
    "workers": "bound lock_step workers sketch",
    "mujoco": "tandem tandem_halves",
    "start": "make_vec",
    "deaths": "adaptive",
    "frames": "publish python_ring memcpy streaming unseen alone page",
    "messages": "ring_adaptive envelopes spsc",
    "gateway": "bare memory stub cpp",
    "slow_lane": "blocks print_json asyncio steps_alone scalars print_inotify beside_3_bytes beside_1_MB call_health "
    "resume_blocks resume_messages",
    "godot": "tandem",
}
CHOSEN = {
    "steps": "socket,grpc,host_adaptive,python_adaptive,python_make_vec,python_pipe,python_socket",
    "busy": "host_adaptive",
    "frames": "publish,python_ring,unseen,page",
    "messages": "ring_adaptive,envelopes",
    "gateway": "bare,stub,cpp",
    "slow_lane": "print_json,asyncio,scalars,print_inotify,beside_1_MB,call_health,resume_messages",
}


def leftovers(prefix: str = "tandem-benchmark-") -> set[str]:
    """Returns regions, folders and processes of benchmarks."""
    found = {str(path) for folder in (tempfile.gettempdir(), "/dev/shm") for path in Path(folder).glob(f"*{prefix}*")}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            command = path.read_text(encoding="utf-8", errors="replace")
            if prefix in command or "tests.benchmark.worker" in command:
                found.add(f"{path}: {command}")
    return found


def wait_until_no_more_leftovers(before: set[str]) -> None:
    """Waits until there are no more leftovers than before; engines detect their client's exit by a signal."""
    until = time.monotonic() + 60
    while leftovers() - before and time.monotonic() < until:
        time.sleep(0.05)
    assert not leftovers() - before


@pytest.mark.parametrize("suite", ROWS)
def test_rows_of_a_suite_give_figures(suite: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON, the tables and the image contain the figures; nothing is left behind."""
    before = leftovers()
    file = tmp_path / "found.json"
    rows = CHOSEN.get(suite, ROWS[suite].replace(" ", ","))
    assert benchmark.main([suite, *TINY, f"--rows={rows}", f"--json={file}", f"--out={tmp_path}"]) == 0
    found = json.loads(file.read_text(encoding="utf-8"))
    assert found["command"].startswith(f"tools/benchmark {suite} --quick")
    assert found["machine"]["cores"] >= 1
    assert list(found["suites"]) == [suite]
    of_cases = [case["builds"]["this"] for case in found["suites"][suite]]
    assert {key for of_case in of_cases for key in of_case} == set(ROWS[suite].split())
    of_rows = [row for of_case in of_cases for row in of_case.values()]
    assert all(len(rounds) == 1 and min(rounds) >= 0 for row in of_rows for rounds in row.values())
    assert all(max(next(iter(row.values()))) > 0 for row in of_rows)
    tables = capsys.readouterr().out
    assert all(f"| {benchmark.SUITES[suite].labels[key]} " in tables for key in ROWS[suite].split())
    assert (tmp_path / f"{suite}.png").read_bytes().startswith(b"\x89PNG")
    assert {path.name for path in tmp_path.iterdir()} == {"found.json", f"{suite}.png"}
    wait_until_no_more_leftovers(before)


def test_two_builds_take_turns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each figure has a ratio with its 95 % interval; rows that do not measure Tandem are left out."""
    program = tmp_path / "bazel-bin/tests/benchmark/benchmark"
    program.parent.mkdir(parents=True)
    python_path = os.pathsep.join(sys.path)
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH="{python_path}" exec {sys.executable} -P -m tests.benchmark.benchmark "$@"\n'
    )
    program.chmod(0o755)
    file = tmp_path / "found.json"
    command = ["steps", *TINY, "--rounds=2", "--rows=spin,host_block", f"--against={tmp_path}", f"--json={file}"]
    assert benchmark.main(command) == 0
    for case in json.loads(file.read_text(encoding="utf-8"))["suites"]["steps"]:
        assert list(case["builds"]) == ["this", "other"]
        for rows in case["builds"].values():
            assert list(rows) == ["host_block"] and len(rows["host_block"]["p50 us"]) == 2
    lines = [line for line in capsys.readouterr().out.splitlines() if re.search(r"\| +p50 us \|", line)]
    assert len(lines) == 3
    for line in lines:
        ratio, low, high = map(float, re.findall(r"\| +([\d.]+) \| +([\d.]+) \.\. ([\d.]+) \|", line)[-1])
        assert low <= ratio <= high


def test_list_has_suites_and_rows(capsys: pytest.CaptureFixture[str]) -> None:
    """With suite names, only those suites are listed."""
    assert benchmark.main(["--list"]) == 0
    listed = capsys.readouterr().out
    assert all(f"\n{name}: " in f"\n{listed}" for name in ROWS)
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
        (["--against=/nowhere"], "none in /nowhere"),
        (["--json=/proc/found.json"], "No such file or directory: /proc"),
        (["--json=/dev"], "the folder /dev"),
        (["--out=/dev/null"], "File exists: /dev/null"),
        (["--out=/proc"], "No such file or directory: /proc"),
    ],
)
def test_a_wrong_command_line_exits_with_2(command: list[str], found: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The message has the expected and the found value."""
    with pytest.raises(SystemExit, match="2"):
        sys.exit(benchmark.main(command))
    errors = capsys.readouterr().err
    assert "expected" in errors and f"found {found}" in errors


def test_the_help_names_every_flag(capsys: pytest.CaptureFixture[str]) -> None:
    """The help has exactly the program's flags, and needs no build."""
    shown = subprocess.run(["tools/benchmark", "--quick", "--help"], capture_output=True, text=True, check=True).stdout
    usage, *lines = shown.splitlines()
    explained = [words[0] for words in (line.split() for line in lines if line.startswith("  --"))]
    with pytest.raises(SystemExit, match="2"):
        benchmark.main(["--nonsense"])
    flags = re.findall(r"--\w+", capsys.readouterr().err.split("tools/benchmark: error")[0])
    assert sorted(explained) == sorted(re.findall(r"--\w+", usage)) == sorted(flags)


def test_no_row_to_measure_exits_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message names the flag that excludes the rows."""
    assert benchmark.main(["steps", *TINY, "--rows=python_grpc"]) == 1
    assert capsys.readouterr().err.endswith("excluded by --no_peers\n")
    program = tmp_path / "bazel-bin/tests/benchmark/benchmark"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    assert benchmark.main(["steps", "--rows=python_grpc", f"--against={tmp_path}"]) == 1
    assert capsys.readouterr().err.endswith("excluded by --against\n")


def _fail(error: type[Exception], name: str, seconds: float) -> Figures:
    raise error("expected this, found that")


@contextlib.contextmanager
def _exit(name: str) -> Iterator[Turn]:
    os._exit(3)
    yield lambda seconds: {}


SUITES = {
    "failing": Suite(
        "failing",
        "rows that fail",
        [
            Case(
                "Failing",
                [
                    Row("good", "good row", turns(lambda name, seconds: {"us": 1.0})),
                    Row("failing", "failing row", turns(_fail, ValueError), ("good",)),
                    Row("unavailable", "unavailable row", turns(_fail, RowUnavailable)),
                    Row("ending", "ending row", _exit),
                ],
                ("us",),
            )
        ],
        "tests.benchmark.benchmark_test",
    )
}


def test_a_failed_row_is_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other rows are measured. A row that the machine does not support is no failure."""
    measurement = Measurement(
        SUITES["failing"], Plan(frozenset(SUITES["failing"].labels), 2, 0.01, True, "tandem-benchmark-failing")
    )
    (found,) = measurement.run()
    assert [row.key for row in found.rows] == ["good"]
    assert found.builds["this"]["good"]["us"] == [1, 1]
    assert measurement.failed == {"failing failing", "failing ending"}
    assert capsys.readouterr().err.count("expected this, found that") == 2
    monkeypatch.setitem(benchmark.SUITES, "failing", SUITES["failing"])
    (tmp_path / "deaths.png").mkdir()
    assert benchmark.main(["failing", "deaths", *TINY, "--rows=good,failing,block", f"--out={tmp_path}"]) == 1
    shown = capsys.readouterr()
    assert "| good row " in shown.out and "A dead engine" in shown.out
    assert shown.err.endswith("found that these failed: failing failing, files of deaths\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupt_ends_all_processes(number: signal.Signals) -> None:
    """The exit code is 130, with one line of text; no process and no region is left."""
    before = leftovers()
    command = [sys.executable, "-P", "-m", "tests.benchmark.benchmark", "steps", *TINY, "--rounds=1000"]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.Popen(
        [*command, "--rows=host_block,python_adaptive,python_pipe"], env=variables, stderr=subprocess.PIPE, text=True
    )
    assert run.stderr is not None
    assert "round 1 of 1000" in run.stderr.readline()
    run.send_signal(number)
    _, errors = run.communicate(timeout=60)
    if number != signal.SIGKILL:
        assert run.returncode == 130
        assert errors.endswith("tandem: interrupted\n") and "Traceback" not in errors
    wait_until_no_more_leftovers(before)
