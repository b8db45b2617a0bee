"""Workers for a daemon that is measured, its table, and the CPU time and memory of processes."""

import contextlib
import os
import re
import sqlite3
import sys
import time
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")  # a second, in /proc's CPU times
STEP_PRINTER = Path(__file__).with_name("slow_lane_step_printer")
EVENTS_OF_RUN = "SELECT max(seq_id) FROM lifecycle WHERE run_id = ?"
ROWS_OF_RUN = "SELECT max(seq_id) FROM step_rows WHERE run = (SELECT run FROM runs WHERE run_id = ?)"

_POLL_SECS = 0.005


def printer_command(steps: int, *, hz: float = 0, block: int = 50, gate: Path | None = None) -> list[str]:
    """Returns a worker that uses little CPU time.

    Args:
      steps: How many it prints.
      hz: How many a second; 0: as fast as possible.
      block: How many it writes at once.
      gate: A file for whose creation it waits; None: it begins at once.

    Returns:
      Its program and its arguments.
    """
    return [str(STEP_PRINTER), f"--steps={steps}", f"--hz={hz}", f"--block={block}", f"--gate={gate or ''}"]


def python_command(*arguments: str) -> list[str]:
    """Returns a command that runs this Python; it needs this process's PYTHONPATH."""
    return [sys.executable, "-P", *arguments]


def open_table(path: Path) -> sqlite3.Connection:
    """Opens a database for reading alone."""
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True)


def wait_for_rows(path: Path, select: str, argument: str, rows: int, timeout_secs: float = 300.0) -> None:
    """Waits until so many rows are in a table: rows that a reader sees are durable.

    Args:
      path: The database.
      select: A cheap query for their number.
      argument: Of the query.
      rows: How many.
      timeout_secs: How long to wait at most.

    Raises:
      RuntimeError: The time is over.
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
    """Returns the CPU time of a process so far; None: it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_bytes(pid: int) -> int | None:
    """Returns a process's private memory without files' pages; None: it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text("utf-8")
    except OSError:
        return None
    found = re.search(r"^RssAnon:\s+(\d+) kB", status, re.MULTILINE)
    return int(found[1]) * 1024 if found else None
