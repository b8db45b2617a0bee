"""A daemon of one's own, runs for it, and what it and its proxies take of the machine."""

import contextlib
import os
import re
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tandem.telemetry import TrainerClient

TICKS = os.sysconf("SC_CLK_TCK")  # what /proc counts CPU time in
PROGRAM = Path(__file__).parents[2] / "slow_lane/daemon/tandem-daemon"
STEP_PRINTER = Path(__file__).with_name("slow_lane_step_printer")

_STOP_SECS = 60.0
_POLL_SECS = 0.005


class DaemonProcess:
    """A daemon at work.

    Attributes:
      data_dir: Where its files lie.
      address: HOST:PORT.
      pid: Its process.
    """

    def __init__(self, process: subprocess.Popen[str], data_dir: Path, address: str) -> None:
        """Knows it; `serving` starts one."""
        self.data_dir, self.address, self.pid = data_dir, address, process.pid

    @property
    def table(self) -> Path:
        """Its database."""
        return self.data_dir / "tandem.db"

    def output_of(self, run_id: str) -> Path:
        """The file that a run's worker prints to."""
        return self.data_dir / "runs" / run_id / "stdout.jsonl"

    def proxies(self) -> list[int]:
        """The processes that are its runs' proxies."""
        return proxies_of(self.data_dir)


def proxies_of(data_dir: Path) -> list[int]:
    """The processes that are proxies of a data folder's runs."""
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        with contextlib.suppress(OSError):  # it has ended
            words = (process / "cmdline").read_bytes().split(b"\0")
            if words[1:2] == [b"proxy"] and (process / "cwd").resolve() == data_dir:
                found.append(int(process.name))
    return found


@contextlib.contextmanager
def serving(data_dir: Path, *flags: str, program: Path = PROGRAM) -> Iterator[DaemonProcess]:
    """Starts a daemon; at the end cancels its runs, and ends it.

    Args:
      data_dir: Where its files go.
      flags: More for its command line.
      program: The daemon.

    Yields:
      The daemon, which listens.

    Raises:
      RuntimeError: It did not start, or ended with an error; its own message is on stderr.
    """
    # In a session of its own: Ctrl-C is for this process, which then ends the runs first.
    process = subprocess.Popen(
        [program, f"--data_dir={data_dir}", "--listen=127.0.0.1:0", *flags],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        found = re.search(r"listening on (127\.0\.0\.1:\d+)", line)
        if not found:
            raise RuntimeError(f"expected {program} to say where it listens, found {line!r}")
        yield DaemonProcess(process, data_dir.resolve(), found[1])
        _cancel_all(found[1])
    except BaseException:
        with contextlib.suppress(Exception):  # what went wrong first is what counts
            _cancel_all(found[1] if found else "")
        raise
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(_STOP_SECS)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        process.stdout.close()
    if code != 0:
        raise RuntimeError(f"expected {program} to end with exit code 0, found {code}")


def _cancel_all(address: str) -> None:
    with TrainerClient(address) as client:
        for run in client.runs():
            if not run.status.final:
                client.cancel(run.run_id)


def config_of(command: Sequence[str | Path], **environment: str) -> dict[str, Any]:
    """Makes a run's configuration.

    Args:
      command: The worker's program and its arguments.
      environment: Variables for it.

    Returns:
      The configuration, with all that is required.
    """
    return {
        "run_name": "benchmark",
        "entry_point": str(command[0]),
        "arguments": [str(word) for word in command[1:]],
        "environment": environment,
        "resources": {"cpus": 1, "memory_mb": 256, "gpus": {"requested": 0, "mandatory": False}},
        "artifacts": {"output_prefix": "benchmark", "persist_logs": True, "keep_checkpoints": False},
    }


def printer_command(steps: int, *, hz: float = 0, block: int = 50, gate: Path | None = None) -> list[str]:
    """A worker that takes next to nothing of the machine.

    Args:
      steps: How many it prints.
      hz: How many a second; 0: as fast as it can.
      block: How many it writes at once.
      gate: It begins once this file is there; None: at once.

    Returns:
      Its program and its arguments.
    """
    return [str(STEP_PRINTER), f"--steps={steps}", f"--hz={hz}", f"--block={block}", f"--gate={gate or ''}"]


def wait_until(holds: Callable[[], bool], expected: str, timeout_secs: float = 60.0) -> None:
    """Waits until something holds.

    Args:
      holds: Whether it does.
      expected: What that is, for the message.
      timeout_secs: How long to wait at most.

    Raises:
      RuntimeError: It did not in time.
    """
    end = time.monotonic() + timeout_secs
    while not holds():
        if time.monotonic() > end:
            raise RuntimeError(f"expected {expected} within {timeout_secs:g} s, found that it is not so")
        time.sleep(_POLL_SECS)


def open_table(path: Path) -> sqlite3.Connection:
    """Opens a database for reading alone."""
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True)


def wait_for_rows(path: Path, select: str, argument: str, rows: int, timeout_secs: float = 300.0) -> None:
    """Returns as soon as so many rows are in a table: what a reader sees there is durable.

    Args:
      path: The database.
      select: What finds how many there are, cheaply.
      argument: Of the statement.
      rows: How many are waited for.
      timeout_secs: How long to wait at most.

    Raises:
      RuntimeError: They did not come in time.
    """
    end = time.monotonic() + timeout_secs
    with contextlib.closing(open_table(path)) as table:
        while True:
            (found,) = table.execute(select, (argument,)).fetchone()
            if (found or 0) >= rows:
                return
            if time.monotonic() > end:
                raise RuntimeError(f"expected {rows} rows within {timeout_secs:g} s, found {found} in {path}")
            time.sleep(_POLL_SECS)


ROWS_OF_RUN = "SELECT max(seq_id) FROM step_rows WHERE run = (SELECT run FROM runs WHERE run_id = ?)"


def cpu_seconds(pid: int) -> float | None:
    """CPU time of a process so far; None: it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_bytes(pid: int) -> int | None:
    """What a process has in memory that is its own alone and no file's; None: it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text("utf-8")
    except OSError:
        return None
    found = re.search(r"^RssAnon:\s+(\d+) kB", status, re.MULTILINE)
    return int(found[1]) * 1024 if found else None
