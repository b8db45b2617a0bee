"""Measures a row of any kind; here are those whose client is a Python program that needs no more than Tandem does."""

import contextlib
import multiprocessing
import socket
from collections.abc import Iterator
from multiprocessing.connection import Connection

import tandem
from tests.benchmark import bare_spin
from tests.benchmark.client_loop import Floats, PackedResults, Results, Step, TrivialWork, measure_steps
from tests.benchmark.engine_process import Engine, forked, serving
from tests.benchmark.interpreters import measure_by_interpreter
from tests.benchmark.measurement import Group, Row, Size, measure_cpp


def measure_row(row: Row, size: Size, seconds: float, region: str) -> Group:
    """Measures a row: by C++ programs, by this one, or by one of the row's own interpreter.

    Args:
      row: The row.
      size: The payload.
      seconds: End the group after that long.
      region: A name for the region, for Tandem's rows, or of a socket.

    Returns:
      What one group took.

    Raises:
      RuntimeError: Results were not those of the actions.
      RowUnavailable: Its interpreter was not made, or the machine forbids what it needs.
      subprocess.SubprocessError: It failed; its own message is on stderr.
    """
    if not row.python:
        return measure_cpp(row, size, seconds, region)
    if row.interpreter is not None:
        return measure_by_interpreter(row, size, seconds, region)
    kind = row.key.removeprefix("python_")
    if kind == "bare_spin":
        connected = _over_bare_spin(size)
    elif kind == "socket":
        connected = _over_socket(size)
    elif kind == "pipe":
        connected = _over_pipe(size)
    elif kind == "make_vec":
        connected = _over_make_vec(size, region)
    else:
        connected = _over_tandem(size, kind, region)
    with connected as (step, engine):
        return measure_steps(step, engine.cpu_nanos, size, seconds)


@contextlib.contextmanager
def _over_bare_spin(size: Size) -> Iterator[tuple[Step, Engine]]:
    spin = bare_spin.BareSpin(size.envs, size.obs, size.act)
    with forked(spin.serve) as engine:
        yield bare_spin.stepper(spin), engine


@contextlib.contextmanager
def _over_tandem(size: Size, wait: str, region: str) -> Iterator[tuple[Step, Engine]]:
    with serving(f"host_{wait}", size, f"--region={region}") as engine:
        with tandem.SharedMemoryClient(region, timeout=30, wait=wait) as client:
            yield client.step, engine


@contextlib.contextmanager
def _over_make_vec(size: Size, region: str) -> Iterator[tuple[Step, Engine]]:
    """The environments that make_vec returns, over the rows' own engine."""
    with serving("host_adaptive", size, f"--region={region}") as engine:
        envs = tandem.SharedMemoryVectorEnv(tandem.SharedMemoryClient(region, timeout=30))
        envs.reset()

        def step(actions: Floats) -> Results:
            return envs.step(actions)[:3]

        try:
            yield step, engine
        finally:
            envs.close()


@contextlib.contextmanager
def _over_socket(size: Size) -> Iterator[tuple[Step, Engine]]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    packed = PackedResults(size)
    received = packed.memory.data

    def step(actions: Floats) -> Results:
        ours.sendall(actions.data)
        got = 0
        while got < len(received):
            now = ours.recv_into(received[got:])
            if now == 0:
                raise ConnectionResetError("the engine left")
            got += now
        return packed.arrays

    with contextlib.ExitStack() as stack:
        stack.enter_context(ours)
        with theirs:
            served = serving("socket", size, f"--socket={theirs.fileno()}", pass_fds=(theirs.fileno(),))
            engine = stack.enter_context(served)
        yield step, engine


@contextlib.contextmanager
def _over_pipe(size: Size) -> Iterator[tuple[Step, Engine]]:
    ours, theirs = multiprocessing.Pipe()

    def step(actions: Floats) -> Results:
        ours.send(actions)
        results: Results = ours.recv()
        return results

    with ours, forked(lambda: _serve_pipe(theirs, size)) as engine:
        theirs.close()
        yield step, engine


def _serve_pipe(connection: Connection, size: Size) -> None:
    work = TrivialWork(size)
    results = PackedResults(size).arrays
    while True:
        work(connection.recv(), results)
        connection.send(results)
