"""Helpers for tests and benchmarks of the slow lane: a daemon, its runs, and the state of their processes."""

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

from tandem.telemetry import TlsFiles, TrainerClient

DAEMON = Path(__file__).parents[3] / "slow_lane/daemon/tandem-daemon"

# The limit of each wait. A daemon or a test that needs more time hangs.
DEADLINE_SECS = 60.0

# Precedes a worker's program: `wait_for("name")` waits until the test calls `Gate.open("name")`.
_PREAMBLE = """
import json, os, signal, sys, time
def wait_for(name):
    while not os.path.exists(os.path.join(GATES, name)):
        time.sleep(0.005)
def step(index, **fields):
    event = {"event_type": "step", "episode": index // 100, "step_index": index, "reward": index / 2}
    print(json.dumps(event | fields))
def episode(index, **fields):
    event = {"event_type": "episode", "episode": index, "total_reward": 1.5, "steps": 3}
    print(json.dumps(event | fields))
"""


class Daemon:
    """A daemon with its own data folder and its own port.

    Attributes:
      data_dir: The daemon's data folder.
      address: HOST:PORT.
      pid: The daemon's process id.
      flags: Additional flags for the command line of each start.
    """

    def __init__(
        self,
        data_dir: Path,
        *flags: str,
        program: Path = DAEMON,
        environment: Mapping[str, str] | None = None,
        log: Path | None = None,
    ) -> None:
        """Starts the daemon, and returns when it listens.

        Args:
          data_dir: The daemon's data folder.
          flags: Additional flags; the attribute may change later.
          program: The daemon's program.
          environment: Additional environment variables of the daemon.
          log: A file to which the daemon's stderr is appended; None: this process's stderr.

        Raises:
          RuntimeError: The daemon printed no address.
        """
        self.data_dir = data_dir
        self._program, self.flags, self._log = program, flags, log
        self._environment = {**os.environ, **(environment or {})}
        self._listen = "127.0.0.1:0"
        self.start()

    def start(self) -> None:
        """Starts the daemon again, at the same address.

        Raises:
          RuntimeError: The daemon printed no address.
        """
        with contextlib.ExitStack() as files:
            # The daemon runs in a new session: Ctrl-C reaches only this process, which then ends the runs first.
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
        found = re.search(r"listening on ([\d.]+:\d+)", line)
        if not found:
            self.kill()
            raise RuntimeError(
                f"expected {self._program} to say where it listens, found {line!r}; see {self._log or 'stderr'}"
            )
        self.address = self._listen = found[1]

    @property
    def command(self) -> list[str]:
        """The command that starts the daemon; its runs do not wait for each other, unless a flag says so."""
        own = ["--no_queue", f"--data_dir={self.data_dir}", f"--listen={self._listen}"]
        return [str(self._program), *own, *self.flags]

    @property
    def table(self) -> Path:
        """The path of the daemon's table."""
        return self.data_dir / "tandem.db"

    def output_of(self, run_id: str) -> Path:
        """Returns the path of the file with a run's standard output."""
        return self.data_dir / "runs" / run_id / "stdout.jsonl"

    def kill(self) -> None:
        """Kills the daemon; its runs continue."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Sends SIGTERM to the daemon and waits for its exit; its runs continue.

        Returns:
          The exit code; -9 if SIGKILL was necessary.
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
    """Lets a worker continue past its `wait_for` calls.

    Attributes:
      folder: The folder with a file for each open gate.
    """

    def __init__(self, folder: Path) -> None:
        """Creates the folder."""
        self.folder = folder
        folder.mkdir()

    def open(self, name: str) -> None:
        """Lets `wait_for(name)` in the worker return.

        Args:
          name: The gate's name.
        """
        (self.folder / name).touch()

    def program(self, source: str, *arguments: str) -> dict[str, Any]:
        """Makes the configuration of a run of a Python program.

        Args:
          source: The program; it may call `wait_for`, `step` and `episode`.
          arguments: sys.argv[1:].

        Returns:
          The run's configuration.
        """
        return run_config(sys.executable, "-c", f"GATES = {str(self.folder)!r}\n{_PREAMBLE}{source}", *arguments)


def run_config(program: str | Path, *arguments: str, **environment: str) -> dict[str, Any]:
    """Makes a run's configuration with all required fields.

    Args:
      program: The worker's program.
      arguments: The program's arguments.
      environment: The program's additional environment variables.

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
    data_dir: Path,
    *flags: str,
    program: Path = DAEMON,
    environment: Mapping[str, str] | None = None,
    token_file: Path | None = None,
    tls: TlsFiles | None = None,
) -> Iterator[Daemon]:
    """Starts a daemon; at the end cancels its runs and stops it.

    Args:
      data_dir: The daemon's data folder.
      flags: Additional flags for its command line.
      program: The daemon's program.
      environment: Additional environment variables of the daemon.
      token_file: The file with the access token; None: the daemon requires none.
      tls: The files of a client, if the daemon has --tls_cert.

    Yields:
      The daemon.

    Raises:
      RuntimeError: The daemon did not start, or exited with an error; its message is on stderr.
    """
    daemon = Daemon(data_dir, *flags, program=program, environment=environment)
    try:
        yield daemon
        _cancel_all(daemon, token_file, tls)
    except BaseException:
        with contextlib.suppress(Exception):  # the first error is the one to report
            _cancel_all(daemon, token_file, tls)
        raise
    finally:
        code = daemon.stop()
    if code != 0:
        raise RuntimeError(f"expected {program} to end with exit code 0, found {code}")


