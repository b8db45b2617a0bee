"""Environments in Python: Tandem's workers, compared with a bare loop, a sketch in plain Python, and other programs.

The bare loop is the bound: as many processes as workers, each of which steps its environments and drops the results.
In lock-step, these processes wait for one another after each step, as a trainer needs it; still without a trainer. The
sketch is what one writes first: rows of shared memory, and one byte by a pipe for each worker and step.
"""

import contextlib
import functools
import importlib
import itertools
import mmap
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode
from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

import tandem
from tests.benchmark import policies, waiting_environments
from tests.benchmark.rows import Case, Figures, Row, Suite, Turn

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
      name: An id of Gymnasium, or "nothing" for Null. Atari's images are 84 x 84, the last four in a stack.
      each: The number of environments of each worker.
      workers: The number of workers.
      policy: What the trainer computes between two steps, for `policies.stepping`; "": nothing.
    """

    name: str
    each: int
    workers: int = 2
    policy: str = ""

    def __str__(self) -> str:
        """Formats the cell for titles."""
        text = f"{self.workers} workers with {self.each} {self.name} each"
        return text + (f", after {self.policy}" if self.policy else "")

    @property
    def envs(self) -> int:
        """The number of environments."""
        return self.workers * self.each

    @property
    def is_atari(self) -> bool:
        """Whether it is a game of Atari, which needs a package of its own."""
        return self.name.startswith("ALE/")

    def make(self) -> gymnasium.Env[Any, Any]:
        """Makes one environment."""
        if self.name == "nothing":
            return Null()
        if not self.is_atari:
            return gymnasium.make(self.name)
        gymnasium.register_envs(importlib.import_module("ale_py"))
        game = AtariPreprocessing(gymnasium.make(self.name, frameskip=1))
        return FrameStackObservation(game, 4)

    def actions(self, envs: int) -> list[Any]:
        """Draws batches of random actions."""
        space = gymnasium.vector.utils.batch_space(self.make().action_space, envs)
        space.seed(0)
        return [space.sample() for _ in range(_BATCHES)]


def _rate(envs: int, steps: float, secs: float) -> Figures:
    return {"us": 1e6 * secs / steps, "K steps/s": steps * envs / secs / 1e3}


def _stepping(step: Callable[[Any], Any], cell: Cell) -> Turn:
    if cell.policy:
        return policies.stepping(step, cell.actions(cell.envs), cell.policy)
    actions = itertools.cycle(cell.actions(cell.envs))

    def turn(seconds: float) -> Figures:
        now = time.perf_counter
        steps, began = 0, now()
        while (last := now()) < began + seconds:
            step(next(actions))
            steps += 1
        return _rate(cell.envs, steps, last - began)

    turn(0.1)
    return turn


@contextlib.contextmanager
def _vector(make: Callable[[Cell], Any], cell: Cell, name: str) -> Iterator[Turn]:
    envs = make(cell)
    try:
        envs.reset()
        yield _stepping(envs.step, cell)
    finally:
        envs.close()


def _workers(cell: Cell) -> Any:
    return tandem.make_vec([cell.make] * cell.envs, num_workers=cell.workers, autoreset_mode="SameStep")


def _async(cell: Cell) -> Any:
    return AsyncVectorEnv([cell.make] * cell.envs, autoreset_mode=AutoresetMode.SAME_STEP)


def _subproc(cell: Cell) -> Any:
    vec_env = importlib.import_module("stable_baselines3.common.vec_env")
    return vec_env.SubprocVecEnv([cell.make] * cell.envs)


class _BareLoop:
    """Environments that are stepped without a trainer."""

    def __init__(self, cell: Cell) -> None:
        """Makes a worker's environments."""
        self._envs = [cell.make() for _ in range(cell.each)]
        for index, env in enumerate(self._envs):
            env.reset(seed=index)
        self._batches = itertools.cycle(cell.actions(cell.each))

    def step(self) -> None:
        """Steps each environment once, and resets those whose episode has ended."""
        for env, action in zip(self._envs, next(self._batches), strict=True):
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()


def _bound_worker(cell: Cell, worker: int, done: Any, pipe: Connection) -> None:
    loop = _BareLoop(cell)
    while (seconds := pipe.recv()) is not None:
        now = time.perf_counter
        steps, began = 0, now()
        while (last := now()) < began + seconds:
            for _ in range(_LOOPS):
                loop.step()
            steps += _LOOPS
        pipe.send((last - began) / steps)


