"""What tests of the slow lane share: a daemon of one's own, and runs for it."""

import contextlib
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DAEMON = Path("slow_lane/daemon/tandem-daemon")

# Before a worker's program: `wait_for("name")` waits until the test has called `Gate.open("name")`.
_PREAMBLE = """
import json, os, sys, time
def wait_for(name):
    while not os.path.exists(os.path.join({folder!r}, name)):
        time.sleep(0.005)
def step(index, **fields):
    event = {{"event_type": "step", "episode": index // 100, "step_index": index, "reward": index / 2}}
    print(json.dumps(event | fields))
def episode(index, **fields):
    event = {{"event_type": "episode", "episode": index, "total_reward": 1.5, "steps": 3}}
    print(json.dumps(event | fields))
"""


class Daemon:
    """A daemon with a data directory of its own, on a port of its own.

    Attributes:
      data_dir: Where its files lie.
      address: HOST:PORT.
      pid: Its process.
    """

    def __init__(self, data_dir: Path, *flags: str) -> None:
        """Starts it, and returns when it listens."""
        self.data_dir = data_dir
        self._flags = flags
        self._listen = "127.0.0.1:0"
        self.start()

    def start(self) -> None:
        """Starts it again, at the same address."""
        self._process = subprocess.Popen(
            [DAEMON.absolute(), f"--data_dir={self.data_dir}", f"--listen={self._listen}", *self._flags],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        found = re.search(r"listening on (127\.0\.0\.1:\d+)", line)
        if not found:
            self.kill()
            raise AssertionError(f"expected a line that says where the daemon listens, found {line!r}")
        self.address = self._listen = found[1]

    def kill(self) -> None:
        """Kills it at once; its runs go on."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Asks it to end, and waits; its runs go on."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        self._process.send_signal(number)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Gate:
    """Tells a worker when to go on.

    Attributes:
      folder: Of its own.
    """

    def __init__(self, folder: Path) -> None:
        """Makes the folder."""
        self.folder = folder
        folder.mkdir()

    def open(self, name: str) -> None:
        """Lets `wait_for(name)` in the worker return.

        Args:
          name: Of the gate.
        """
        (self.folder / name).touch()

    def program(self, source: str) -> dict[str, Any]:
        """Makes a run of a Python program.

        Args:
          source: The program; it may call `wait_for`, `step` and `episode`.

        Returns:
          The run's configuration.
        """
        return run_config(sys.executable, "-c", _PREAMBLE.format(folder=str(self.folder)) + source)


def run_config(entry_point: str, *arguments: str, **environment: str) -> dict[str, Any]:
    """Makes a run's configuration, with all that is required.

    Args:
      entry_point: The program.
      arguments: Its arguments.
      environment: Variables for it.

    Returns:
      The configuration.
    """
    return {
        "run_name": "test",
        "entry_point": entry_point,
        "arguments": list(arguments),
        "environment": environment,
        "resources": {"cpus": 1, "memory_mb": 256, "gpus": {"requested": 0, "mandatory": False}},
        "artifacts": {"output_prefix": "runs/test", "persist_logs": True, "keep_checkpoints": False},
    }


@contextlib.contextmanager
def running_daemon(data_dir: Path, *flags: str) -> Iterator[Daemon]:
    """Starts a daemon; at the end ends all of its runs, and it.

    Args:
      data_dir: Where its files go.
      flags: More for its command line.

    Yields:
      The daemon.
    """
    daemon = Daemon(data_dir, *flags)
    try:
        yield daemon
    finally:
        _cancel_all(daemon)
        daemon.stop()


def _cancel_all(daemon: Daemon) -> None:
    from tandem.telemetry import TrainerClient

    with TrainerClient(daemon.address) as client:
        for run in client.runs():
            if not run.status.final:
                client.cancel(run.run_id)


def is_alive(pid: int) -> bool:
    """Tells whether a process exists and is no zombie.

    Args:
      pid: Its number.

    Returns:
      Whether it is.
    """
    return process_state(pid) not in ("", "Z", "X")


def process_state(pid: int) -> str:
    """Tells what a process is doing.

    Args:
      pid: Its number.

    Returns:
      As ps shows it, such as "S", "T" or "Z"; "" for none.
    """
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""
