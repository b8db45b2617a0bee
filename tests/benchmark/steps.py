"""The step round trip: on an idle machine, beside busy processes, and what Tandem adds to bare spinning."""

import contextlib
import dataclasses
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmark import report
from tests.benchmark.measurement import (
    BASELINE,
    LADDER,
    ROWS,
    SIZES,
    WAITS,
    Group,
    Row,
    RowUnavailable,
    Size,
)
from tests.benchmark.python_rows import measure_row
from tests.benchmark.suite import FAILURES, Found, Plan, Suite, in_turn, why
from tests.benchmark.tables import figure, markdown

BUSY_LOOP = Path(__file__).with_name("busy_loop")
_BUSY = (0, 1, 2)  # processes beside
_QUICK_EXCHANGES = 500

_BASELINE = next(row for row in ROWS if row.key == BASELINE)

Groups = dict[str, list[Group]]  # row key -> a group of each round
Turns = dict[str, list[tuple[Group, Group]]]  # as report.Turns


def _sizes(plan: Plan, sizes: Sequence[Size]) -> list[Size]:
    if not plan.quick:
        return list(sizes)
    return [dataclasses.replace(size, exchanges=min(_QUICK_EXCHANGES, size.exchanges)) for size in sizes]


def _measure(row: Row, size: Size, plan: Plan) -> Group:
    return measure_row(row, size, plan.seconds, f"{plan.prefix}-{row.key}")


def _measure_turns(rows: Sequence[Row], size: Size, plan: Plan, number: int, turns: Turns) -> set[str]:
    """Measures the baseline before each row: which cores two processes get changes within seconds.

    Returns:
      Keys of rows that failed; they are left out from then on.
    """
    failed = set()
    for row in in_turn(rows, number):
        if row.key not in turns:
            continue
        try:
            baseline = _measure(_BASELINE, size, plan)
            turns[row.key].append((baseline if row.key == BASELINE else _measure(row, size, plan), baseline))
        except RowUnavailable as error:
            print(f"tandem: {error}", file=sys.stderr)
            del turns[row.key]
        except FAILURES as error:
            if row.key == BASELINE:
                raise
            print(f"tandem: {row.key} is left out: {why(error)}", file=sys.stderr)
            del turns[row.key]
            failed.add(row.key)
    return failed


def _measure_rows(plan: Plan, rows: Sequence[Row], sizes: Sequence[Size]) -> Found:
    chosen = [row for row in rows if row.key in plan.rows]
    sizes = _sizes(plan, sizes)
    found: list[Turns] = [{row.key: [] for row in chosen if row.exists_at(size)} for size in sizes]
    failed: set[str] = set()
    started = time.monotonic()
    for number in range(plan.rounds):
        for size, turns in zip(sizes, found, strict=True):
            failed |= _measure_turns(chosen, size, plan, number, turns)
            print(
                f"round {number + 1} of {plan.rounds}, {size}: "
                f"bare spin {turns[BASELINE][-1][0].step_p50 / 1e3:.2f} us; "
                f"{time.monotonic() - started:.0f} s so far",
                file=sys.stderr,
                flush=True,
            )
    summaries = [report.summarise(turns) for turns in found]
    figures = [
        {
            "size": dataclasses.asdict(size),
            "rows": {
                row.key: {
                    "label": row.label,
                    "summary": dataclasses.asdict(summary[row.key]),
                    "groups_ns": [dataclasses.asdict(group) for group, _ in turns[row.key]],
                    "baseline_before_ns": [dataclasses.asdict(baseline) for _, baseline in turns[row.key]],
                }
                for row in chosen
                if row.key in turns
            },
        }
        for size, turns, summary in zip(sizes, found, summaries, strict=True)
    ]
    return Found(
        tables=[
            report.table(size, chosen, summary, plan.rounds) for size, summary in zip(sizes, summaries, strict=True)
        ],
        figures={"sizes": figures},
        draw=lambda path: report.draw(path, chosen, sizes, summaries),
        failed=frozenset(failed),
    )