def _lock_step_worker(cell: Cell, worker: int, done: Any, pipe: Connection) -> None:
    """Steps for as long as a step has taken so far, so that all workers make the same number of steps."""
    loop, steps, step_secs = _BareLoop(cell), 0, 0.001
    others = [other for other in range(cell.workers) if other != worker]
    while (seconds := pipe.recv()) is not None:
        began = time.perf_counter()
        count = max(1, int(seconds / step_secs))
        for _ in range(count):
            loop.step()
            steps += 1
            done[worker] = steps
            while any(done[other] < steps for other in others):
                os.sched_yield()
        pipe.send((time.perf_counter() - began) / count)
        step_secs = pipe.recv()


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
def _bare(target: Callable[[Cell, int, Any, Connection], None], cell: Cell, name: str) -> Iterator[Turn]:
    context = multiprocessing.get_context("fork")
    done = np.frombuffer(mmap.mmap(-1, 8 * cell.workers), np.int64)
    pipes = [context.Pipe() for _ in range(cell.workers)]
    processes = [
        context.Process(target=target, args=(cell, worker, done, theirs), daemon=True)
        for worker, (_, theirs) in enumerate(pipes)
    ]
    for process in processes:
        process.start()

    def turn(seconds: float) -> Figures:
        for ours, _ in pipes:
            ours.send(seconds)
        step_secs = [ours.recv() for ours, _ in pipes]
        mean = len(step_secs) / sum(1 / each for each in step_secs)  # of the rates
        if target is _lock_step_worker:
            for ours, _ in pipes:
                ours.send(mean)
        return _rate(cell.envs, 1, mean)

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
    rows = _Rows(cell, cell.envs)
    pipes = [(os.pipe(), os.pipe()) for _ in range(cell.workers)]
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


def _cases_after_a_policy() -> Iterator[Case]:
    for cell in (Cell("CartPole-v1", 16), Cell("HalfCheetah-v5", 4)):
        for policy in policies.ALL:
            after = replace(cell, policy=policy)
            rows = [
                row for row in _case(after, quick=False).rows if row.key in ("workers", "sketch", "gymnasium_async")
            ]
            against = [replace(row, against=("workers",)) for row in rows]
            yield Case(str(after), against, ("p50 us",), quick=False)


def _case(cell: Cell, quick: bool) -> Case:
    def row(key: str, label: str, opened: Callable[..., AbstractContextManager[Turn]], python: str = "") -> Row:
        python = "environments" if cell.is_atari else python
        return Row(key, label, functools.partial(opened, cell), ("bound",), python)

    rows = [
        row("bound", "bare loop in as many processes", functools.partial(_bare, _bound_worker)),
        row("lock_step", "the same in lock-step", functools.partial(_bare, _lock_step_worker)),
        row("workers", "Tandem, make_vec", functools.partial(_vector, _workers)),
        row("sketch", "rows of mmap, bytes by pipes", _sketch),
        row("gymnasium_async", "Gymnasium AsyncVectorEnv", functools.partial(_vector, _async), "peers"),
    ]
    if not cell.is_atari and cell.envs <= 32:  # each of its processes imports torch: a quarter of a GB
        rows.append(row("sb3_subproc", "SB3 SubprocVecEnv", functools.partial(_vector, _subproc), "torch"))
    return Case(str(cell), rows, ("K steps/s",), quick=quick)


_CELLS = [
    Cell("CartPole-v1", 1),
    Cell("CartPole-v1", 16),
    Cell("CartPole-v1", 64),
    Cell("CartPole-v1", 4, workers=8),
    Cell("HalfCheetah-v5", 4),
    Cell("HalfCheetah-v5", 16),
    Cell("HalfCheetah-v5", 64),
    Cell("ALE/Pong-v5", 4),
    Cell("ALE/Pong-v5", 16),
    Cell("nothing", 64),
]

SUITES = {
    "workers": Suite(
        "workers",
        "environments in Python, compared with a bare loop, a sketch in plain Python, and other programs",
        [
            *(_case(cell, quick=cell == _CELLS[1]) for cell in _CELLS),
            *_cases_after_a_policy(),
            *waiting_environments.cases(),
        ],
        __name__,
        stays_open=True,
    )
}
