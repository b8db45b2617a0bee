"""The step round trip: on an idle machine, beside busy processes, and by size."""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

import numpy as np

import tandem
from tests.benchmark import step_peers
from tests.benchmark.client_loop import Floats, Results, Step, figures_of_steps, measure_steps
from tests.benchmark.engine_process import LARGE, MEDIUM, ROUND_TRIP, SMALL, WAITS, Size, busy_processes, serving
from tests.benchmark.rows import Case, Figures, Row, Suite, Turn, turns, us

_EXCHANGES = 20_000  # the greatest number in a turn
# The scheduler migrates processes a few times a second: a shorter turn would show only one of its states.
_BUSY_EXCHANGES = 200_000

Connect = Callable[[Size, str], AbstractContextManager[Step]]


def _cpp(row: str, size: Size, exchanges: int, policy_secs: float, name: str, seconds: float) -> Figures:
    """Measures a row of round_trip."""
    options = [f"--row={row}", *size.flags(), f"--exchanges={exchanges}", f"--seconds={seconds}", f"--region={name}"]
    if policy_secs:
        options.append(f"--policy_secs={policy_secs}")
    printed = subprocess.run([str(ROUND_TRIP), *options], stdout=subprocess.PIPE, check=True).stdout
    return figures_of_steps(*np.frombuffer(printed, np.int64).reshape(2, -1))


def _python(connect: Connect, size: Size, exchanges: int, policy_secs: float, name: str, seconds: float) -> Figures:
    """Measures a client in Python."""
    with connect(size, name) as step:
        return measure_steps(step, size, exchanges, seconds, policy_secs)


def _paced(connect: Connect, name: str, seconds: float) -> Figures:
    """Measures the steps of a control loop at 50 Hz, which sleeps between them."""
    actions = np.zeros((LARGE.envs, LARGE.act), np.float32)
    with connect(LARGE, name) as step:
        nanos, next_at = [], time.perf_counter()
        for _ in range(max(50, round(500 * seconds))):
            next_at += 1 / 50
            time.sleep(max(0.0, next_at - time.perf_counter()))
            began = time.perf_counter_ns()
            step(actions)
            nanos.append(time.perf_counter_ns() - began)
    return {column.replace("us", "ms"): micros / 1e3 for column, micros in us(nanos).items()}


@contextlib.contextmanager
def _over_tandem(wait: str, size: Size, name: str) -> Iterator[Step]:
    with serving(f"host_{wait}", size, name), tandem.SharedMemoryClient(name, timeout=30, wait=wait) as client:
        yield client.step


@contextlib.contextmanager
def _over_make_vec(size: Size, name: str) -> Iterator[Step]:
    """Makes the environments that make_vec returns, with the engine of the other rows."""
    with serving("host_adaptive", size, name):
        envs = tandem.SharedMemoryVectorEnv(tandem.SharedMemoryClient(name, timeout=30))
        envs.reset()

        def step(actions: Floats) -> Results:
            return envs.step(actions)[:3]

        try:
            yield step
        finally:
            envs.close()


def _rows(size: Size, exchanges: int = _EXCHANGES, policy_secs: float = 0.0) -> list[Row]:
    def cpp(key: str, label: str) -> Row:
        return Row(key, label, turns(_cpp, key, size, exchanges, policy_secs), ("spin",))

    def python(key: str, label: str, connect: Connect, environment: str = "") -> Row:
        opened = turns(_python, connect, size, exchanges, policy_secs)
        return Row(f"python_{key}", label, opened, ("spin",), environment)

    found = [
        cpp("spin", "bare spin, C++"),
        cpp("futex", "futex, C++"),
        cpp("socket", "Unix socket, C++"),
        cpp("grpc", "gRPC, C++"),
        *(cpp(f"host_{wait}", f"Tandem, C++, {wait}") for wait in WAITS),
        *(python(wait, f"Tandem, Python, {wait}", partial(_over_tandem, wait)) for wait in WAITS),
        python("make_vec", "Tandem, make_vec", _over_make_vec),
        python("socket", "Unix socket, Python to C++", step_peers.over_socket),
        python("pipe", "multiprocessing.Pipe, Python", step_peers.over_pipe),
        python("grpc", "gRPC, Python to C++", step_peers.over_grpc, "peers"),
        python("iceoryx2", "iceoryx2, Python, polling", step_peers.over_iceoryx2, "peers"),
    ]
    if size.envs < LARGE.envs:  # AsyncVectorEnv has a process for each environment: thousands measure the scheduler
        found.append(python("async", "Gymnasium AsyncVectorEnv", step_peers.over_async_vector_env, "peers"))
    return found


