"""Measures a suite: its rows take turns, in several rounds, so that the machine's noise affects all rows equally.

Each row runs in its own worker process. With another build, a row of Tandem has two processes, one for each build.
"""

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tests.benchmark.interpreters import python_of, variables_of_interpreter
from tests.benchmark.rows import COUNT, Case, Row, RowUnavailable, Suite
from tests.benchmark.tables import interval, markdown, spread
from tests.benchmark.worker import RowFailed, Worker

Item = TypeVar("Item")
Rounds = dict[str, list[float]]  # column -> one figure for each round

THIS, OTHER = "this", "other"
_BEFORE = "before "  # the key prefix of the measurements of `Case.before`


@dataclass(frozen=True)
class Plan:
    """The parameters of a suite's measurement.

    Attributes:
      rows: The keys of the rows to measure.
      rounds: The number of turns for each row; None: the suite's number.
      seconds: About how long a measurement takes; some turns measure a number of events in proportion to it.
      quick: Whether a few rough figures are enough.
      prefix: The prefix of the names of regions, sockets and temporary folders.
      against: The folder of another checkout, built; None: measures this build only.
      peers: Whether to measure rows that need another Python environment.
    """

    rows: frozenset[str]
    rounds: int | None
    seconds: float
    quick: bool
    prefix: str
    against: Path | None = None
    peers: bool = True

    def rows_of(self, case: Case) -> list[Row]:
        """Returns a case's rows to measure."""
        if self.quick and not case.quick:
            return []
        rows = [row for row in case.rows if row.key in self.rows and (self.peers or not row.python)]
        return [row for row in rows if row.is_tandem or not self.against]


@dataclass
class Found:
    """The measurements of a case.

    Attributes:
      case: The case.
      rows: The measured rows, in order.
      builds: Figures by build and row key.
    """

    case: Case
    rows: list[Row]
    builds: dict[str, dict[str, Rounds]] = field(default_factory=dict)

    def add(self, build: str, key: str, figures: Mapping[str, float]) -> None:
        """Adds the figures of a turn."""
        for column, figure in figures.items():
            self.builds.setdefault(build, {}).setdefault(key, {}).setdefault(column, []).append(figure)

    def leave_out(self, row: Row) -> None:
        """Removes a row."""
        self.rows.remove(row)
        for of_build in self.builds.values():
            of_build.pop(row.key, None)

    def value(self, key: str, column: str) -> float:
        """Returns the figure for all rounds: the mean of all measurements, or the median of the rounds."""
        rounds = self.builds[THIS][key]
        if column.startswith("mean"):
            return float(np.average(rounds[column], weights=rounds[COUNT]))
        return float(np.median(rounds[column]))

    def columns(self) -> list[str]:
        """Returns the columns of all rows, in order."""
        of_rows = [self.builds[THIS][row.key] for row in self.rows]
        return [column for column in dict.fromkeys(c for one in of_rows for c in one) if column != COUNT]

    def ratios(self, row: Row, column: str) -> list[float]:
        """Divides a row's figures by its compared row's, by round; returns nothing without a compared row."""
        mine = self.builds[THIS]
        others = [key for key in row.against if key in mine and key != row.key]
        if not others or column not in mine[row.key]:
            return []
        judged = self.case.ratios[0]
        best = (max if "/s" in judged else min)(others, key=lambda key: self.value(key, judged))
        if column.startswith("mean"):
            return [self.value(row.key, column) / self.value(best, column)]
        if best == self.case.before:
            best = _BEFORE + row.key
        return [a / b for a, b in zip(mine[row.key][column], mine[best][column], strict=True)]

    def table(self) -> str:
        """Formats the table in Markdown."""
        if OTHER in self.builds:
            return self._table_of_builds()
        columns = self.columns()
        lines = []
        for row in self.rows:
            mine = self.builds[THIS][row.key]
            line = [row.label]
            for column in columns:
                line.append(spread(mine[column], self.value(row.key, column)) if column in mine else "")
            for column in self.case.ratios:
                found = self.ratios(row, column)
                line.append(spread(found) if found else "")
            lines.append(line)
        head = ["", *columns, *(f"{column}, ratio" for column in self.case.ratios)]
        return markdown(f"{self.case.title}: median (least .. greatest)", head, lines)

    def _table_of_builds(self) -> str:
        lines = []
        for row in self.rows:
            for column in self.columns():
                this, other = (self.builds[build][row.key].get(column) for build in (THIS, OTHER))
                if not this or not other or min(other) <= 0:
                    continue
                greater_is_better = "/s" in column
                ratio, low, high = interval(np.divide(other, this) if greater_is_better else np.divide(this, other))
                worse = ratio > 1.1 and low > 1
                line = [row.label, column, spread(this), spread(other)]
                lines.append([*line, f"{ratio:.3f}", f"{low:.3f} .. {high:.3f}", "worse" if worse else ""])
        head = ["", "figure", "this build", "the other", "ratio", "95 % interval", "10 %"]
        about = "two builds; the ratio is the median by round, above 1 where this build is slower"
        return markdown(f"{self.case.title}: {about}", head, lines)


