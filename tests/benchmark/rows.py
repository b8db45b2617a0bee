"""What suites are made of: rows, and the cases in which they are compared.

    def attaching(name):                       # opens a row; `name` is free for a region or a socket
        with serving("host_spin", size, name):
            yield lambda seconds: us({"": samples})

    Suite("steps", "the step round trip", [Case("1 x 4 x 1", [Row("spin", "bare spin", attaching)])], module=__name__)

This module imports neither tandem nor a peer.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

# Figures of a turn by column. A greater figure is better in columns with "/s", and worse in all others. The column
# COUNT is not shown: it is the number of measurements of which "mean us" is the mean.
Figures = dict[str, float]
COUNT = "count"
Turn = Callable[[float], Figures]  # seconds -> figures


class RowUnavailable(RuntimeError):
    """The machine does not support a row; the text names the missing feature."""


@dataclass(frozen=True)
class Row:
    """One row of a table.

    Attributes:
      key: The row's name on the command line and in the JSON.
      label: The row's name in tables and images.
      open: Prepares the measurement, given an unused name; yields the function that runs a turn.
      against: The keys of rows to compare with; the best of several is used.
      python: The environment of tools/extra_env for the row; empty: that of tools/benchmark.
    """

    key: str
    label: str
    open: Callable[[str], AbstractContextManager[Turn]]
    against: tuple[str, ...] = ()
    python: str = ""

    @property
    def is_tandem(self) -> bool:
        """Whether the row measures Tandem, so that another build has other figures."""
        return self.label.startswith("Tandem")


@dataclass(frozen=True)
class Case:
    """A table: rows that take turns.

    Attributes:
      title: The table's title.
      rows: The rows, in the table's order.
      ratios: Columns that are compared with those of `Row.against`. The first one decides which row is the best.
      before: The key of a row that is measured before each other row; the other row is compared with that measurement.
      around: A context manager that is entered for each round.
      quick: Whether --quick measures the case.
    """

    title: str
    rows: Sequence[Row]
    ratios: tuple[str, ...] = ()
    before: str = ""
    around: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext
    quick: bool = True


@dataclass(frozen=True)
class Suite:
    """Cases under one name.

    Attributes:
      name: The suite's name on the command line.
      about: A line that describes the measurement.
      cases: The cases, in order.
      module: The module whose `SUITES` has the suite, for the worker processes.
      stays_open: Whether a row is opened once for a case, instead of once for each turn.
      slow: Whether a turn takes seconds; a slow suite has three rounds, or one with --quick.
    """

    name: str
    about: str
    cases: Sequence[Case]
    module: str
    stays_open: bool = False
    slow: bool = False

    @property
    def labels(self) -> dict[str, str]:
        """The keys and labels of all rows, in order."""
        return {row.key: row.label for case in self.cases for row in case.rows}


def turns(function: Callable[..., Figures], *arguments: Any) -> Callable[[str], AbstractContextManager[Turn]]:
    """Makes a row's `open` from a function.

    Args:
      function: Takes `arguments`, the name and the seconds of a turn, and returns the figures.
      *arguments: The row's arguments.

    Returns:
      The value for `Row.open`.
    """

    @contextlib.contextmanager
    def open_row(name: str) -> Iterator[Turn]:
        yield lambda seconds: function(*arguments, name, seconds)

    return open_row


def us(samples: ArrayLike, what: str = "", *, mean: bool = False) -> Figures:
    """Summarises samples in nanoseconds.

    Args:
      samples: The samples of a turn.
      what: The prefix of the columns' names.
      mean: Whether to add a column for the mean.

    Returns:
      Figures in microseconds.
    """
    micros = np.asarray(samples) / 1e3
    p50, p99 = np.percentile(micros, (50, 99))
    found = {f"{what}p50 us": float(p50), f"{what}p99 us": float(p99)}
    if mean:
        found |= {f"{what}mean us": float(micros.mean()), COUNT: micros.size}
    return found