@contextlib.contextmanager
def busy_processes(count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Keeps so many processes computing; they end with this one, however it ends."""
    busy = [subprocess.Popen([str(BUSY_LOOP)]) for _ in range(count)]
    try:
        yield busy
    finally:
        for process in busy:
            process.kill()
            process.wait()


_BUSY_ROWS = [row for row in ROWS if row.tandem and row.key.startswith(("host_", "python_"))]


def _measure_busy(plan: Plan) -> Found:
    rows = [row for row in _BUSY_ROWS if row.key in plan.rows]
    sizes = _sizes(plan, SIZES[:2])
    # The scheduler moves processes a few times a second: shorter groups would each show one of its states.
    sizes = [dataclasses.replace(size, exchanges=size.exchanges * 10) for size in sizes]
    cases = [(size, busy) for size in sizes for busy in _BUSY]
    found: list[Groups] = [{row.key: [] for row in rows} for _ in cases]
    started = time.monotonic()
    for number in range(plan.rounds):
        for (size, busy), groups in zip(cases, found, strict=True):
            with busy_processes(busy):
                for row in in_turn(rows, number):
                    groups[row.key].append(_measure(row, size, plan))
        print(f"busy: round {number + 1} of {plan.rounds}; {time.monotonic() - started:.0f} s so far", file=sys.stderr)
    figures: list[dict[str, Any]] = []
    tables = []
    for (size, busy), groups in zip(cases, found, strict=True):
        against = against_better(groups)
        figures.append(
            {
                "size": dataclasses.asdict(size),
                "busy": busy,
                "groups_ns": {key: [dataclasses.asdict(group) for group in those] for key, those in groups.items()},
                "adaptive_against_better": against,
            }
        )
        tables.append(_busy_table(size, busy, rows, groups, against, plan.rounds))
    return Found(tables, {"cases": figures})


def _median(groups: Sequence[Group], name: str) -> float:
    return float(statistics.median(getattr(group, name) for group in groups))


def _mean(groups: Sequence[Group]) -> float:
    return sum(group.step_mean * group.exchanges for group in groups) / sum(group.exchanges for group in groups)


def against_better(groups: Mapping[str, Sequence[Group]]) -> dict[str, dict[str, Any]]:
    """Holds `adaptive` against whichever of `spin` and `block` has the lower mean over all groups.

    Args:
      groups: Groups of rows whose keys end in a strategy, by round; families without all three are left out.

    Returns:
      Family, such as "host" -> the better strategy, and by how much p50 and p99 are its own in the same round, median.
    """
    found = {}
    for family in dict.fromkeys(key.rsplit("_", 1)[0] for key in groups):
        by_wait = {wait: groups.get(f"{family}_{wait}") for wait in WAITS}
        if not all(by_wait.values()):
            continue
        spin, adaptive, block = (by_wait[wait] or () for wait in WAITS)
        name, better = min((("spin", spin), ("block", block)), key=lambda one: _mean(one[1]))
        found[family] = {
            "better": name,
            "p50": statistics.median(a.step_p50 / b.step_p50 for a, b in zip(adaptive, better, strict=True)),
            "p99": statistics.median(a.step_p99 / b.step_p99 for a, b in zip(adaptive, better, strict=True)),
        }
    return found


def _busy_table(
    size: Size,
    busy: int,
    rows: Sequence[Row],
    groups: Mapping[str, Sequence[Group]],
    against: Mapping[str, Mapping[str, Any]],
    rounds: int,
) -> str:
    lines = []
    for row in rows:
        those = groups[row.key]
        mean, p50, p99 = _mean(those), _median(those, "step_p50"), _median(those, "step_p99")
        line = [row.label, *(figure(nanos / 1e3) for nanos in (mean, p50, p99))]
        family, wait = row.key.rsplit("_", 1)
        if wait == "adaptive" and family in against:
            better = against[family]
            line += [f"{better['better']}", f"{figure(better['p50'])}", f"{figure(better['p99'])}"]
        lines.append(line)
    title = (
        f"**{size}**, {busy} busy processes beside: means of all exchanges, medians of {rounds} groups; adaptive over "
        "whichever of spin and block has the lower mean, by round, median"
    )
    return markdown(title, ("row", "mean us", "p50", "p99", "better", "times its p50", "times its p99"), lines)


SUITE = Suite(
    name="steps",
    about="the step round trip on an idle machine, against bare spinning and other ways between processes",
    rows={row.key: row.label for row in ROWS},
    baseline=frozenset({BASELINE}),
    measure=lambda plan: _measure_rows(plan, ROWS, SIZES),
    interpreters={row.key: row.interpreter for row in ROWS if row.interpreter},
)
BUSY = Suite(
    name="busy",
    about="the step round trip beside 0, 1 and 2 busy processes: does adaptive wait as the better of spin and block?",
    rows={row.key: row.label for row in _BUSY_ROWS},
    baseline=frozenset(),
    measure=_measure_busy,
)
PROFILE = Suite(
    name="profile",
    about="what Tandem adds to bare spinning, one thing at a time",
    rows={row.key: row.label for row in LADDER},
    baseline=frozenset({BASELINE}),
    measure=lambda plan: _measure_rows(plan, LADDER, SIZES[:1]),
)
