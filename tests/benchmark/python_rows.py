"""The rows whose client is a Python program."""

import contextlib
import gc
import multiprocessing
import os
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection

import numpy as np
from numpy.typing import NDArray

import tandem
from tests.benchmark.measurement import ROUND_TRIP, Group, Row, Size, warmup_of

Floats = NDArray[np.float32]
Results = tuple[Floats, Floats, NDArray[np.uint8]]
Step = Callable[[Floats], Results]


@dataclass(frozen=True)
class Engine:
    """The other process of a row.

    Attributes:
      pid: Its process id.
      cpu_answers: A pipe into which it writes its CPU time, nanoseconds as an int64, when SIGUSR1 asks for it.
    """

    pid: int
    cpu_answers: int

    def cpu_nanos(self) -> int:
        """Asks for its CPU time."""
        os.kill(self.pid, signal.SIGUSR1)
        nanos: int = struct.unpack("=q", os.read(self.cpu_answers, 8))[0]
        return nanos


def measure_python(row: Row, size: Size, seconds: float, region: str) -> Group:
    """Measures a row whose client is a Python program: this one.

    Args:
      row: The row.
      size: The payload.
      seconds: End the group after that long.
      region: A name for the region, for Tandem's rows.

    Returns:
      What one group took.

    Raises:
      RuntimeError: Results were not those of the actions.
    """
    kind = row.key.removeprefix("python_")
    if kind == "socket":
        connected = _over_socket(size)
    elif kind == "pipe":
        connected = _over_pipe(size)
    else:
        connected = _over_tandem(size, kind, region)
    with connected as (step, engine):
        gc.collect()
        gc.disable()
        try:
            return _measure(step, engine, size, seconds)
        finally:
            gc.enable()


def _measure(step: Step, engine: Engine, size: Size, seconds: float) -> Group:
    # Two sets of actions take turns, so that results of the exchange before would be noticed.
    base = (np.arange(size.envs * size.act) % 5).astype(np.float32).reshape(size.envs, size.act)
    actions = (base, base + np.float32(1))
    rewards_wanted = tuple(float(a[-1].sum()) for a in actions)
    last_of_ramp = size.obs - 1
    steps: list[int] = []
    cycles: list[int] = []
    now = time.perf_counter_ns
    # Longer than that, if need be: the scheduler spreads two processes over the cores in its own time.
    warm = now() + 30_000_000
    for i in _endless_until(lambda: now() >= warm, -warmup_of(size), size.exchanges):
        if i == 0:
            engine_cpu = engine.cpu_nanos()
            client_cpu = time.process_time_ns()
            end = now() + int(seconds * 1e9)
        wanted = actions[i & 1]
        asked = now()
        obs, rewards, dones = step(wanted)
        answered = now()
        obs.sum(), rewards.sum(), dones.sum()  # a policy reads every value
        read = now()
        reward = rewards_wanted[i & 1]
        if rewards[-1] != reward or obs[-1, -1] != reward + last_of_ramp or dones[-1]:
            raise RuntimeError(f"exchange {i}: wrong results")
        if i < 0:
            continue
        steps.append(answered - asked)
        cycles.append(read - asked)
        if i >= 10 and read >= end:
            break
    client_cpu = time.process_time_ns() - client_cpu
    engine_cpu = engine.cpu_nanos() - engine_cpu
    return Group(
        exchanges=len(steps),
        step_mean=sum(steps) / len(steps),
        step_p50=_quantile(steps, 0.5),
        step_p99=_quantile(steps, 0.99),
        cycle_p50=_quantile(cycles, 0.5),
        client_cpu=client_cpu / len(steps),
        engine_cpu=engine_cpu / len(steps),
    )


def _endless_until(warm: Callable[[], bool], first: int, end: int) -> Iterator[int]:
    """Counts from first (negative) to end - 1, but goes on from -2 instead of 0 until it is warm."""
    i = first
    while i < end:
        if i == 0 and not warm():
            i = -2
        yield i
        i += 1


def _quantile(values: list[int], q: float) -> int:
    return sorted(values)[min(int(q * len(values)), len(values) - 1)]


@contextlib.contextmanager
def serving(row: str, size: Size, *more: str, pass_fds: tuple[int, ...] = ()) -> Iterator[Engine]:
    """Runs the engine's side of a row in a process of its own; it has ended afterwards.

    Args:
      row: round_trip's --row.
      size: The payload.
      *more: More of round_trip's command line.
      pass_fds: File descriptors that it inherits.

    Yields:
      The process.
    """
    answers, answer = os.pipe()
    command = [str(ROUND_TRIP), "--serve", f"--row={row}", *size.flags(), f"--cpu_fd={answer}", *more]
    try:
        engine = subprocess.Popen(command, pass_fds=(answer, *pass_fds))
    finally:
        os.close(answer)
    try:
        yield Engine(engine.pid, answers)
    finally:
        engine.terminate()
        engine.wait()
        os.close(answers)


@contextlib.contextmanager
def _over_tandem(size: Size, wait: str, region: str) -> Iterator[tuple[Step, Engine]]:
    with serving(f"host_{wait}", size, f"--region={region}") as engine:
        with tandem.SharedMemoryClient(region, timeout=30, wait=wait) as client:
            yield client.step, engine


@contextlib.contextmanager
def _over_socket(size: Size) -> Iterator[tuple[Step, Engine]]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    obs_bytes, rewards_bytes = size.envs * size.obs * 4, size.envs * 4
    buffer = np.zeros(obs_bytes + rewards_bytes + size.envs, dtype=np.uint8)
    received = buffer.data
    obs = buffer[:obs_bytes].view(np.float32).reshape(size.envs, size.obs)
    rewards = buffer[obs_bytes : obs_bytes + rewards_bytes].view(np.float32)
    dones = buffer[obs_bytes + rewards_bytes :]

    def step(actions: Floats) -> Results:
        ours.sendall(actions.data)
        got = 0
        while got < len(received):
            now = ours.recv_into(received[got:])
            if now == 0:
                raise ConnectionResetError("the engine left")
            got += now
        return obs, rewards, dones

    with ours:
        with theirs:
            served = serving("socket", size, f"--socket={theirs.fileno()}", pass_fds=(theirs.fileno(),))
            engine = served.__enter__()
        try:
            yield step, engine
        finally:
            served.__exit__(None, None, None)


@contextlib.contextmanager
def _over_pipe(size: Size) -> Iterator[tuple[Step, Engine]]:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    answers, answer = os.pipe()
    engine = context.Process(target=_serve_pipe, args=(theirs, size, answer), daemon=True)
    engine.start()
    theirs.close()
    os.close(answer)

    def step(actions: Floats) -> Results:
        ours.send(actions)
        results: Results = ours.recv()
        return results

    try:
        assert engine.pid is not None
        yield step, Engine(engine.pid, answers)
    finally:
        ours.close()
        engine.kill()
        engine.join()
        os.close(answers)


def _serve_pipe(connection: Connection, size: Size, answer: int) -> None:
    signal.signal(signal.SIGUSR1, lambda *_: os.write(answer, struct.pack("=q", time.process_time_ns())))
    ramp = np.arange(size.obs, dtype=np.float32)
    dones = np.zeros(size.envs, dtype=np.uint8)
    with contextlib.suppress(EOFError, KeyboardInterrupt):
        while True:
            rewards = connection.recv().sum(axis=1, dtype=np.float32)
            connection.send((rewards[:, None] + ramp, rewards, dones))
