"""Environments that wait, stepped by halves and by batches; and workers that wait for a trainer that computes.

Each environment has a worker of its own. A step waits 1 ms, as one of an external simulator does.
"""

import contextlib
import functools
import itertools
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import tandem
from tests.benchmark import policies
from tests.benchmark.rows import Case, Figures, Row, Turn

_ENVS = 16
_STEP_SECS, _LONG_STEP_SECS, _LONG_STEPS = 0.001, 0.02, 0.01
_HALF_SECS = 0.001  # the policy's time for one half of the environments
_IDLE_ENVS, _IDLE_WORKERS = 32, 2


class Waiting(gymnasium.Env[Any, Any]):
    """Waits in each step; with `skewed`, one step in 100 on average waits 20 times as long."""

    observation_space = gymnasium.spaces.Box(-1, 1, (4,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, skewed: bool) -> None:
        """Makes an environment; its waits depend on the seed of its first reset."""
        self._skewed = skewed
        self._obs = np.zeros(4, np.float32)

    @property
    def pid(self) -> int:
        """The id of the process that steps it."""
        return os.getpid()

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Returns zeros."""
        super().reset(seed=seed)
        return self._obs, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Waits, and returns zeros."""
        is_long = self._skewed and self.np_random.random() < _LONG_STEPS
        time.sleep(_LONG_STEP_SECS if is_long else _STEP_SECS)
        return self._obs, 0.0, False, False, {}


@contextlib.contextmanager
def _waiting(skewed: bool, **options: Any) -> Iterator[Any]:
    envs = tandem.make_vec(functools.partial(Waiting, skewed), _ENVS, num_workers=_ENVS, **options)
    try:
        envs.reset(seed=0)
        yield envs
    finally:
        envs.close()


def _repeated(cycle: Callable[[], int]) -> Turn:
    """Returns a turn that repeats a function; the function returns the number of environments that it has stepped."""

    def turn(seconds: float) -> Figures:
        now = time.perf_counter
        stepped, began = 0, now()
        while (last := now()) < began + seconds:
            stepped += cycle()
        return {"K steps/s": stepped / (last - began) / 1e3}

    turn(0.1)
    return turn


@contextlib.contextmanager
def _lock_step(skewed: bool, policy_secs: float, name: str) -> Iterator[Turn]:
    with _waiting(skewed) as envs:
        actions = np.zeros(_ENVS, np.int64)

        def cycle() -> int:
            envs.step(actions)
            policies.compute(policy_secs)
            return _ENVS

        yield _repeated(cycle)


@contextlib.contextmanager
def _halves(name: str) -> Iterator[Turn]:
    with _waiting(skewed=False) as envs:
        actions = np.zeros(_ENVS // 2, np.int64)
        halves = itertools.cycle((0, 1))
        for half in (0, 1):
            envs.send(actions, half=half)

        def cycle() -> int:
            half = next(halves)
            envs.recv(half=half)
            policies.compute(_HALF_SECS)
            envs.send(actions, half=half)
            return _ENVS // 2

        yield _repeated(cycle)


@contextlib.contextmanager
def _batches(name: str) -> Iterator[Turn]:
    with _waiting(skewed=True, engine=tandem.WorkerOptions(batch_size=_ENVS // 2)) as envs:
        actions = np.zeros(_ENVS // 2, np.int64)
        envs.send(np.zeros(_ENVS, np.int64))

        def cycle() -> int:
            envs.send(actions, envs.recv()[4]["env_id"])
            return _ENVS // 2

        yield _repeated(cycle)


def _cpu_secs(pid: int) -> float:
    """Returns the processor time of a process."""
    return int(Path(f"/proc/{pid}/schedstat").read_text("ascii").split()[0]) / 1e9


@contextlib.contextmanager
def _idle(name: str) -> Iterator[Turn]:
    """Measures the supervisor and the workers, from the results of a step, while the trainer computes."""
    envs = tandem.make_vec(functools.partial(Waiting, False), _IDLE_ENVS, num_workers=_IDLE_WORKERS)
    try:
        envs.reset(seed=0)
        pids = {*envs.get_attr("pid"), envs.client.engine_pid}

        def turn(seconds: float) -> Figures:
            for _ in range(3):
                envs.step(np.zeros(_IDLE_ENVS, np.int64))
            before = {pid: _cpu_secs(pid) for pid in pids}
            policies.compute(seconds)
            used = [_cpu_secs(pid) - before[pid] for pid in pids]
            return {"% of a core, greatest of the processes": 100 * max(used) / seconds}

        yield turn
    finally:
        envs.close()


def cases() -> list[Case]:
    """Returns the cases, for the suite `workers`."""
    policy = f"the policy computes {1e3 * _HALF_SECS:g} ms for a half"
    each = f"{_ENVS} workers with an environment each, whose steps wait 1 ms"
    lock_step = "Tandem, all environments at once"
    return [
        Case(
            f"{each}; {policy}",
            [
                Row("all", lock_step, functools.partial(_lock_step, False, 2 * _HALF_SECS)),
                Row("halves", "Tandem, two halves in turn", _halves, ("all",)),
            ],
            ("K steps/s",),
            quick=False,
        ),
        Case(
            f"{each}, and one in 100 waits 20 ms; no policy",
            [
                Row("all", lock_step, functools.partial(_lock_step, True, 0.0)),
                Row("batches", "Tandem, batch_size=8", _batches, ("all",)),
            ],
            ("K steps/s",),
            quick=False,
        ),
        Case(
            f"{_IDLE_WORKERS} workers, while the trainer computes",
            [Row("idle", "Tandem, supervisor and workers", _idle)],
            quick=False,
        ),
    ]
