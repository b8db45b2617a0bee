"""Measures the step round trip of Tandem and of what it is compared with, in one run.

The rows take turns, a group of exchanges each, for several rounds, so that whatever else the machine does hits all of
them alike. See docs/benchmarks.md.
"""

import argparse
import contextlib
import dataclasses
import datetime
import glob
import json
import os
import platform
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.benchmark import calls, frames, messages, report, together
from tests.benchmark.deaths import measure_deaths
from tests.benchmark.measurement import BASELINE, LADDER, ROWS, SIZES, Group, Row, Size, measure_cpp
from tests.benchmark.python_rows import measure_python


def machine() -> dict[str, Any]:
    """Says on what this runs."""
    cpu = platform.processor()
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                cpu = line.split(":", 1)[1].strip()
                break
    return {
        "cores": len(os.sched_getaffinity(0)),
        "cpu": cpu,
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "load_average": os.getloadavg(),
    }


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        prog="tools/benchmark", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer and shorter groups: seconds instead of minutes")
    parser.add_argument("--profile", action="store_true", help="what Tandem adds to bare spinning, one thing at a time")
    parser.add_argument("--frames", action="store_true", help="instead: frames a second into a frame ring")
    parser.add_argument("--messages", action="store_true", help="instead: messages from a process to another")
    parser.add_argument("--together", action="store_true", help="instead: steps beside calls and streams")
    parser.add_argument("--rounds", type=int, help="groups of each row (9; with --quick or --together 3)")
    parser.add_argument("--steps", type=int, default=100_000, help="with --together: of a run (100000)")
    parser.add_argument("--calls", type=int, default=10_000, help="with --together: of a run, two threads' (10000)")
    parser.add_argument("--envs", type=int, default=4, help="with --together: of the engine, two or more (4)")
    parser.add_argument("--exchanges", type=int, help="exchanges of a group, at most")
    parser.add_argument("--seconds", type=float, help="seconds of a group, at most (0.5; with --quick 0.1)")
    parser.add_argument("--json", metavar="FILE", help="write all figures, the machine and the command there")
    parser.add_argument("--out", metavar="PNG", help="draw the picture there, such as round_trip.png")
    parsed = parser.parse_args(arguments)
    parsed.rounds = parsed.rounds or (3 if parsed.quick or parsed.together else 9)
    parsed.seconds = parsed.seconds or (0.1 if parsed.quick else 0.5)
    return parsed


