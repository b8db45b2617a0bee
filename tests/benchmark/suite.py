"""What the benchmark is made of: suites, each a set of rows that are measured in turn and compared with one another."""

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import tandem

Item = TypeVar("Item")

# What a row raises that could not be measured: ends of processes, broken pipes, answers that are half there.
FAILURES = (subprocess.SubprocessError, tandem.TandemError, RuntimeError, OSError, EOFError, ValueError)


@dataclass(frozen=True)
class Plan:
    """How much of a suite to measure.

    Attributes:
      rows: Keys of the rows to measure; what they are compared with is among them.
      rounds: How often each row takes its turn.
      seconds: How long a turn may last.
      quick: Whether few and coarse figures will do.
      prefix: Names of regions, queues, sockets and temporary folders begin with it; whatever is left of them is removed
        afterwards. A program on its own /dev/shm and /tmp leaves nothing.
    """

    rows: frozenset[str]
    rounds: int
    seconds: float
    quick: bool
    prefix: str


@dataclass(frozen=True)
class Found:
    """What a suite found.

    Attributes:
      tables: Texts in Markdown.
      figures: The same and more, as JSON takes it.
      draw: Draws it into a PNG file of that path; None: the suite has no picture.
      failed: Keys of rows that failed and were left out; why is on stderr.
    """

    tables: list[str]
    figures: dict[str, Any]
    draw: Callable[[str], None] | None = None
    failed: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Suite:
    """Rows that are measured together.

    Attributes:
      name: What the command line calls it.
      about: One line on what it measures.
      rows: Key and label of each row, in the tables' order.
      baseline: The rows that the others are compared with: measured whenever any is.
      measure: Measures the rows of a plan.
      interpreters: Key -> which of tools/extra_env's Pythons the row needs, for those that need one.
    """

    name: str
    about: str
    rows: Mapping[str, str]
    baseline: frozenset[str]
    measure: Callable[[Plan], Found]
    interpreters: Mapping[str, str] = field(default_factory=dict)


def in_turn(items: Sequence[Item], round_number: int) -> list[Item]:
    """Returns the items of a round in order, beginning with another one in each.

    The first one may find the machine colder than the others do.
    """
    first = round_number % len(items)
    return [*items[first:], *items[:first]]


def why(error: BaseException) -> str:
    """Says why a row could not be measured."""
    by_hand = "\nNext: run that command by hand." if isinstance(error, subprocess.SubprocessError) else ""
    return f"{str(error) or type(error).__name__}{by_hand}"
