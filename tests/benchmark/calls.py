"""How long a call from Python to an engine and back takes, beside the steps: `client.get_schema()`."""

import gc
import sys
import time
from dataclasses import asdict, dataclass, field

import tandem
from tests.benchmark.engine_process import serving
from tests.benchmark.measurement import SIZES, WAITS
from tests.benchmark.quantile import quantile
from tests.benchmark.suite import Found, Plan, Suite, in_turn
from tests.benchmark.tables import Spread, markdown

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


def _measure_all(plan: Plan) -> Found:
    """Measures calls by each wait strategy in every round, the strategies in turn."""
    waits = [wait for wait in WAITS if wait in plan.rows]
    found = {wait: Calls() for wait in waits}
    for number in range(plan.rounds):
        for wait in in_turn(waits, number):
            _measure(found[wait], wait, plan.seconds, f"{plan.prefix}-calls-{wait}")
        print(f"calls: round {number + 1} of {plan.rounds}", file=sys.stderr, flush=True)
    lines = []
    for wait, one in found.items():
        in_us = [
            str(Spread.of([nanos / 1e3 for nanos in figures]))
            for figures in (one.p50_ns, one.p99_ns, one.paced_p50_ns, one.paced_p99_ns)
        ]
        lines.append([wait, str(Spread.of([rate / 1e3 for rate in one.rates])), *in_us])
    title = f"**A call from Python and back**, `get_schema()`: median (least .. greatest) of {plan.rounds} rounds"
    paced = f"at {PACED_HZ:,} a second: p50 us"
    head = ("wait", "one after the other: K calls/s", "p50 us", "p99 us", paced, "p99 us")
    return Found([markdown(title, head, lines)], {wait: asdict(one) for wait, one in found.items()})


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
        p50.append(quantile(nanos, 0.5))
        p99.append(quantile(nanos, 0.99))


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


SUITE = Suite(
    name="calls",
    about="a call from Python to an engine and back, beside the steps",
    rows={wait: f"waiting by {wait}" for wait in WAITS},
    baseline=frozenset(),
    measure=_measure_all,
)