def in_turn(items: Sequence[Item], number: int) -> list[Item]:
    """Returns the items in the order of a round: each round begins with another item."""
    first = number % len(items) if items else 0
    return [*items[first:], *items[:first]]


class Measurement:
    """Measures a suite."""

    def __init__(self, suite: Suite, plan: Plan) -> None:
        """Selects cases and rows."""
        self.suite, self.plan = suite, plan
        self.failed: set[str] = set()
        few, many = (1, 3) if suite.slow else (2, 7)
        self.rounds = plan.rounds or (few if plan.quick else many)
        self._workers: dict[tuple[str, str, str], Worker] = {}  # by build, row and Python environment
        self.found = []
        for case in suite.cases:
            if rows := plan.rows_of(case):
                self.found.append(Found(case, rows))

    def run(self) -> list[Found]:
        """Returns the measurements of each case. `failed` then has the failed rows, which are left out."""
        with contextlib.ExitStack() as stack:
            stack.callback(self._close)
            began = time.monotonic()
            for found, number in self._order():
                with found.case.around():
                    for row in in_turn(found.rows, number):
                        self._turn(found, row, number)
                secs = time.monotonic() - began
                progress = (
                    f"{self.suite.name}: round {number + 1} of {self.rounds}, {found.case.title}; {secs:.0f} s so far"
                )
                print(progress, file=sys.stderr, flush=True)
        return [found for found in self.found if found.rows]

    def _close(self) -> None:
        for worker in self._workers.values():
            worker.close()

    def _order(self) -> Iterator[tuple[Found, int]]:
        """Yields the rounds, each with all cases; or the cases, each with all rounds, if rows stay open."""
        if self.suite.stays_open:
            yield from ((found, number) for found in self.found for number in range(self.rounds))
        else:
            yield from ((found, number) for number in range(self.rounds) for found in self.found)

    def _turn(self, found: Found, row: Row, number: int) -> None:
        builds = [THIS, OTHER] if self.plan.against else [THIS]
        try:
            before = next((one for one in found.case.rows if one.key == found.case.before), None)
            if before and before != row and not self.plan.against:
                found.add(THIS, _BEFORE + row.key, self._measure(found, before, number, THIS))
            figures = {build: self._measure(found, row, number, build) for build in in_turn(builds, number)}
            for build in builds:
                found.add(build, row.key, figures[build])
        except RowUnavailable as error:
            print(f"tandem: {row.label} is not measured here: {error}", file=sys.stderr, flush=True)
            found.leave_out(row)
        except RowFailed as error:
            print(f"tandem: {self.suite.name}, {row.label} is left out: {error}", file=sys.stderr, flush=True)
            found.leave_out(row)
            self.failed.add(f"{self.suite.name} {row.key}")

    def _measure(self, found: Found, row: Row, number: int, build: str) -> dict[str, float]:
        worker = self._workers.get((build, row.key, row.python)) or self._start(row, build)
        return worker.measure(
            case=self.suite.cases.index(found.case),
            name=f"{self.plan.prefix}-{build}-{row.key}",
            seconds=self.plan.seconds,
            stay=self.suite.stays_open and number + 1 < self.rounds,
        )

    def _start(self, row: Row, build: str) -> Worker:
        what = [self.suite.module, self.suite.name, row.key]
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-W", "ignore", "-P", "-m", "tests.benchmark.worker", *what]
        if build == OTHER and self.plan.against:
            command = [str(self.plan.against / "bazel-bin/tests/benchmark/benchmark"), "--worker", *what]
            variables = dict(os.environ)
        elif row.python:
            variables, command[0] = variables_of_interpreter(), python_of(row.python)
        worker = self._workers[build, row.key, row.python] = Worker(command, variables)
        return worker


def figures_of(found: Sequence[Found]) -> list[dict[str, Any]]:
    """Returns all figures in the form of the JSON file."""
    return [
        {
            "title": one.case.title,
            "builds": {
                build: {key: rounds for key, rounds in rows.items() if not key.startswith(_BEFORE)}
                for build, rows in one.builds.items()
            },
        }
        for one in found
    ]
