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

# Column -> figure of a turn. Greater figures are better in columns with "/s", and worse in all others. The column COUNT
# is not shown: the number of measurements of which "mean us" is the mean.
Figures = dict[str, float]
COUNT = "count"
Turn = Callable[[float], Figures]  # seconds -> figures


class RowUnavailable(RuntimeError):
    """The machine does not support a row; the text says what is missing."""


@dataclass(frozen=True)
class Row:
    """One row of a table.

    Attributes:
      key: Its name on the command line and in the JSON.
      label: Its name in tables and pictures.
      open: Makes what is measured, given a name that no other process uses; yields what runs a turn.
      against: Keys of the rows that it is compared with; of several, the best.
      python: The environment of tools/extra_env in which it runs; empty: that of tools/benchmark.
    """

    key: str
    label: str
    open: Callable[[str], AbstractContextManager[Turn]]
    against: tuple[str, ...] = ()
    python: str = ""

    @property
    def is_tandem(self) -> bool:
        """Whether it measures Tandem, so that another build has other figures."""
        return self.label.startswith("Tandem")


@dataclass(frozen=True)
class Case:
    """A table: rows that take turns.

    Attributes:
      title: Its title.
      rows: In the table's order.
      ratios: Columns that are compared with those of `Row.against`. The best of several rows is judged by the first.
      before: Key of a row that is measured again before each other row, which is compared with that measurement.
      around: What is entered for the time of a round.
      quick: Whether --quick measures it.
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
      name: Its name on the command line.
      about: A line that says what it measures.
      cases: In order.
      module: The module whose `SUITES` has it, for the worker processes.
      stays_open: Whether a row is opened once for a case; else for each turn.
      slow: Whether a turn takes seconds; such a suite has three rounds, and one with --quick.
    """

    name: str
    about: str
    cases: Sequence[Case]
    module: str
    stays_open: bool = False
    slow: bool = False

    @property
    def labels(self) -> dict[str, str]:
        """Key and label of all rows, in order."""
        return {row.key: row.label for case in self.cases for row in case.rows}


def turns(function: Callable[..., Figures], *arguments: Any) -> Callable[[str], AbstractContextManager[Turn]]:
    """Opens a row that is a function.

    Args:
      function: Takes `arguments`, the name and the seconds of a turn, and returns its figures.
      *arguments: The row's.

    Returns:
      What `Row.open` takes.
    """

    @contextlib.contextmanager
    def open_row(name: str) -> Iterator[Turn]:
        yield lambda seconds: function(*arguments, name, seconds)

    return open_row


def us(samples: ArrayLike, what: str = "", *, mean: bool = False) -> Figures:
    """Summarises nanoseconds.

    Args:
      samples: Of a turn.
      what: Precedes the columns' names.
      mean: Whether the mean is a column.

    Returns:
      Microseconds.
    """
    micros = np.asarray(samples) / 1e3
    p50, p99 = np.percentile(micros, (50, 99))
    found = {f"{what}p50 us": float(p50), f"{what}p99 us": float(p99)}
    if mean:
        found |= {f"{what}mean us": float(micros.mean()), COUNT: micros.size}
    return found
