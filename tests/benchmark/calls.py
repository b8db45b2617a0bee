"""How long a call from Python to an engine and back takes, beside the steps: `client.get_schema()`."""

import gc
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import tandem
from tests.benchmark.engine_process import serving
from tests.benchmark.measurement import SIZES

WAITS = ("spin", "adaptive", "block")
PACED_HZ = 1000


@dataclass(frozen=True)
class Calls:
    """Calls by one wait strategy, of both sides; a figure of each round.

    Attributes:
      rates: Calls a second, one after the other.
      p50_ns: Of such calls: nanoseconds.
      p99_ns: The same.
      paced_p50_ns: Of calls at a fixed rate.
      paced_p99_ns: The same.
    """

    rates: list[float] = field(default_factory=list)
    p50_ns: list[int] = field(default_factory=list)
    p99_ns: list[int] = field(default_factory=list)
    paced_p50_ns: list[int] = field(default_factory=list)
    paced_p99_ns: list[int] = field(default_factory=list)


def measure_calls(rounds: int, seconds: float, prefix: str) -> dict[str, Calls]:
    """Measures calls by each wait strategy in every round, the strategies in turn.

    Args:
      rounds: How often each.
      seconds: How long each time, one after the other and paced.
      prefix: Regions' names begin with it.

    Returns:
      What was found for each strategy.

    Raises:
      tandem.TandemError: A call failed.
    """
    found = {wait: Calls() for wait in WAITS}
    for number in range(rounds):
        first = number % len(WAITS)
        for wait in (*WAITS[first:], *WAITS[:first]):
            _measure(found[wait], wait, seconds, f"{prefix}-calls-{wait}")
        print(f"calls: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return found


def _measure(calls: Calls, wait: str, seconds: float, region: str) -> None:
    with serving(f"host_{wait}", SIZES[0], f"--region={region}"):
        with tandem.SharedMemoryClient(region, timeout=30, wait=wait) as client:
            _times(client, 0.05, 0)
            gc.collect()
            gc.disable()
            try:
                began = time.perf_counter()
                times = _times(client, seconds, 0)
                calls.rates.append(len(times) / (time.perf_counter() - began))
                paced = _times(client, seconds, PACED_HZ)
            finally:
                gc.enable()
    for nanos, p50, p99 in (
        (times, calls.p50_ns, calls.p99_ns),
        (paced, calls.paced_p50_ns, calls.paced_p99_ns),
    ):
        nanos.sort()
        p50.append(nanos[len(nanos) // 2])
        p99.append(nanos[99 * len(nanos) // 100])


def _times(client: tandem.SharedMemoryClient, seconds: float, hz: int) -> list[int]:
    """Calls for so long; between two paced calls the caller sleeps, as one that has other things to do."""
    nanos: list[int] = []
    now = time.perf_counter_ns
    due = now()
    end = due + int(seconds * 1e9)
    while not nanos or now() < end:
        if hz:
            due += 1_000_000_000 // hz
            time.sleep(max(0, due - now()) / 1e9)
        asked = now()
        schema = client.get_schema()
        nanos.append(now() - asked)
        if schema.observation_size != SIZES[0].obs:
            raise RuntimeError(f"expected a schema of {SIZES[0].obs} observations, found {schema}")
    return nanos


def table(found: dict[str, Calls], rounds: int) -> str:
    """Lays it out in Markdown.

    Args:
      found: What was found for each strategy.
      rounds: How many rounds the figures are over.

    Returns:
      Lines.
    """
    lines = [
        f"**A call from Python and back**, `get_schema()`: median (least .. greatest) of {rounds} rounds",
        "",
        f"| wait | one after the other: calls/s | p50 us | p99 us | at {PACED_HZ:,} a second: p50 us | p99 us |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for wait, calls in found.items():
        cells = [
            wait,
            f"{statistics.median(calls.rates):,.0f}",
            _spread(calls.p50_ns),
            f"{statistics.median(calls.p99_ns) / 1e3:.1f}",
            _spread(calls.paced_p50_ns),
            f"{statistics.median(calls.paced_p99_ns) / 1e3:.1f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _spread(nanos: Sequence[int]) -> str:
    return f"{statistics.median(nanos) / 1e3:.1f} ({min(nanos) / 1e3:.1f} .. {max(nanos) / 1e3:.1f})"
