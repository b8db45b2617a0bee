"""What a check has found."""

import enum
from collections.abc import Iterator
from dataclasses import dataclass


class Level(enum.Enum):
    """How bad it is.

    Attributes:
      OK: Nothing is to be done.
      WARN: Tandem runs, but something may go wrong or slowly.
      FAIL: Tandem does not run until this is put right.
    """

    OK = "OK"
    WARN = "WARN"
    FAIL = "FAIL"


@dataclass(frozen=True)
class Finding:
    """One line of the report.

    Attributes:
      level: How bad it is.
      about: What was looked at.
      found: What was found there.
      next_step: What to do; empty if nothing.
    """

    level: Level
    about: str
    found: str
    next_step: str = ""


Findings = Iterator[Finding]


def ok(about: str, found: str) -> Finding:
    """Makes a finding that is fine."""
    return Finding(Level.OK, about, found)


def warn(about: str, found: str, next_step: str) -> Finding:
    """Makes a finding that may matter."""
    return Finding(Level.WARN, about, found, next_step)


def fail(about: str, found: str, next_step: str) -> Finding:
    """Makes a finding that has to be put right."""
    return Finding(Level.FAIL, about, found, next_step)


def size(count: int) -> str:
    """Writes a number of bytes for people, such as "64.0 MiB"."""
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >> power:
            return f"{count / (1 << power):.1f} {unit}"
    return f"{count} bytes"