def _cancel_all(daemon: Daemon, token_file: Path | None, tls: TlsFiles | None) -> None:
    with TrainerClient(daemon.address, token_file=token_file, tls=tls) as client:
        for run in client.runs():
            if not run.status.final:
                client.cancel(run.run_id)


def wait_until(holds: Callable[[], Any], expected: str, timeout_secs: float = DEADLINE_SECS) -> Any:
    """Polls a function until its result is true.

    Args:
      holds: The function.
      expected: The awaited condition, for the error message.
      timeout_secs: The longest wait, in seconds.

    Returns:
      The function's true result.

    Raises:
      RuntimeError: The result did not become true in time.
    """
    end = time.monotonic() + timeout_secs
    while not (answer := holds()):
        if time.monotonic() > end:
            raise RuntimeError(f"expected {expected} within {timeout_secs:g} s, found that it is not so")
        time.sleep(0.005)
    return answer


def await_worker(folder: Path) -> int:
    """Waits until a run has a worker.

    Args:
      folder: The run's folder.

    Returns:
      The worker's process id.

    Raises:
      RuntimeError: The run had no worker in time.
    """
    record = folder / "worker"
    words = wait_until(lambda: record.exists() and record.read_text("ascii").split(), "the worker's record")
    return int(words[0])


def await_stopped(*pids: int) -> None:
    """Waits until processes that were sent SIGSTOP are stopped: each stops when it is next scheduled.

    Args:
      pids: The process ids.

    Raises:
      RuntimeError: They did not all stop in time.
    """
    wait_until(lambda: {process_state(pid) for pid in pids} == {"T"}, f"processes {pids} to stop")


def proxies_of(data_dir: Path, run_id: str = "") -> list[int]:
    """Finds the live proxies of a daemon's runs.

    Args:
      data_dir: The daemon's data folder.
      run_id: The run whose proxy to find; empty: all runs.

    Returns:
      The proxies' process ids.
    """
    found = {}
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        with contextlib.suppress(OSError):  # the process has exited
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if words[1:2] == ["proxy"] and (process / "cwd").resolve(strict=True) == data_dir.resolve():
                if (not run_id or f"--run_id={run_id}" in words) and not is_forked_worker(process):
                    parent = (process / "stat").read_text("utf-8").rpartition(")")[2].split()[1]
                    found[int(process.name)] = int(parent)
    # Just after the fork, the child also has the proxy's standard output.
    return [pid for pid, parent in found.items() if parent not in found]


def is_forked_worker(process: Path) -> bool:
    """Returns whether a process with a proxy's command line is the child that executes the worker's program next.

    Args:
      process: The process's folder in /proc.

    Returns:
      Whether its standard output is the run's file, as it is when the child makes the worker's record.

    Raises:
      OSError: The process has exited.
    """
    return "stdout.jsonl" in os.readlink(process / "fd/1")


def is_alive(pid: int) -> bool:
    """Returns whether a process exists and is no zombie.

    Args:
      pid: The process id.

    Returns:
      Whether the process is alive.
    """
    return process_state(pid) not in ("", "Z", "X")


def process_state(pid: int) -> str:
    """Returns the state of a process.

    Args:
      pid: The process id.

    Returns:
      The letter that ps shows, such as "S", "T" or "Z"; "" if the process does not exist.
    """
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""
