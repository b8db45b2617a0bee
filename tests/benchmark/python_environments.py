"""Environments in Python: Tandem's workers, compared with a bare loop, a sketch in plain Python, and AsyncVectorEnv.

The bare loop is the bound: two processes, each of which steps its environments and drops the results. The sketch is
what one writes first: rows of shared memory, and one byte by a pipe for each worker and step.
"""

import contextlib
import functools
import itertools
import mmap
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode

import tandem
from tests.benchmark.rows import Case, Figures, Row, Suite, Turn

_WORKERS = 2
_BATCHES = 64  # batches of actions, used repeatedly
_LOOPS = 20  # steps of a bound's environments between two looks at the clock


class Null(gymnasium.Env[Any, Any]):
    """Does nothing."""

    observation_space = spaces.Box(-1, 1, (4,), np.float32)
    action_space = spaces.Discrete(2)
    _obs = np.zeros(4, np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Returns zeros."""
        return self._obs, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Returns zeros."""
        return self._obs, 0.0, False, False, {}


@dataclass(frozen=True)
class Cell:
    """The environments that all rows of a case step.

    Attributes:
      name: An id of Gymnasium, or "nothing" for Null.
      each: The number of environments of each of two workers.
    """

    name: str
    each: int

    def __str__(self) -> str:
        """Formats the cell for titles."""
        return f"{_WORKERS} workers with {self.each} {self.name} each"

    def make(self) -> gymnasium.Env[Any, Any]:
        """Makes one environment."""
        return Null() if self.name == "nothing" else gymnasium.make(self.name)

    def actions(self, envs: int) -> list[Any]:
        """Draws batches of random actions."""
        space = gymnasium.vector.utils.batch_space(self.make().action_space, envs)
        space.seed(0)
        return [space.sample() for _ in range(_BATCHES)]


def _rate(envs: int, steps: float, secs: float) -> Figures:
    return {"us": 1e6 * secs / steps, "K steps/s": steps * envs / secs / 1e3}


def _stepping(step: Callable[[Any], object], cell: Cell) -> Turn:
    envs = _WORKERS * cell.each
    actions = itertools.cycle(cell.actions(envs))

    def turn(seconds: float) -> Figures:
        now = time.perf_counter
        steps, began = 0, now()
        while (last := now()) < began + seconds:
            step(next(actions))
            steps += 1
        return _rate(envs, steps, last - began)

    turn(0.1)
    return turn


@contextlib.contextmanager
def _vector(make: Callable[[Cell], Any], cell: Cell, name: str) -> Iterator[Turn]:
    envs = make(cell)
    try:
        envs.reset(seed=0)
        yield _stepping(envs.step, cell)
    finally:
        envs.close()


def _workers(cell: Cell) -> Any:
    return tandem.make_vec([cell.make] * (_WORKERS * cell.each), num_workers=_WORKERS, autoreset_mode="SameStep")


def _async(cell: Cell) -> Any:
    return AsyncVectorEnv([cell.make] * (_WORKERS * cell.each), autoreset_mode=AutoresetMode.SAME_STEP)


def _bound_worker(cell: Cell, pipe: Connection) -> None:
    envs = [cell.make() for _ in range(cell.each)]
    for index, env in enumerate(envs):
        env.reset(seed=index)
    batches = itertools.cycle(cell.actions(cell.each))
    while (seconds := pipe.recv()) is not None:
        now = time.perf_counter
        steps, began = 0, now()
        while (last := now()) < began + seconds:
            for _ in range(_LOOPS):
                for env, action in zip(envs, next(batches), strict=True):
                    _, _, terminated, truncated, _ = env.step(action)
                    if terminated or truncated:
                        env.reset()
                steps += 1
        pipe.send(steps / (last - began))


def _sketch_worker(cell: Cell, pipe: tuple[int, int], rows: "_Rows") -> None:
    envs = [cell.make() for _ in range(cell.each)]
    for index, env in enumerate(envs):
        rows.obs[index] = env.reset(seed=index)[0]
    while os.read(pipe[0], 1):
        for index, env in enumerate(envs):
            obs, reward, terminated, truncated, _ = env.step(rows.actions[index])
            if terminated or truncated:
                obs, _ = env.reset()
            rows.obs[index], rows.rewards[index] = obs, reward
            rows.terminations[index], rows.truncations[index] = terminated, truncated
        os.write(pipe[1], b"x")


class _Rows:
    """Arrays in shared memory."""

    def __init__(self, cell: Cell, envs: int) -> None:
        """Makes arrays for some environments."""
        env = cell.make()
        obs, action = env.observation_space, env.action_space
        self.obs = self._array(envs, obs.shape or (), obs.dtype)
        self.actions = self._array(envs, action.shape or (), action.dtype)
        self.rewards = self._array(envs, (), np.float64)
        self.terminations, self.truncations = self._array(envs, (), np.bool_), self._array(envs, (), np.bool_)

    @staticmethod
    def _array(envs: int, shape: tuple[int, ...], dtype: Any) -> Any:
        count = envs * int(np.prod(shape))
        memory = mmap.mmap(-1, max(1, count * np.dtype(dtype).itemsize))
        return np.frombuffer(memory, dtype, count).reshape(envs, *shape)

    def part(self, first: int, count: int) -> "_Rows":
        """Returns views of some environments' rows."""
        part = object.__new__(_Rows)
        vars(part).update({name: array[first : first + count] for name, array in vars(self).items()})
        return part


@contextlib.contextmanager
def _bound(cell: Cell, name: str) -> Iterator[Turn]:
    context = multiprocessing.get_context("fork")
    pipes = [context.Pipe() for _ in range(_WORKERS)]
    processes = [context.Process(target=_bound_worker, args=(cell, theirs), daemon=True) for _, theirs in pipes]
    for process in processes:
        process.start()

    def turn(seconds: float) -> Figures:
        for ours, _ in pipes:
            ours.send(seconds)
        rates = [ours.recv() for ours, _ in pipes]
        return _rate(_WORKERS * cell.each, sum(rates) / _WORKERS, 1.0)

    try:
        turn(0.1)
        yield turn
    finally:
        for ours, _ in pipes:
            ours.send(None)
        for process in processes:
            process.join()


@contextlib.contextmanager
def _sketch(cell: Cell, name: str) -> Iterator[Turn]:
    context = multiprocessing.get_context("fork")
    rows = _Rows(cell, _WORKERS * cell.each)
    pipes = [(os.pipe(), os.pipe()) for _ in range(_WORKERS)]
    processes = []
    for worker, (there, back) in enumerate(pipes):
        part = rows.part(worker * cell.each, cell.each)
        process = context.Process(target=_sketch_worker, args=(cell, (there[0], back[1]), part), daemon=True)
        process.start()
        processes.append(process)

    def step(actions: Any) -> Any:
        rows.actions[:] = actions
        for there, _ in pipes:
            os.write(there[1], b"x")
        for _, back in pipes:
            os.read(back[0], 1)
        results = rows.obs, rows.rewards, rows.terminations, rows.truncations
        return *(array.copy() for array in results), {}

    try:
        yield _stepping(step, cell)
    finally:
        for process in processes:
            process.kill()
            process.join()
        for fd in itertools.chain(*itertools.chain(*pipes)):
            os.close(fd)


def _case(cell: Cell, quick: bool) -> Case:
    def row(key: str, label: str, opened: Any, python: str = "") -> Row:
        return Row(key, label, functools.partial(opened, cell), ("bound",), python)

    rows = [
        row("bound", "bare loop in two processes", _bound),
        row("workers", "Tandem, make_vec", functools.partial(_vector, _workers)),
        row("sketch", "rows of mmap, bytes by pipes", _sketch),
        row("gymnasium_async", "Gymnasium AsyncVectorEnv", functools.partial(_vector, _async), "peers"),
    ]
    return Case(str(cell), rows, ("K steps/s",), quick=quick)


SUITES = {
    "workers": Suite(
        "workers",
        "environments in Python, compared with a bare loop, a sketch in plain Python, and Gymnasium's AsyncVectorEnv",
        [
            _case(Cell(name, each), quick=(name, each) == ("CartPole-v1", 16))
            for name, each in (
                ("CartPole-v1", 1),
                ("CartPole-v1", 16),
                ("CartPole-v1", 64),
                ("HalfCheetah-v5", 4),
                ("HalfCheetah-v5", 16),
                ("nothing", 64),
            )
        ],
        __name__,
        stays_open=True,
    )
}
