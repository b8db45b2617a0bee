"""The slow lane: steps from workers to durable rows and to watchers, and calls to the daemon."""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tandem.telemetry import RunStatus, TrainerClient
from tandem.telemetry.wire import load
from tandem.testing.daemons import DAEMON, Daemon, Gate, proxies_of, run_config, running_daemon, wait_until
from tests.benchmark.rows import Case, Figures, Row, Suite, Turn, turns, us
from tests.benchmark.slow_lane_processes import (
    EVENTS_OF_RUN,
    ROWS_OF_RUN,
    SCALARS_OF_RUN,
    TICKS,
    cpu_seconds,
    open_table,
    printer_command,
    python_command,
    wait_for_rows,
)

_PIPELINE = "SELECT max(seq_id) FROM steps WHERE ? IS NOT NULL"
_WORKER = "tests.benchmark.slow_lane_worker"

# The number of steps for each second of a turn.
_BLOCKS, _EVENT_WRITER, _PRINT_JSON, _ASYNCIO, _WATCHED = 2_000_000, 400_000, 1_000_000, 60_000, 2_000_000

_EVENTS = 600_000  # steps, or numbers of scalars, for each second of a turn
_NUMBERS = 4  # of an event of scalars
_STEPS_PER_SCALARS = 100

_WORKERS, _HZ = 100, 1000
_BLOCK = 10  # steps in one write of a worker
_WORKERS_SECS = 40  # seconds of printing for each second of a turn
_LOOK_SECS = 0.1
_LAST_ROWS = "SELECT run, (SELECT max(seq_id) FROM step_rows WHERE step_rows.run = runs.run) FROM runs"
_TIMES = "SELECT timestamp_ns FROM step_rows WHERE run = ? ORDER BY seq_id"

_SMALL_EVENTS = 200_000  # events for each second of a turn
_LARGE_BYTES = {"beside_3_bytes": 3, "beside_50_kB": 50_000, "beside_1_MB": 1_000_000, "beside_16_MB": 16_000_000}
_PRINT_SMALL = """
def print_events():
    sys.stdout.write('{{"event": "e"}}\\n' * {events})
    sys.stdout.flush()
print_events()
wait_for("go")
print_events()
"""
_PRINT_LARGE = """
print(json.dumps({{"event": "y" * {bytes}}}), flush=True)
wait_for("end")
"""

_SILENCE_SECS = 0.31  # longer than the longest pause of a proxy without inotify
_PRINT_AFTER_SILENCES = """
import time
for step in range({lines}):
    time.sleep({secs})
    print('{{"event_type": "scalars", "step": %d, "scalars": {{"sent": %d}}}}' % (step, time.time_ns()), flush=True)
"""
_WITHOUT_INOTIFY = """#!/bin/sh
exec unshare --map-root-user sh -c 'echo 0 > /proc/sys/user/max_inotify_instances && exec "$@"' sh {daemon} "$@"
"""

_RUNS = 100  # the runs in ListRuns's answer
_WARM_UP_CALLS = 50
_FLOOD_HZ = 200_000
_ENDLESS = 10**9  # steps


@contextlib.contextmanager
def _daemon(name: str) -> Iterator[tuple[Path, Daemon, TrainerClient]]:
    with (
        tempfile.TemporaryDirectory(prefix=f"{name}-") as folder,
        running_daemon(Path(folder) / "data") as daemon,
        TrainerClient(daemon.address) as client,
    ):
        yield Path(folder), daemon, client


def _print_steps(daemon: Daemon, client: TrainerClient, command: Sequence[str], steps: int) -> str:
    """Submits a run, waits until its steps are durable, and returns its run_id."""
    run_id = client.submit(run_config(*command, PYTHONPATH=os.pathsep.join(sys.path))).run_id
    wait_for_rows(daemon.table, ROWS_OF_RUN, run_id, steps)
    return run_id


