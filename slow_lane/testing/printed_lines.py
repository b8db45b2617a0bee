"""Compares the table with a worker's output: each complete line of stdout.jsonl is one row, in order."""

import contextlib
import json
import math
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# The worker_id of events published by gRPC; printed events have none.
PUBLISHER = "publisher"


@dataclass
class Printed:
    """The lines of a worker's stdout, by kind.

    Attributes:
      steps: episode_index, step_index and reward of each step.
      episodes: episode_index and total_reward of each episode.
      lifecycle: The event name of each lifecycle event.
      malformed: byte_offset and length in bytes of each malformed line.
      text_lines: The number of text lines.
      scalars: step, name and value of each number; NaN is None.
      payloads: The event name and payload of each lifecycle event.
    """

    steps: list[tuple[Any, ...]] = field(default_factory=list)
    episodes: list[tuple[Any, ...]] = field(default_factory=list)
    lifecycle: list[tuple[Any, ...]] = field(default_factory=list)
    malformed: list[tuple[Any, ...]] = field(default_factory=list)
    scalars: list[tuple[Any, ...]] = field(default_factory=list)
    text_lines: int = 0
    payloads: list[tuple[str, Any]] = field(default_factory=list)


def read_printed(path: Path) -> Printed:
    """Sorts the lines of an ended worker; the last line may lack the newline.

    Args:
      path: The worker's stdout.jsonl; absent if the run was cancelled before its worker started.

    Returns:
      The worker's lines.
    """
    printed = Printed()
    offset = 0
    *complete, rest = path.read_bytes().split(b"\n") if path.exists() else [b""]
    for line in [*complete, rest] if rest else complete:
        _sort(line, offset, printed)
        offset += len(line) + 1
    return printed


def _sort(text: bytes, offset: int, printed: Printed) -> None:
    if not text.lstrip(b" \t").startswith(b"{"):
        printed.text_lines += 1
        return
    try:
        event = json.loads(text)
    except ValueError:
        event = {}
    kind = event.get("event_type")
    if kind == "step" and event["episode"] >= 0:
        printed.steps.append((event["episode"], event["step_index"], event["reward"]))
    elif kind == "episode":
        printed.episodes.append((event["episode"], event["total_reward"]))
    elif kind == "scalars":
        numbers = ((name, float(value)) for name, value in event["scalars"].items())
        printed.scalars.extend((event["step"], name, None if math.isnan(value) else value) for name, value in numbers)
    elif kind is None and "event" in event:
        printed.lifecycle.append((event["event"],))
        printed.payloads.append((event["event"], event.get("payload")))
    else:
        printed.malformed.append((offset, len(text)))


def check_table(data_dir: Path, run_id: str, output: Path | None = None) -> Printed:
    """Asserts that the table's rows are the worker's lines, in order, numbered without a gap.

    Args:
      data_dir: The daemon's data folder; the daemon may be running.
      run_id: An ended run.
      output: The worker's stdout.jsonl; None: the one in the data folder.

    Returns:
      The worker's lines.
    """
    printed = read_printed(output or data_dir / "runs" / run_id / "stdout.jsonl")
    with contextlib.closing(sqlite3.connect(f"file:{data_dir}/tandem.db?mode=ro", uri=True, timeout=30)) as table:

        def rows(view: str, columns: str) -> list[tuple[Any, ...]]:
            order = f"FROM {view} WHERE run_id = ? ORDER BY seq_id"
            found = table.execute(f"SELECT seq_id, coalesce(worker_id, ''), {columns} {order}", (run_id,)).fetchall()
            assert [row[0] for row in found] == list(range(1, len(found) + 1)), f"{run_id}: numbers of {view}"
            return [row[2:] for row in found if row[1] != PUBLISHER]

        assert_same(f"{run_id}: steps", rows("steps", "episode_index, step_index, reward"), printed.steps)
        assert_same(f"{run_id}: episodes", rows("episodes", "episode_index, total_reward"), printed.episodes)
        assert_same(f"{run_id}: lifecycle", rows("lifecycle", "event"), printed.lifecycle)
        assert_same(f"{run_id}: malformed", rows("malformed", "byte_offset, bytes"), printed.malformed)
        order = "ORDER BY seq_id, name_id"
        query = "SELECT step, name, value FROM scalar_rows JOIN scalar_names USING (run, name_id) JOIN runs USING (run)"
        numbers = table.execute(f"{query} WHERE run_id = ? {order}", (run_id,)).fetchall()
        assert_same(f"{run_id}: scalars", numbers, printed.scalars)
        _check_published(table, run_id, printed)
    return printed


def _check_published(table: sqlite3.Connection, run_id: str, printed: Printed) -> None:
    """Checks that published steps are stored once and in order: all acknowledged ones, and none that was not sent."""
    query = "SELECT source_number, step_index FROM steps WHERE run_id = ? AND worker_id = ? ORDER BY seq_id"
    found = table.execute(query, (run_id, PUBLISHER)).fetchall()
    assert_same(f"{run_id}: published", found, [(number, number) for number in range(1, len(found) + 1)])
    kept, sent = (
        max((payload["last"] for name, payload in printed.payloads if name == event), default=0)
        for event in ("kept", "sends")
    )
    assert kept <= len(found) <= sent, f"{run_id}: {len(found)} published rows"


def assert_same(what: str, found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> None:
    """Asserts that two lists are equal; the error has the first difference, not both lists.

    Args:
      what: The kind of the lists' items.
      found: The table's rows.
      expected: The worker's lines.
    """
    if found == expected:
        return
    both = zip(found, expected, strict=False)
    place = next((i for i, (one, other) in enumerate(both) if one != other), min(len(found), len(expected)))
    raise AssertionError(
        f"{what}: expected {len(expected)} rows, found {len(found)}; the first difference is at row {place + 1}: "
        f"expected {expected[place : place + 2]}, found {found[place : place + 2]}"
    )