def _on_one_core(row: Row) -> Row:
    """Pins both sides of a row to one core."""

    @contextlib.contextmanager
    def opened(name: str) -> Iterator[Turn]:
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(allowed)})
        try:
            with row.open(name) as turn:
                yield turn
        finally:
            os.sched_setaffinity(0, allowed)

    return Row(row.key, row.label, opened, row.against)


def _busy_rows(size: Size) -> Iterator[Row]:
    """Yields Tandem's rows; `adaptive` is compared with the better of the two other strategies."""
    for row in _rows(size, _BUSY_EXCHANGES):
        kind, _, wait = row.key.partition("_")
        if wait in WAITS:
            others = (f"{kind}_spin", f"{kind}_block") if wait == "adaptive" else ()
            yield Row(row.key, row.label, row.open, others)


def _cases_after_a_policy() -> Iterator[Case]:
    keys = ("futex", "host_adaptive", "host_block", "python_adaptive", "python_make_vec", "python_pipe")
    for size in (SMALL, MEDIUM):
        for policy in ("0.1 ms", "1 ms", "10 ms"):
            found = {row.key: row for row in _rows(size, policy_secs=float(policy.removesuffix(" ms")) / 1e3)}
            bound = replace(_on_one_core(found["futex"]), key="one_core", label="futex, C++, both sides on one core")
            rows = [replace(row, against=("one_core",)) for row in (bound, *(found[key] for key in keys))]
            yield Case(f"{size}, after {policy}", rows, ("p50 us",), quick=False)


def _busy_cases() -> Iterator[Case]:
    ratios = ("mean us", "p50 us", "p99 us")
    for size in (SMALL, MEDIUM):
        for busy in range(3):
            title = f"{size}, {busy} busy processes; adaptive by the better of spin and block"
            yield Case(title, list(_busy_rows(size)), ratios, around=partial(busy_processes, busy))
        yield Case(f"{size}, both sides on one core", [_on_one_core(row) for row in _busy_rows(size)], ratios)
    for busy in (1, 2):
        rows = [row for row in _rows(MEDIUM, policy_secs=0.001) if row.key in ("host_adaptive", "python_adaptive")]
        around = partial(busy_processes, busy)
        yield Case(f"{MEDIUM}, after 1 ms, {busy} busy processes", rows, ratios, around=around, quick=False)


SUITES = {
    suite.name: suite
    for suite in (
        Suite(
            "steps",
            "the step round trip on an idle machine, compared with a bare spin and with other programs",
            [
                *(
                    Case(f"{size}, the step round trip", _rows(size), ("p50 us",), "spin")
                    for size in (SMALL, MEDIUM, LARGE)
                ),
                *_cases_after_a_policy(),
                Case(
                    f"{LARGE}, 50 steps a second",
                    [
                        Row("paced", "Tandem, at 50 Hz", turns(_paced, partial(_over_tandem, "adaptive"))),
                        Row("paced_make_vec", "Tandem, make_vec, at 50 Hz", turns(_paced, _over_make_vec)),
                        Row("paced_pipe", "multiprocessing.Pipe, at 50 Hz", turns(_paced, step_peers.over_pipe)),
                    ],
                    quick=False,
                ),
            ],
            __name__,
        ),
        Suite(
            "busy",
            "the step round trip beside 0, 1 and 2 busy processes, and with both sides on one core",
            list(_busy_cases()),
            __name__,
        ),
    )
}
