"""`tandemctl` as its tests need it: run in a folder of the test's own, for a daemon of the test's own."""

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

# What workers have: `wait_for("name")` returns once the test has made that file in the folder it was submitted from.
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
    """A daemon of the test's own, and `tandemctl` for it, which is run in `folder`."""

    def __init__(self, folder: Path, *flags: str) -> None:
        """Starts it."""
        self.folder = folder
        super().__init__(folder / "data", "--gpu_slots=2", *flags)

    @property
    def environment(self) -> dict[str, str]:
        """What tandemctl is run with."""
        return os.environ | {"TANDEM_DAEMON": self.address}

    def ctl(self, *words: str, code: int = DONE, text: str | None = None) -> str:
        """Runs tandemctl; it must end with that code. Gives what it printed, or its complaint."""
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
        """Submits a Python program; gives its run_id."""
        return self.ctl("submit", *flags, "--", sys.executable, "-c", PREAMBLE + source).strip()

    def run(self, run_id: str) -> dict[str, object]:
        """What `list --json` says of a run."""
        for run in json.loads(self.ctl("list", "--json"))["runs"]:
            if run["run_id"] == run_id:
                assert isinstance(run, dict)
                return run
        raise AssertionError(f"{run_id} is not listed")

    def await_run(self, run_id: str, holds: Callable[[dict[str, object]], bool]) -> dict[str, object]:
        """Waits until something holds of a run."""
        end = time.monotonic() + TIMEOUT_SECS
        while time.monotonic() < end:
            if holds(run := self.run(run_id)):
                return run
            time.sleep(0.05)
        raise AssertionError(self.run(run_id))

    def await_state(self, run_id: str, state: str) -> dict[str, object]:
        """Waits until a run is in that state."""
        return self.await_run(run_id, lambda run: run["state"] == state)

    @contextlib.contextmanager
    def started(self, *words: str) -> Iterator["subprocess.Popen[str]"]:
        """Runs tandemctl beside the test."""
        with subprocess.Popen(
            [*CTL, *words], stdout=subprocess.PIPE, text=True, cwd=self.folder, env=self.environment
        ) as process:
            try:
                yield process
            finally:
                process.kill()


def read_until(process: "subprocess.Popen[str]", part: str) -> str:
    """Reads lines until one has `part` in it, which it gives."""
    assert process.stdout is not None
    for line in process.stdout:
        if part in line:
            return line
    raise AssertionError(f"it ended without {part!r}, exit code {process.wait()}")


@contextlib.contextmanager
def running(folder: Path, *flags: str) -> Iterator[CtlDaemon]:
    """A daemon whose runs are ended in the end."""
    daemon = CtlDaemon(folder, *flags)
    try:
        yield daemon
    finally:
        daemon.ctl("cancel", "--all")
        daemon.stop()


@pytest.fixture(name="daemon")
def daemon_fixture(tmp_path: Path) -> Iterator[CtlDaemon]:
    """One with no flags."""
    with running(tmp_path) as started:
        yield started
