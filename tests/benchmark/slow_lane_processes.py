"""Workers for a measured daemon, queries of its table, and the CPU time and memory of processes."""

import contextlib
import os
import re
import sqlite3
import sys
import time
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")  # ticks a second in /proc's CPU times
STEP_PRINTER = Path(__file__).with_name("slow_lane_step_printer")
EVENTS_OF_RUN = "SELECT max(seq_id) FROM lifecycle WHERE run_id = ?"
ROWS_OF_RUN = "SELECT max(seq_id) FROM step_rows WHERE run = (SELECT run FROM runs WHERE run_id = ?)"
SCALARS_OF_RUN = ROWS_OF_RUN.replace("step_rows", "scalar_rows")

_POLL_SECS = 0.005


def printer_command(
    steps: int, *, scalars: int = 0, hz: float = 0, block: int = 50, gate: Path | None = None
) -> list[str]:
    """Returns the command of a worker that uses little CPU time.

    Args:
      steps: The number of steps.
      scalars: The number of events of four scalars, evenly between the steps.
      hz: The events a second; 0: as fast as possible.
      block: The number of events in one write.
      gate: The worker begins when this file exists; None: at once.

    Returns:
      The program and its arguments.
    """
    counts = [f"--steps={steps}", f"--scalars={scalars}"]
    return [str(STEP_PRINTER), *counts, f"--hz={hz}", f"--block={block}", f"--gate={gate or ''}"]


def python_command(*arguments: str) -> list[str]:
    """Returns a command for this Python interpreter; it needs this process's PYTHONPATH."""
    return [sys.executable, "-P", *arguments]


def open_table(path: Path) -> sqlite3.Connection:
    """Opens a database read-only."""
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True)


def wait_for_rows(path: Path, select: str, argument: str, rows: int, timeout_secs: float = 300.0) -> None:
    """Waits until a table has the given number of rows: rows that a reader sees are durable.

    Args:
      path: The database.
      select: A fast query for the number of rows.
      argument: The query's parameter.
      rows: The number to wait for.
      timeout_secs: The longest wait, in seconds.

    Raises:
      RuntimeError: The rows did not come in time.
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


def cpu_seconds(pid: int) -> float | None:
    """Returns the CPU time of a process so far, or None if it has exited."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_bytes(pid: int) -> int | None:
    """Returns a process's private memory without files' pages, or None if it has exited."""
    try:
        status = Path(f"/proc/{pid}/status").read_text("utf-8")
    except OSError:
        return None
    found = re.search(r"^RssAnon:\s+(\d+) kB", status, re.MULTILINE)
    return int(found[1]) * 1024 if found else None