def remove_regions(prefix: str) -> None:
    """Removes what killed engines left; engines that ended by themselves leave nothing."""
    for path in glob.glob(f"/dev/shm/{prefix}*") + glob.glob(f"/dev/shm/.{prefix}*"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def measure_all(
    rows: Sequence[Row], sizes: Sequence[Size], rounds: int, seconds: float
) -> list[dict[str, list[Group]]]:
    """Measures every row at every size in every round, the rows in turn.

    Args:
      rows: The rows; the baseline is among them.
      sizes: The sizes.
      rounds: How many groups of each.
      seconds: End a group after that long.

    Returns:
      For each size, the groups of each row.
    """
    prefix = f"tandem-benchmark-{os.getpid()}-{time.time_ns()}"
    found: list[dict[str, list[Group]]] = [{row.key: [] for row in rows} for _ in sizes]
    started = time.monotonic()
    try:
        for number in range(rounds):
            for size, groups in zip(sizes, found, strict=True):
                # Another row begins in each round: the first may find the machine colder.
                first = number % len(rows)
                for row in [*rows[first:], *rows[:first]]:
                    measure = measure_python if row.python else measure_cpp
                    groups[row.key].append(measure(row, size, seconds, f"{prefix}-{row.key}"))
                print(
                    f"round {number + 1} of {rounds}, {size}: bare spin {groups[BASELINE][-1].step_p50 / 1e3:.2f} us; "
                    f"{time.monotonic() - started:.0f} s so far",
                    file=sys.stderr,
                    flush=True,
                )
    finally:
        remove_regions(prefix)
    return found


def measure_killed(kills: int) -> dict[str, list[int]]:
    """As `measure_deaths`, and removes what the killed engines left."""
    prefix = f"tandem-benchmark-{os.getpid()}-{time.time_ns()}"
    try:
        return measure_deaths(kills, prefix)
    finally:
        remove_regions(prefix)


def measure_calls_of_python(rounds: int, seconds: float) -> dict[str, calls.Calls]:
    """As `calls.measure_calls`, and removes what an interrupt left."""
    prefix = f"tandem-benchmark-{os.getpid()}-{time.time_ns()}"
    try:
        return calls.measure_calls(rounds, seconds, prefix)
    finally:
        remove_regions(prefix)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints tables, writes files.

    Args:
      arguments: The command line; None: the process's own.

    Returns:
      The exit code.
    """
    parsed = parse_arguments(arguments)
    rows = LADDER if parsed.profile else ROWS
    sizes: list[Size] = [SIZES[0]] if parsed.profile else list(SIZES)
    limit = parsed.exchanges or (500 if parsed.quick else None)
    if limit:
        sizes = [replace(size, exchanges=min(limit, size.exchanges)) for size in sizes]

    about = {
        "command": shlex.join(["tools/benchmark", *(sys.argv[1:] if arguments is None else arguments)]),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "rounds": parsed.rounds,
        "seconds": parsed.seconds,
    }
    print(
        f"{about['command']}, {about['date']}, {about['machine']['cores']} cores of {about['machine']['cpu']}",
        flush=True,
    )
    if parsed.frames:
        cases = frames.measure_frames(parsed.rounds, parsed.seconds)
        unseen = frames.measure_unseen(parsed.seconds)
        print("\n" + frames.table(cases, parsed.rounds, unseen))
        if parsed.json:
            found_frames = {**about, "frames": [dataclasses.asdict(case) for case in cases], "unseen_ns": unseen}
            Path(parsed.json).write_text(json.dumps(found_frames, indent=1) + "\n", encoding="utf-8")
        return 0
    if parsed.messages:
        messages_of = messages.measure_messages(parsed.rounds, parsed.seconds)
        for messages_case in messages_of:
            print("\n" + messages.table(messages_case, parsed.rounds))
        calls_of = measure_calls_of_python(parsed.rounds, parsed.seconds)
        print("\n" + calls.table(calls_of, parsed.rounds))
        if parsed.json:
            found_messages = {
                **about,
                "messages": [dataclasses.asdict(one) for one in messages_of],
                "calls": {wait: dataclasses.asdict(one) for wait, one in calls_of.items()},
            }
            Path(parsed.json).write_text(json.dumps(found_messages, indent=1) + "\n", encoding="utf-8")
        return 0
    if parsed.together:
        region = f"tandem-benchmark-{os.getpid()}-{time.time_ns()}-together"
        together_of = together.measure_together(parsed.rounds, parsed.steps, parsed.calls // 2, parsed.envs, region)
        print("\n" + together.table(together_of, parsed.rounds))
        if parsed.json:
            found_together = {**about, "together": dataclasses.asdict(together_of)}
            Path(parsed.json).write_text(json.dumps(found_together, indent=1) + "\n", encoding="utf-8")
        return 0
    found = measure_all(rows, sizes, parsed.rounds, parsed.seconds)
    kills = 0 if parsed.profile else 20 if parsed.quick else 100
    killed = measure_killed(kills) if kills else {}
    deaths = {wait: report.Deaths.of(nanos) for wait, nanos in killed.items()}
    summaries = [report.summarise(groups) for groups in found]
    for size, summary in zip(sizes, summaries, strict=True):
        print("\n" + report.table(size, rows, summary, parsed.rounds))
    if deaths:
        print("\n" + report.table_of_deaths(deaths, kills))
    if parsed.json:
        results = [
            {
                "size": dataclasses.asdict(size),
                "rows": {
                    row.key: {
                        "label": row.label,
                        "summary": dataclasses.asdict(summary[row.key]),
                        "groups_ns": [dataclasses.asdict(group) for group in groups[row.key]],
                    }
                    for row in rows
                },
            }
            for size, groups, summary in zip(sizes, found, summaries, strict=True)
        ]
        notice = {
            wait: {"summary": dataclasses.asdict(deaths[wait]), "kills_ns": nanos} for wait, nanos in killed.items()
        }
        found_all = {**about, "results": results, "deaths": notice}
        Path(parsed.json).write_text(json.dumps(found_all, indent=1) + "\n", encoding="utf-8")
    if parsed.out:
        report.draw(parsed.out, rows, sizes, summaries)
    return 0


def run() -> int:
    """Runs `main` as a program: a signal or a failed row ends it with one line."""
    # Both may come ignored from a shell that put us into the background, and the engines would inherit that.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        return main()
    except KeyboardInterrupt:
        print("tandem: interrupted", file=sys.stderr)
        return 130
    except subprocess.SubprocessError as error:
        print(f"tandem: {error}\nNext: run that command by hand.", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(run())
