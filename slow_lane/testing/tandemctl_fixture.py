"""`tandemctl` for tests: runs it in a test's own folder, with the test's own daemon."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tandem.testing.daemons import Daemon

CTL = (sys.executable, "-m", "tandemctl")
TIMEOUT_SECS = 120
DONE, FAILED, WRONG_USAGE, NOT_WELL = 0, 1, 2, 3

# Precedes a worker's program: `wait_for("name")` returns when that file exists in the folder of the submission.
PREAMBLE = """
import json, os, sys, time
def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.005)
def step(index, **more):
    print(json.dumps({"event_type": "step", "episode": index // 10, "step_index": index % 10,
                      "reward": index / 3, **more}))
def episode(index, **more):
    print(json.dumps({"event_type": "episode", "episode": index, "total_reward": index / 7, "steps": 10,
                      "terminated": True, **more}))
"""


class CtlDaemon(Daemon):
    """A daemon for one test, and `tandemctl` for it, which runs in `folder`."""

    def __init__(self, folder: Path, *flags: str) -> None:
        """Starts the daemon."""
        self.folder = folder
        super().__init__(folder / "data", "--gpu_slots=2", *flags)

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of tandemctl."""
        return os.environ | {"TANDEM_DAEMON": self.address}

    def ctl(self, *words: str, code: int = DONE, text: str | None = None) -> str:
        """Runs tandemctl, checks its exit code, and returns its stdout, or its stderr after an error."""
        done = subprocess.run(
            [*CTL, *words],
            capture_output=True,
            text=True,
            input=text,
            cwd=self.folder,
            env=self.environment,
            timeout=TIMEOUT_SECS,
            check=False,
        )
        assert done.returncode == code, (done.stdout, done.stderr)
        return done.stdout if code in (DONE, NOT_WELL) else done.stderr

    def submit(self, source: str, *flags: str) -> str:
        """Submits a Python program, and returns its run_id."""
        return self.ctl("submit", *flags, "--", sys.executable, "-c", PREAMBLE + source).strip()

    def run(self, run_id: str) -> dict[str, object]:
        """Returns a run's object from `list --json`."""
        for run in json.loads(self.ctl("list", "--json"))["runs"]:
            if run["run_id"] == run_id:
                assert isinstance(run, dict)
                return run
        raise AssertionError(f"{run_id} is not listed")

    def await_run(self, run_id: str, holds: Callable[[dict[str, object]], bool]) -> dict[str, object]:
        """Waits until a run satisfies a condition, and returns its object."""
        end = time.monotonic() + TIMEOUT_SECS
        while time.monotonic() < end:
            if holds(run := self.run(run_id)):
                return run
            time.sleep(0.05)
        raise AssertionError(self.run(run_id))

    def await_state(self, run_id: str, state: str) -> dict[str, object]:
        """Waits until a run has the given state."""
        return self.await_run(run_id, lambda run: run["state"] == state)

    @contextlib.contextmanager
    def started(self, *words: str) -> Iterator["subprocess.Popen[str]"]:
        """Starts tandemctl, and kills it at the end of the block."""
        with subprocess.Popen(
            [*CTL, *words], stdout=subprocess.PIPE, text=True, cwd=self.folder, env=self.environment
        ) as process:
            try:
                yield process
            finally:
                process.kill()


def read_until(process: "subprocess.Popen[str]", part: str) -> str:
    """Reads lines until one contains `part`, and returns that line."""
    assert process.stdout is not None
    for line in process.stdout:
        if part in line:
            return line
    raise AssertionError(f"it ended without {part!r}, exit code {process.wait()}")


@contextlib.contextmanager
def running(folder: Path, *flags: str) -> Iterator[CtlDaemon]:
    """Starts a daemon; at the end cancels its runs and stops it."""
    daemon = CtlDaemon(folder, *flags)
    try:
        yield daemon
    finally:
        daemon.ctl("cancel", "--all")
        daemon.stop()


@pytest.fixture(name="daemon")
def daemon_fixture(tmp_path: Path) -> Iterator[CtlDaemon]:
    """A daemon without additional flags."""
    with running(tmp_path) as started:
        yield started
