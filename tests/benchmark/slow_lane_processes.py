"""Workers for a daemon that is measured, its table, and what it and its proxies take of the machine."""

import contextlib
import os
import re
import sqlite3
import time
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")  # what /proc counts CPU time in
STEP_PRINTER = Path(__file__).with_name("slow_lane_step_printer")

_POLL_SECS = 0.005


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
