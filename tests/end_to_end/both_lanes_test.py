"""A run under the daemon that steps an engine with frames: events are stored, frames are shown, nothing is left.

Runs the program of tools/both_lanes, with the real daemon, proxy, engine and renderer.
"""

import json
import os
import re
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tandem.telemetry import RunStatus, TrainerClient
from tandem.testing.daemons import is_alive, running_daemon
from tandem.testing.engines import start_python, watchdog  # noqa: F401, a fixture
from tests.frames.frame_watcher import FrameWatcher

_PROGRAM = Path("tools/run_both_lanes.py")
_ENVS = 8


class _Lanes:
    """The running program.

    Attributes:
      data_dir: The daemon's data folder.
      lines: The program's output so far.
    """

    def __init__(self, data_dir: Path, *flags: str) -> None:
        self.data_dir = data_dir
        self.lines: list[str] = []
        self.process = start_python(_PROGRAM, f"--data_dir={data_dir}", f"--num_envs={_ENVS}", *flags)

    def wait_for(self, pattern: str) -> str:
        """Reads lines until one matches, and returns the match's first group."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            if found := re.search(pattern, line):
                return found[1]
        raise AssertionError(f"expected a line with {pattern}, found {self.lines}")

    def end(self) -> int:
        """Waits for the program's exit, and returns its exit code."""
        out, _ = self.process.communicate()
        self.lines += out.splitlines(keepends=True)
        return self.process.returncode


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    """Returns a data folder; after a failed test kills the processes that still use it."""
    yield tmp_path / "data"
    pid_file = tmp_path / "data/daemon.pid"
    tokens = [launch["token"] for launch in map(_read_json, (tmp_path / "data/runs").glob("*/launch.json"))]
    left = [pid for token in tokens for pid in _processes(token)]
    if pid_file.exists() and "tandem-daemon" in _command(pid := int(pid_file.read_text())):
        left.append(pid)
    for pid in left:
        os.kill(pid, signal.SIGKILL)


def _read_json(path: Path) -> Any:
    return json.loads(path.read_bytes())


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text("utf-8")
    except OSError:
        return ""


def _processes(token: str) -> list[int]:
    """Returns the processes of a run, by the run token in their environment."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and token.encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
        except OSError:
            continue  # the process has exited, or is another user's
    return found


def _events(run: Path) -> list[dict[str, Any]]:
    """Returns the worker's events on complete lines."""
    return [json.loads(line) for line in (run / "stdout.jsonl").read_bytes().split(b"\n")[:-1] if line]


def _check_table(data_dir: Path, run: Path) -> int:
    """Checks that the table's episodes are the printed ones, in order; returns their number."""
    printed = [event for event in _events(run) if event.get("event_type") == "episode"]
    table = sqlite3.connect(f"file:{data_dir / 'tandem.db'}?mode=ro", uri=True)
    rows = table.execute(
        "SELECT seq_id, episode_index, total_reward, steps, truncated, metadata_json ->> 'env' FROM episodes"
        " WHERE run_id = ? ORDER BY seq_id",
        (run.name,),
    ).fetchall()
    table.close()
    assert rows == [
        (number, event["episode"], event["total_reward"], event["steps"], event["truncated"], event["metadata"]["env"])
        for number, event in enumerate(printed, 1)
    ]
    return len(rows)


def test_run_is_shown_and_stored_and_cancel_ends_all_processes(data_dir: Path) -> None:
    """Frames change while the daemon stores episodes; after Ctrl-C engine, region and daemon do not exist."""
    lanes = _Lanes(data_dir, "--iterations=1000000")
    daemon = int(lanes.wait_for(r"started a daemon, pid (\d+)"))
    run = data_dir / "runs" / lanes.wait_for(r"submitted run (\S+)")
    region = lanes.wait_for(r"--run=(\S+)")
    token = _read_json(run / "launch.json")["token"]
    with FrameWatcher(region) as watcher:
        first = watcher.wait()
        later = watcher.wait(after=first.number + 5)
        assert later.metadata["step"] > first.metadata["step"] and later.metadata["envs"] == [0, 1, 2, 3]
        assert later.pixels.shape == (480, 640, 3) and (later.pixels != first.pixels).any()
        lanes.wait_for(r"(\d+) episodes kept")
        while watcher.wait(after=later.number).metadata["episodes"] < _ENVS:
            later = watcher.wait(after=later.number)
    engines = [pid for pid in _processes(token) if f"--name={region}" in _command(pid)]
    assert len(engines) == 1 and is_alive(daemon)

    lanes.process.send_signal(signal.SIGINT)
    assert lanes.end() == 130, lanes.lines
    assert _processes(token) == [] and not is_alive(engines[0]) and not is_alive(daemon)
    assert [path.name for path in Path("/dev/shm").iterdir() if region in path.name] == []
    kept = _check_table(data_dir, run)
    assert kept >= _ENVS and f"{kept} episodes" in "".join(lanes.lines)
    with running_daemon(data_dir) as again, TrainerClient(again.address) as client:
        (record,) = client.runs()
        assert (record.run_id, record.status, record.failure_reason) == (run.name, RunStatus.TERM, "cancelled")


def test_run_that_exits_is_stored_completely(data_dir: Path) -> None:
    """Every episode is stored, and the printed query finds them; a running daemon is used, and continues."""
    with running_daemon(data_dir) as daemon:
        lanes = _Lanes(data_dir, "--iterations=3")
        assert lanes.wait_for(r"using the daemon .* pid (\d+)") == str(daemon.pid)
        run = data_dir / "runs" / lanes.wait_for(r"submitted run (\S+)")
        assert lanes.end() == 0, lanes.lines
        assert is_alive(daemon.pid)
    assert _check_table(data_dir, run) == 3 * _ENVS
    names = [event["event"] for event in _events(run) if "event" in event]
    assert names == ["run_started", "engine_started", *3 * ["iteration"], "run_completed"]
    shown = "".join(lanes.lines)
    answer = subprocess.run(
        ["sh", "-c", shown[shown.index("sqlite3 ") :]], check=True, capture_output=True, text=True
    ).stdout
    assert len(answer.splitlines()) == 8 and sum(int(line.split("|")[4]) for line in answer.splitlines()) == 3 * 8_000


def test_failed_run_is_reported(data_dir: Path) -> None:
    """The error has the worker's own text."""
    lanes = _Lanes(data_dir, "--task=NoSuchTask-v0")
    _, error = lanes.process.communicate()
    assert lanes.process.returncode == 1 and "NoSuchTask-v0" in error
