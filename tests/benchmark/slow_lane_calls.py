"""How long a call to the daemon takes, while it has nothing else to do and while it takes in what a busy run prints."""

import contextlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tandem.telemetry import RunStatus, TrainerClient
from tandem.testing.daemons import run_config, running_daemon, wait_until
from tests.benchmark.json_program import answer_of, timeout_of
from tests.benchmark.quantile import quantile
from tests.benchmark.slow_lane_processes import printer_command
from tests.benchmark.suite import Plan, in_turn
from tests.benchmark.tables import Spread, markdown

TIMED_CLIENT = Path(__file__).with_name("slow_lane_timed_client")
ROWS = {
    "cpp_health": "GetHealth, C++",
    "cpp_heartbeat": "Heartbeat, C++",
    "cpp_list": "ListRuns, 100 runs, C++",
    "python_health": "GetHealth, Python",
    "python_heartbeat": "Heartbeat, Python",
    "python_list": "ListRuns, 100 runs, Python",
}
WHILE = {"idle": "the daemon idle", "flooded": "while a run prints 200,000 steps/s"}
_RUNS, _QUICK_RUNS = 100, 10
_WARM_UP_CALLS = 50
_FLOOD_HZ = 200_000
_ENDLESS = 10**9  # steps


@dataclass(frozen=True)
class Calls:
    """Nanoseconds of calls that follow one another: a figure of each round."""

    p50_ns: list[int] = field(default_factory=list)
    p99_ns: list[int] = field(default_factory=list)


def measure(plan: Plan, rounds: int) -> tuple[str, dict[str, Any]] | None:
    """Measures the plan's calls in turn, first idle, then flooded, in every round.

    Args:
      plan: The suite's.
      rounds: How often.

    Returns:
      A table and the figures; None: no call is in the plan.
    """
    rows = [row for row in ROWS if row in plan.rows]
    if not rows:
        return None
    found = {row: {state: Calls() for state in WHILE} for row in rows}
    runs = _QUICK_RUNS if plan.quick else _RUNS
    with (
        tempfile.TemporaryDirectory(prefix=f"{plan.prefix}-calls-") as folder,
        running_daemon(Path(folder) / "data") as daemon,
        TrainerClient(daemon.address) as client,
    ):
        # One that lives, for its heartbeats; the others have ended.
        beating = client.submit(run_config("/bin/sleep", "infinity")).run_id
        for _ in range(runs - 1):
            client.submit(run_config("/bin/true"))
        wait_until(
            lambda: sum(run.status.final for run in client.runs()) == runs - 1, f"{runs - 1} runs that have ended"
        )
        for number in range(rounds):
            for state in WHILE:
                with _flood(client) if state == "flooded" else contextlib.nullcontext():
                    for row in in_turn(rows, number):
                        _measure(found[row][state], row, daemon.address, client, beating, plan.seconds)
            print(f"slow_lane: calls, round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    lines = []
    for row in rows:
        states = found[row].values()
        figures = [nanos for one in states for nanos in (one.p50_ns, one.p99_ns)]
        lines.append([ROWS[row], *(str(Spread.of([ns / 1e3 for ns in nanos])) for nanos in figures)])
    head = ["call"]
    for text in WHILE.values():
        head += [f"{text}: p50 us", "p99 us"]
    title = f"**A call to the daemon and back**, by TCP: median (least .. greatest) of {rounds} rounds"
    return markdown(title, head, lines), {
        row: {state: asdict(calls) for state, calls in states.items()} for row, states in found.items()
    }


def _measure(calls: Calls, row: str, address: str, client: TrainerClient, run_id: str, seconds: float) -> None:
    language, _, call = row.partition("_")
    if language == "cpp":
        command = [str(TIMED_CLIENT), f"--target={address}", f"--call={call}", f"--run_id={run_id}"]
        found = answer_of([*command, f"--seconds={seconds}"], timeout_secs=timeout_of(seconds))
        calls.p50_ns.append(found["p50_ns"])
        calls.p99_ns.append(found["p99_ns"])
        return
    functions: dict[str, Callable[[], object]] = {
        "health": client.health,
        "heartbeat": lambda: client.heartbeat(run_id),
        "list": client.runs,
    }
    nanos = _times(functions[call], seconds)
    calls.p50_ns.append(quantile(nanos, 0.5))
    calls.p99_ns.append(quantile(nanos, 0.99))


def _times(call: Callable[[], object], seconds: float) -> list[int]:
    for _ in range(_WARM_UP_CALLS):
        call()
    nanos: list[int] = []
    now = time.perf_counter_ns
    end = now() + int(seconds * 1e9)
    while not nanos or now() < end:
        asked = now()
        call()
        nanos.append(now() - asked)
    return nanos


@contextlib.contextmanager
def _flood(client: TrainerClient) -> Iterator[None]:
    """Lets a run print for as long as it is entered."""
    run_id = client.submit(run_config(*printer_command(_ENDLESS, hz=_FLOOD_HZ))).run_id
    try:
        wait_until(
            lambda: any(run.run_id == run_id and run.status is RunStatus.EXEC for run in client.runs()),
            "a run that prints",
        )
        yield
    finally:
        client.cancel(run_id)
