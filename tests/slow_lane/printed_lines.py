"""Compares the table with what a run's worker printed: each complete line of stdout.jsonl is a row, in order, once."""

import contextlib
import json
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# The worker_id of events that a worker published by gRPC; what it prints has none.
PUBLISHER = "publisher"


@dataclass
class Printed:
    """The lines of a worker's stdout, by kind.

    Attributes:
      steps: episode_index, step_index and reward of each.
      episodes: episode_index and total_reward of each.
      lifecycle: event of each.
      malformed: byte_offset and bytes of each.
      text_lines: How many lines are no events.
      payloads: event and payload of each lifecycle event.
    """

    steps: list[tuple[Any, ...]] = field(default_factory=list)
    episodes: list[tuple[Any, ...]] = field(default_factory=list)
    lifecycle: list[tuple[Any, ...]] = field(default_factory=list)
    malformed: list[tuple[Any, ...]] = field(default_factory=list)
    text_lines: int = 0
    payloads: list[tuple[str, Any]] = field(default_factory=list)


def read_printed(path: Path) -> Printed:
    """Sorts the lines of a worker that has ended; its last line may lack the newline.

    Args:
      path: Its stdout.jsonl; there is none of a run that was cancelled before its worker started.

    Returns:
      What it printed.
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
    elif kind is None and "event" in event:
        printed.lifecycle.append((event["event"],))
        printed.payloads.append((event["event"], event.get("payload")))
    else:
        printed.malformed.append((offset, len(text)))


def check_table(data_dir: Path, run_id: str) -> Printed:
    """Asserts that the table's rows are the worker's lines, in their order, numbered without a gap.

    Args:
      data_dir: The daemon's; the daemon may be at work.
      run_id: A run that has ended.

    Returns:
      What the worker printed.
    """
    printed = read_printed(data_dir / "runs" / run_id / "stdout.jsonl")
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
        _check_published(table, run_id, printed)
    return printed


def _check_published(table: sqlite3.Connection, run_id: str, printed: Printed) -> None:
    """What a worker published is there once, in order, up to what it knows as kept and not beyond what it sent."""
    query = "SELECT source_number, step_index FROM steps WHERE run_id = ? AND worker_id = ? ORDER BY seq_id"
    found = table.execute(query, (run_id, PUBLISHER)).fetchall()
    assert_same(f"{run_id}: published", found, [(number, number) for number in range(1, len(found) + 1)])
    kept, sent = (
        max((payload["last"] for name, payload in printed.payloads if name == event), default=0)
        for event in ("kept", "sends")
    )
    assert kept <= len(found) <= sent, f"{run_id}: {len(found)} published rows"


def assert_same(what: str, found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> None:
    """Asserts that two lists are equal, and names the first difference rather than both lists.

    Args:
      what: What they are lists of.
      found: In the table.
      expected: At the source.
    """
    if found == expected:
        return
    both = zip(found, expected, strict=False)
    place = next((i for i, (one, other) in enumerate(both) if one != other), min(len(found), len(expected)))
    raise AssertionError(
        f"{what}: expected {len(expected)} rows, found {len(found)}; the first difference is at row {place + 1}: "
        f"expected {expected[place : place + 2]}, found {found[place : place + 2]}"
    )
