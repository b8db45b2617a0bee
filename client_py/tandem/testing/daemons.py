"""What tests and benchmarks of the slow lane share: a daemon of one's own, runs for it, and looks at its processes."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tandem.telemetry import TrainerClient

DAEMON = Path(__file__).parents[3] / "slow_lane/daemon/tandem-daemon"

# Of each wait. A daemon or a test that needs more hangs.
DEADLINE_SECS = 60.0

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
      flags: More for its command line, each time.
    """

    def __init__(
        self,
        data_dir: Path,
        *flags: str,
        program: Path = DAEMON,
        environment: Mapping[str, str] | None = None,
        log: Path | None = None,
    ) -> None:
        """Starts it, and returns when it listens.

        Args:
          data_dir: Where its files go.
          flags: More for its command line; may be set again.
          program: What to start.
          environment: Variables for it, besides this process's.
          log: A file that its stderr is added to; None: this process's stderr.

        Raises:
          RuntimeError: It did not say where it listens.
        """
        self.data_dir = data_dir
        self._program, self.flags, self._log = program, flags, log
        self._environment = {**os.environ, **(environment or {})}
        self._listen = "127.0.0.1:0"
        self.start()

    def start(self) -> None:
        """Starts it again, at the same address.

        Raises:
          RuntimeError: It did not say where it listens.
        """
        with contextlib.ExitStack() as files:
            # In a session of its own: Ctrl-C is for this process, which then ends the runs first.
            self._process = subprocess.Popen(
                self.command,
                stdout=subprocess.PIPE,
                stderr=files.enter_context(self._log.open("ab")) if self._log else None,
                text=True,
                env=self._environment,
                start_new_session=True,
            )
        self.pid = self._process.pid
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        found = re.search(r"listening on (127\.0\.0\.1:\d+)", line)
        if not found:
            self.kill()
            raise RuntimeError(
                f"expected {self._program} to say where it listens, found {line!r}; see {self._log or 'stderr'}"
            )
        self.address = self._listen = found[1]

    @property
    def command(self) -> list[str]:
        """What starts it."""
        return [str(self._program), f"--data_dir={self.data_dir}", f"--listen={self._listen}", *self.flags]

    @property
    def table(self) -> Path:
        """Its database."""
        return self.data_dir / "tandem.db"

    def output_of(self, run_id: str) -> Path:
        """The file that a run's worker prints to."""
        return self.data_dir / "runs" / run_id / "stdout.jsonl"

    def kill(self) -> None:
        """Kills it at once; its runs go on."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Asks it to end, and waits; its runs go on.

        Returns:
          Its exit code; -9: it had to be killed.
        """
        return self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> int:
        self._process.send_signal(number)
        try:
            code = self._process.wait(DEADLINE_SECS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        return code


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


def run_config(program: str | Path, *arguments: str, **environment: str) -> dict[str, Any]:
    """Makes a run's configuration, with all that is required.

    Args:
      program: The worker's.
      arguments: Its arguments.
      environment: Variables for it.

    Returns:
      The configuration.
    """
    return {
        "run_name": "test",
        "entry_point": str(program),
        "arguments": list(arguments),
        "environment": environment,
        "resources": {"cpus": 1, "memory_mb": 256, "gpus": {"requested": 0, "mandatory": False}},
        "artifacts": {"output_prefix": "runs/test", "persist_logs": True, "keep_checkpoints": False},
    }


@contextlib.contextmanager
def running_daemon(
    data_dir: Path, *flags: str, program: Path = DAEMON, token_file: Path | None = None
) -> Iterator[Daemon]:
    """Starts a daemon; at the end ends all of its runs, and it.

    Args:
      data_dir: Where its files go.
      flags: More for its command line.
      program: The daemon.
      token_file: The token that it asks its clients for; None: it asks for none.

    Yields:
      The daemon.

    Raises:
      RuntimeError: It did not start, or ended with an error; its own message is on stderr.
    """
    daemon = Daemon(data_dir, *flags, program=program)
    try:
        yield daemon
        _cancel_all(daemon, token_file)
    except BaseException:
        with contextlib.suppress(Exception):  # what went wrong first is what counts
            _cancel_all(daemon, token_file)
        raise
    finally:
        code = daemon.stop()
    if code != 0:
        raise RuntimeError(f"expected {program} to end with exit code 0, found {code}")


def _cancel_all(daemon: Daemon, token_file: Path | None) -> None:
    with TrainerClient(daemon.address, token_file=token_file) as client:
        for run in client.runs():
            if not run.status.final:
                client.cancel(run.run_id)


def wait_until(holds: Callable[[], Any], expected: str, timeout_secs: float = DEADLINE_SECS) -> Any:
    """Asks until the answer is true.

    Args:
      holds: What to ask.
      expected: What is waited for, in words.
      timeout_secs: How long at most.

    Returns:
      The answer.

    Raises:
      RuntimeError: It has not become true.
    """
    end = time.monotonic() + timeout_secs
    while not (answer := holds()):
        if time.monotonic() > end:
            raise RuntimeError(f"expected {expected} within {timeout_secs:g} s, found that it is not so")
        time.sleep(0.005)
    return answer


def proxies_of(data_dir: Path, run_id: str = "") -> list[int]:
    """Finds the proxies of a data directory's runs.

    Args:
      data_dir: The daemon's.
      run_id: The run whose proxy is wanted; empty: all.

    Returns:
      The pids of those that are alive.
    """
    found = {}
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        with contextlib.suppress(OSError):  # it has ended
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if words[1:2] == ["proxy"] and (process / "cwd").resolve(strict=True) == data_dir.resolve():
                if not run_id or f"--run_id={run_id}" in words:
                    parent = (process / "stat").read_text("utf-8").rpartition(")")[2].split()[1]
                    found[int(process.name)] = int(parent)
    # A proxy's child looks like it until it is the worker.
    return [pid for pid, parent in found.items() if parent not in found]


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