def _durable(command: Callable[[int], list[str]], per_second: int, name: str, seconds: float) -> Figures:
    steps = round(per_second * seconds)
    with tempfile.TemporaryFile() as file:
        began = time.perf_counter()
        subprocess.run(command(steps), check=True, stdout=file)
        alone = steps / (time.perf_counter() - began)
    with _daemon(name) as (_, daemon, client):
        began = time.perf_counter()
        _print_steps(daemon, client, command(steps), steps)
        rate = steps / (time.perf_counter() - began)
    return {"K steps/s": rate / 1e3, "worker alone, K steps/s": alone / 1e3}


def _rows(kind: str, name: str, seconds: float) -> Figures:
    """Measures rows of scalars, of which each number is one, or of steps, alone or with scalars between them."""
    rows = round(_EVENTS * seconds)
    steps = 0 if kind == "scalars" else rows
    scalars = {"steps": 0, "scalars": rows // _NUMBERS, "both": rows // _STEPS_PER_SCALARS}[kind]
    with _daemon(name) as (_, daemon, client):
        began = time.perf_counter()
        run_id = client.submit(run_config(*printer_command(steps, scalars=scalars))).run_id
        wait_for_rows(daemon.table, ROWS_OF_RUN, run_id, steps)
        wait_for_rows(daemon.table, SCALARS_OF_RUN, run_id, scalars)
        secs = time.perf_counter() - began
    return {"K rows/s": rows / secs / 1e3}


def _print_to_watcher(inotify: bool, name: str, seconds: float) -> Figures:
    """Measures from a worker's print, after a silence, to the watcher in Python."""
    lines = max(5, round(seconds / _SILENCE_SECS))
    with tempfile.TemporaryDirectory(prefix=f"{name}-") as folder:
        program = DAEMON
        if not inotify:  # as for a user whose inotify instances are used up
            program = Path(folder) / "daemon"
            program.write_text(_WITHOUT_INOTIFY.format(daemon=DAEMON.absolute()), "utf-8")
            program.chmod(0o700)
        with running_daemon(Path(folder) / "data", program=program) as daemon, TrainerClient(daemon.address) as client:
            source = _PRINT_AFTER_SILENCES.format(lines=lines, secs=_SILENCE_SECS)
            run_id = client.submit(run_config(sys.executable, "-c", source)).run_id
            delays = [time.time_ns() - event.values[0] for event in client.scalars(run_id)]
    return us(delays, "")


def _worker(way: str) -> Callable[[int], list[str]]:
    return lambda steps: python_command("-m", _WORKER, way, str(steps))


def _asyncio_pipeline(name: str, seconds: float) -> Figures:
    steps = round(_ASYNCIO * seconds)
    with tempfile.TemporaryDirectory(prefix=f"{name}-") as folder:
        table = Path(folder) / "steps.db"
        with _part("serve", str(table)) as server:
            port = server.stdout.readline().strip()  # type: ignore[union-attr]
            with _part("proxy", port, *printer_command(steps)) as proxy:
                # The process runs and is connected before the clock starts.
                began = time.perf_counter()
                proxy.stdin.write("\n")  # type: ignore[union-attr]
                proxy.stdin.flush()  # type: ignore[union-attr]
                wait_for_rows(table, _PIPELINE, "", steps)
                return {"K steps/s": steps / (time.perf_counter() - began) / 1e3}


@contextlib.contextmanager
def _part(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Runs a process of the pipeline, and kills it afterwards."""
    command = python_command(str(Path(__file__).with_name("slow_lane_asyncio_pipeline.py")), *arguments)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def _many_workers(name: str, seconds: float) -> Figures:
    """Compares the printed steps with the table's rows, while all workers print."""
    steps = max(2, round(_WORKERS_SECS * seconds)) * _HZ
    with _daemon(name) as (folder, daemon, client):
        gate = folder / "gate"
        for _ in range(_WORKERS):
            client.submit(run_config(*printer_command(steps, hz=_HZ, block=_BLOCK, gate=gate)))
        wait_until(lambda: all(run.status is RunStatus.RDY for run in client.runs()), f"{_WORKERS} workers")
        gate.touch()
        pids = [daemon.pid, *proxies_of(daemon.data_dir)]
        samples: list[tuple[int, dict[int, int], float, float]] = []
        with contextlib.closing(open_table(daemon.table)) as table:
            while not samples or min(samples[-1][1].values()) < steps:
                rows = {run: last or 0 for run, last in table.execute(_LAST_ROWS)}
                samples.append((time.time_ns(), rows, sum(cpu_seconds(pid) or 0.0 for pid in pids), _busy_seconds()))
                if len(samples) > 10 * steps / _HZ / _LOOK_SECS:
                    raise RuntimeError(f"expected {steps} rows of each run, found {min(rows.values())}")
                time.sleep(_LOOK_SECS)
            times = {run: np.array([at for (at,) in table.execute(_TIMES, (run,))]) for run in samples[-1][1]}
    first_end = min(of_run[-1] for of_run in times.values())
    together = [look for look in samples if min(look[1].values()) > 0 and look[0] < first_end]
    if len(together) < 2:
        raise RuntimeError(f"expected {_WORKERS} workers at work at once; let them print for longer, by --seconds")
    # The lag is the age of a worker's first step that is not durable.
    lags = [
        max(0.0, float(unix_ns - times[run][last])) if last < steps else 0.0
        for unix_ns, rows, _, _ in together
        for run, last in rows.items()
    ]
    first, last = together[0], together[-1]
    passed = (last[0] - first[0]) / 1e9
    behind = {column.replace("us", "ms"): value / 1e3 for column, value in us(lags, "behind: ").items()}
    return {
        "K steps/s": (sum(last[1].values()) - sum(first[1].values())) / passed / 1e3,
        **behind,
        "behind: greatest ms": max(lags) / 1e6,
        "cores of daemon and proxies": (last[2] - first[2]) / passed,
        "cores of all": (last[3] - first[3]) / passed,
        "seconds after the last print": (samples[-1][0] - max(of_run[-1] for of_run in times.values())) / 1e9,
    }


def _busy_seconds() -> float:
    fields = Path("/proc/stat").read_text("utf-8").splitlines()[0].split()[1:]
    user, nice, system, _, _, irq, softirq = map(int, fields[:7])
    return (user + nice + system + irq + softirq) / TICKS


def _beside_large_event(event_bytes: int, name: str, seconds: float) -> Figures:
    """Measures the time for a run's events that arrive after another run's large event."""
    events = round(_SMALL_EVENTS * seconds)
    with _daemon(name) as (folder, daemon, client):
        gate = Gate(folder / "gate")
        small = client.submit(gate.program(_PRINT_SMALL.format(events=events))).run_id
        wait_for_rows(daemon.table, EVENTS_OF_RUN, small, events)
        large = client.submit(gate.program(_PRINT_LARGE.format(bytes=event_bytes))).run_id
        wait_for_rows(daemon.table, EVENTS_OF_RUN, large, 1)
        began = time.perf_counter()
        gate.open("go")
        wait_for_rows(daemon.table, EVENTS_OF_RUN, small, 2 * events)
        secs = time.perf_counter() - began
        gate.open("end")
    return {"seconds": secs}


@contextlib.contextmanager
def _calls(call: str, name: str) -> Iterator[Turn]:
    with _daemon(name) as (_, _, client):
        # One run executes, for heartbeats; the others have ended.
        beating = client.submit(run_config("/bin/sleep", "infinity")).run_id
        others = _RUNS - 1 if call == "list" else 0
        for _ in range(others):
            client.submit(run_config("/bin/true"))
        wait_until(lambda: sum(run.status.final for run in client.runs()) == others, f"{others} runs that have ended")
        functions: dict[str, Callable[[], object]] = {
            "health": client.health,
            "heartbeat": lambda: client.heartbeat(beating),
            "list": client.runs,
        }
        function = functions[call]

        def turn(seconds: float) -> Figures:
            idle = us(_times(function, seconds), "idle: ")
            with _flood(client):
                return idle | us(_times(function, seconds), "flooded: ")

        yield turn


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
    """Runs a worker that prints, until the block ends."""
    run_id = client.submit(run_config(*printer_command(_ENDLESS, hz=_FLOOD_HZ))).run_id
    try:
        wait_until(
            lambda: any(run.run_id == run_id and run.status is RunStatus.EXEC for run in client.runs()),
            "a run that prints",
        )
        yield
    finally:
        client.cancel(run_id)


def _resume(by_messages: bool, name: str, seconds: float) -> Figures:
    """Watches an ended run from its first step."""
    steps = round(_WATCHED * seconds)
    if by_messages:
        # This emulates a server without StreamEvents: the client falls back to StreamRunSteps.
        methods: dict[str, Any] = load().methods
        methods["StreamEvents"] = replace(methods["StreamEvents"], path="/tandem.slow_lane.v0.SlowLane/StreamEvents")
    with _daemon(name) as (_, daemon, client):
        run_id = _print_steps(daemon, client, printer_command(steps), steps)
        wait_until(lambda: all(run.status.final for run in client.runs()), "a run that has ended")
        before, began, number = cpu_seconds(daemon.pid) or 0.0, time.perf_counter(), 0
        for number, step in enumerate(client.steps(run_id), 1):
            if step.seq_id != number:
                raise RuntimeError(f"expected step {number}, found {step.seq_id}")
        if number != steps:
            raise RuntimeError(f"expected {steps} steps, found {number}")
        secs = time.perf_counter() - began
        cpu = (cpu_seconds(daemon.pid) or 0.0) - before
        return {"seconds": secs, "daemon's CPU seconds": cpu, "K steps/s": steps / secs / 1e3}


_CASES = [
    Case(
        "Steps into durable rows",
        [
            Row("blocks", "Tandem, 50 lines a write", turns(_durable, printer_command, _BLOCKS)),
            Row("event_writer", "Tandem, EventWriter", turns(_durable, _worker("event_writer"), _EVENT_WRITER)),
            Row("print_json", "Tandem, print(json.dumps())", turns(_durable, _worker("print_json"), _PRINT_JSON)),
            Row("asyncio", "asyncio + sqlite3, in batches", turns(_asyncio_pipeline), ("blocks",)),
        ],
        ("K steps/s",),
    ),
    Case(
        f"Scalars into durable rows, {_NUMBERS} an event, each a row; one such event after {_STEPS_PER_SCALARS} steps",
        [
            Row("steps_alone", "Tandem, steps", turns(_rows, "steps")),
            Row("scalars", "Tandem, scalars", turns(_rows, "scalars"), ("steps_alone",)),
            Row("steps_beside", "Tandem, steps beside scalars", turns(_rows, "both"), ("steps_alone",)),
        ],
        ("K rows/s",),
    ),
    Case(
        "From the print of an idle worker to a watcher in Python",
        [
            Row("print_inotify", "Tandem", turns(_print_to_watcher, True)),
            Row("print_poll", "Tandem, a proxy without inotify", turns(_print_to_watcher, False), ("print_inotify",)),
        ],
    ),
    Case(
        f"{_WORKERS} workers, {_HZ:,} steps a second each", [Row("many", "Tandem, 100 workers", turns(_many_workers))]
    ),
    Case(
        "Small events of a run into durable rows, after another run's event of so many bytes",
        [
            Row(key, f"Tandem, {size:,} bytes", turns(_beside_large_event, size), ("beside_3_bytes",))
            for key, size in _LARGE_BYTES.items()
        ],
        ("seconds",),
    ),
    Case(
        "A call from Python to the daemon, by TCP, idle and while a run prints 200,000 steps/s",
        [
            Row("call_health", "Tandem, GetHealth", lambda name: _calls("health", name)),
            Row("call_heartbeat", "Tandem, Heartbeat", lambda name: _calls("heartbeat", name)),
            Row("call_list", f"Tandem, ListRuns of {_RUNS} runs", lambda name: _calls("list", name)),
        ],
    ),
    Case(
        f"{_WATCHED // 2:,} steps from the table to a watcher in Python (fewer with --seconds below 0.5)",
        [
            Row("resume_blocks", "Tandem, TrainerClient.steps", turns(_resume, False)),
            Row(
                "resume_messages", "Tandem, of a server without StreamEvents", turns(_resume, True), ("resume_blocks",)
            ),
        ],
        ("seconds",),
    ),
]
SUITES = {
    "slow_lane": Suite(
        "slow_lane",
        "steps into durable rows and to watchers, and calls to the daemon, compared with asyncio + sqlite3",
        _CASES,
        __name__,
        slow=True,
    )
}
