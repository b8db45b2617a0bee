"""What one large event of a run costs another run, whose small events become durable rows after it."""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tandem.telemetry import TrainerClient
from tandem.testing.daemons import DAEMON, Gate, running_daemon
from tests.benchmark.slow_lane_processes import wait_for_rows
from tests.benchmark.suite import Plan, in_turn
from tests.benchmark.tables import Spread, markdown

BASELINE = "beside_3_bytes"
ROWS = {
    BASELINE: "3 bytes",
    "beside_50_kB": "50 kB",
    "beside_1_MB": "1 MB",
    "beside_16_MB": "16 MB",
}
_BYTES = {BASELINE: 3, "beside_50_kB": 50_000, "beside_1_MB": 1_000_000, "beside_16_MB": 16_000_000}
_EVENTS = 100_000
_ROWS_OF_RUN = "SELECT max(seq_id) FROM lifecycle WHERE run_id = ?"

_SMALL_EVENTS = f"""
def print_events():
    sys.stdout.write('{{"event": "e"}}\\n' * {_EVENTS})
    sys.stdout.flush()
print_events()
wait_for("go")
print_events()
"""
_LARGE_EVENT = """
print(json.dumps({{"event": "y" * {bytes}}}), flush=True)
wait_for("end")
"""


def measure(plan: Plan, rounds: int) -> tuple[str, dict[str, Any]] | None:
    """Measures the plan's sizes in turn.

    Args:
      plan: The suite's.
      rounds: How often.

    Returns:
      A table and the figures; None: no row is in the plan.
    """
    if plan.rows.isdisjoint(ROWS):
        return None
    rows = [row for row in ROWS if row in plan.rows | {BASELINE}]
    found: dict[str, list[float]] = {row: [] for row in rows}
    for number in range(rounds):
        for row in in_turn(rows, number):
            with tempfile.TemporaryDirectory(prefix=f"{plan.prefix}-large-") as folder:
                found[row].append(measure_once(Path(folder), _BYTES[row]))
        print(f"slow_lane: a large event, round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    lines = []
    for row in rows:
        ratios = [one / alone for one, alone in zip(found[row], found[BASELINE], strict=True)]
        lines.append([ROWS[row], str(Spread.of(found[row])), str(Spread.of(ratios))])
    title = (
        f"**{_EVENTS:,} events of a run into durable rows, after another run's event of so many bytes**: "
        f"median (least .. greatest) of {rounds} rounds"
    )
    return markdown(title, ("the other run's event", "seconds", "ratio to 3 bytes, by round"), lines), found


def measure_once(folder: Path, event_bytes: int, program: Path = DAEMON) -> float:
    """Starts a daemon and both runs.

    Args:
      folder: An empty one, for the daemon's files.
      event_bytes: Size of the other run's event.
      program: The daemon.

    Returns:
      Seconds from the word to go on until all rows are there.

    Raises:
      RuntimeError: The rows did not come.
    """
    gate = Gate(folder / "gate")
    with running_daemon(folder / "data", program=program) as daemon, TrainerClient(daemon.address) as client:
        small = client.submit(gate.program(_SMALL_EVENTS)).run_id
        wait_for_rows(daemon.table, _ROWS_OF_RUN, small, _EVENTS)
        large = client.submit(gate.program(_LARGE_EVENT.format(bytes=event_bytes))).run_id
        wait_for_rows(daemon.table, _ROWS_OF_RUN, large, 1)
        begin = time.perf_counter()
        gate.open("go")
        wait_for_rows(daemon.table, _ROWS_OF_RUN, small, 2 * _EVENTS)
        seconds = time.perf_counter() - begin
        gate.open("end")
    return seconds
