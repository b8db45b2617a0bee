"""`Finding`: the result of a check."""

import enum
from collections.abc import Iterator
from dataclasses import dataclass


class Level(enum.Enum):
    """How serious a finding is. WARN: Tandem may fail or be slow. FAIL: it does not run until this is fixed."""

    OK = "OK"
    WARN = "WARN"
    FAIL = "FAIL"


@dataclass(frozen=True)
class Finding:
    """One line of the report; `next_step` is empty if there is nothing to do."""

    level: Level
    about: str
    found: str
    next_step: str = ""


Findings = Iterator[Finding]


def ok(about: str, found: str) -> Finding:
    """Makes a finding without a problem."""
    return Finding(Level.OK, about, found)


def warn(about: str, found: str, next_step: str) -> Finding:
    """Makes a finding that may matter."""
    return Finding(Level.WARN, about, found, next_step)


def fail(about: str, found: str, next_step: str) -> Finding:
    """Makes a finding that has to be fixed."""
    return Finding(Level.FAIL, about, found, next_step)


def size(count: int) -> str:
    """Returns a number of bytes as text, such as "64.0 MiB"."""
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >> power:
            return f"{count / (1 << power):.1f} {unit}"
    return f"{count} bytes"
