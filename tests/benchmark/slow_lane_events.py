"""How many steps a second go from a worker's output into durable rows: by the daemon, by asyncio, by MLflow."""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tandem.telemetry import TrainerClient
from tandem.testing.daemons import Daemon, run_config, running_daemon
from tests.benchmark.interpreters import python_of, variables_of_interpreter
from tests.benchmark.json_program import answer_of
from tests.benchmark.slow_lane_processes import ROWS_OF_RUN, printer_command, wait_for_rows
from tests.benchmark.suite import Plan, in_turn
from tests.benchmark.tables import Spread, markdown

BASELINE = "blocks"
ROWS = {
    BASELINE: "Tandem, 50 lines a write",
    "event_writer": "Tandem, EventWriter",
    "print_json": "Tandem, print(json.dumps())",
    "asyncio_batches": "asyncio + sqlite3, batches",
    "asyncio_rows": "asyncio + sqlite3, row by row",
    "mlflow": "MLflow's store, batches of 1,000",
}
INTERPRETERS = {"mlflow": "peers"}

# Such that a turn takes seconds; a tenth with --quick.
_EVENTS = {
    BASELINE: 1_000_000,
    "event_writer": 200_000,
    "print_json": 500_000,
    "asyncio_batches": 30_000,
    "asyncio_rows": 30_000,
    "mlflow": 30_000,
}
_TIMEOUT_SECS = 300.0
_ROWS_OF_PIPELINE = "SELECT max(seq_id) FROM steps WHERE ? IS NOT NULL"
_FOLDER = Path(__file__).parent
_WORKER = "tests.benchmark.slow_lane_worker"


@dataclass(frozen=True)
class Rates:
    """Of a row; one of each round.

    Attributes:
      events: How many steps a turn had.
      durable: Steps a second, from the submission to the last durable row.
      alone: Steps a second that the worker prints to a file while nobody reads it; none where there is no such worker.
    """

    events: int
    durable: list[float] = field(default_factory=list)
    alone: list[float] = field(default_factory=list)


def measure(plan: Plan, rounds: int) -> tuple[str, dict[str, Any]] | None:
    """Measures the plan's rows in turn.

    Args:
      plan: The suite's.
      rounds: How often.

    Returns:
      A table and the figures; None: no row of these is in the plan.
    """
    rows = [row for row in ROWS if row in plan.rows]
    if not rows:
        return None
    found = {row: Rates(_EVENTS[row] // (10 if plan.quick else 1)) for row in rows}
    for number in range(rounds):
        for row in in_turn(rows, number):
            rates = found[row]
            if command := _WORKERS.get(row):
                rates.alone.append(_rate_alone(command(rates.events), rates.events))
            with tempfile.TemporaryDirectory(prefix=f"{plan.prefix}-{row}-") as folder:
                rates.durable.append(_MEASURES[row](Path(folder), row, rates.events))
        print(f"slow_lane: events, round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return _table(found, rounds), {row: asdict(rates) for row, rates in found.items()}


def _table(found: Mapping[str, Rates], rounds: int) -> str:
    lines = []
    for row, rates in found.items():
        ratios = [one / base for one, base in zip(rates.durable, found[BASELINE].durable, strict=True)]
        alone = str(Spread.of([rate / 1e3 for rate in rates.alone])) if rates.alone else ""
        lines.append([ROWS[row], str(Spread.of([rate / 1e3 for rate in rates.durable])), str(Spread.of(ratios)), alone])
    title = f"**Steps into durable rows**: median (least .. greatest) of {rounds} rounds"
    return markdown(title, ("row", "K steps/s", "times Tandem's first", "worker alone, K steps/s"), lines)


def python_command(module: str, *arguments: str) -> list[str]:
    """Runs a module by this Python.

    Args:
      module: Its name.
      arguments: For it.

    Returns:
      The command; it needs `python_variables`.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def python_variables() -> dict[str, str]:
    """Returns environment variables for a Python of one's own: it sees what this one sees."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


_WORKERS: Mapping[str, Callable[[int], list[str]]] = {
    BASELINE: printer_command,
    "event_writer": lambda events: python_command(_WORKER, "event_writer", str(events)),
    "print_json": lambda events: python_command(_WORKER, "print_json", str(events)),
}


def _rate_alone(command: list[str], events: int) -> float:
    with tempfile.TemporaryFile() as file:
        begin = time.perf_counter()
        subprocess.run(command, check=True, stdout=file, env=python_variables(), timeout=_TIMEOUT_SECS)
        return events / (time.perf_counter() - begin)


def _measure_tandem(folder: Path, row: str, events: int) -> float:
    with running_daemon(folder / "data") as daemon, TrainerClient(daemon.address) as client:
        begin = time.perf_counter()
        print_steps(daemon, client, _WORKERS[row](events), events)
        return events / (time.perf_counter() - begin)


def print_steps(daemon: Daemon, client: TrainerClient, command: list[str], events: int) -> str:
    """Submits a run, and waits until its steps are durable.

    Args:
      daemon: Whose run.
      client: Of it.
      command: The worker.
      events: How many steps it prints.

    Returns:
      The run's name.
    """
    run_id = client.submit(run_config(*command, PYTHONPATH=os.pathsep.join(sys.path))).run_id
    wait_for_rows(daemon.table, ROWS_OF_RUN, run_id, events, _TIMEOUT_SECS)
    return run_id


def _measure_pipeline(folder: Path, row: str, events: int) -> float:
    table = folder / "steps.db"
    way = row.removeprefix("asyncio_")
    with _part("serve", str(table), way) as server:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        with _part("proxy", port, *printer_command(events)) as proxy:
            assert proxy.stdin is not None
            # It is there, and connected, before the clock starts.
            begin = time.perf_counter()
            proxy.stdin.write("\n")
            proxy.stdin.flush()
            wait_for_rows(table, _ROWS_OF_PIPELINE, row, events, _TIMEOUT_SECS)
            seconds = time.perf_counter() - begin
            proxy.wait(_TIMEOUT_SECS)
    return events / seconds


@contextlib.contextmanager
def _part(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Runs a part of the pipeline; it is ended afterwards."""
    process = subprocess.Popen(
        [sys.executable, "-P", _FOLDER / "slow_lane_asyncio_pipeline.py", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=python_variables(),
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            stream.close()


def _measure_mlflow(folder: Path, row: str, events: int) -> float:
    command = [python_of(INTERPRETERS[row]), "-P", str(_FOLDER / "slow_lane_mlflow_store.py"), str(folder), str(events)]
    found = answer_of(command, timeout_secs=_TIMEOUT_SECS, variables=variables_of_interpreter(), shows_warnings=False)
    return events / float(found["seconds"])


_MEASURES: Mapping[str, Callable[[Path, str, int], float]] = {
    BASELINE: _measure_tandem,
    "event_writer": _measure_tandem,
    "print_json": _measure_tandem,
    "asyncio_batches": _measure_pipeline,
    "asyncio_rows": _measure_pipeline,
    "mlflow": _measure_mlflow,
}
