"""Prints what EnvRows adds to a step of an environment: python -m tandem.testing.time_env_rows.

Three programs step equal environments in turn: EnvRows, a loop `for env in envs: env.step(action)`, and Gymnasium's
SyncVectorEnv. The column `infos` is the time in which the trainer process reads the infos.
"""

import math
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from tandem.testing.row_workers import RESET, RESET_ONLY, STEP, RowWorkers

_TURNS = 40


class _Null(gymnasium.Env[Any, Any]):
    """Returns the same objects in each step."""

    action_space = spaces.Discrete(2)

    def __init__(self, space: spaces.Space[Any], info: dict[str, Any]) -> None:
        self.observation_space = space
        self._results = (space.sample(), 0.0, False, False, info)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        return self._results[0], {}

    def step(self, action: Any) -> Any:
        return self._results


_BOX = spaces.Box(-1, 1, (4,), np.float32)
_NUMBERS = {"x": np.float64(1), "y": np.float64(2), "z": 3, "success": False}
_CASES: dict[str, tuple[int, int, Callable[[], gymnasium.Env[Any, Any]]]] = {
    "null": (16, 500, lambda: _Null(_BOX, {})),
    "null, 4 infos": (16, 500, lambda: _Null(_BOX, _NUMBERS)),
    "null, text in the infos": (16, 500, lambda: _Null(_BOX, {"text": "text"})),
    "null, Dict of two": (16, 500, lambda: _Null(spaces.Dict(a=_BOX, b=spaces.Discrete(3)), {})),
    "CartPole-v1": (16, 8, lambda: gymnasium.make("CartPole-v1")),
    "HalfCheetah-v5": (8, 4, lambda: gymnasium.make("HalfCheetah-v5")),
}


def _ns(steps: int, num_envs: int, call: Callable[[], Any]) -> float:
    begin = time.perf_counter_ns()
    for _ in range(steps):
        call()
    return (time.perf_counter_ns() - begin) / steps / num_envs


def _row(num_envs: int, steps: int, env_fn: Callable[[], gymnasium.Env[Any, Any]]) -> list[float]:
    """Returns the least times in nanoseconds for one step of one environment."""
    workers = RowWorkers([env_fn() for _ in range(num_envs)], AutoresetMode.DISABLED, num_workers=1)
    sync = SyncVectorEnv([env_fn] * num_envs, autoreset_mode=AutoresetMode.DISABLED)
    envs = [env_fn() for _ in range(num_envs)]
    (rows,) = workers.workers
    actions = sync.action_space.sample()
    workers.actions.write(actions)
    each = list(actions)

    def plain() -> None:
        for env, action in zip(envs, each, strict=True):
            env.step(action)

    def step_sync() -> None:
        sync._autoreset_envs[:] = False  # steps on after the end of an episode, as the others
        sync.step(actions)

    calls: list[Callable[[], Any]] = [lambda: rows.run(STEP, 2), plain, workers.infos.read, step_sync]
    least = [math.inf] * len(calls)
    for _ in range(_TURNS):
        workers.arrays.resets[:] = RESET
        workers.run(RESET_ONLY)
        sync.reset()
        for env in envs:
            env.reset()
        least = [min(best, _ns(steps, num_envs, call)) for best, call in zip(least, calls, strict=True)]
    return least


if __name__ == "__main__":
    gymnasium.logger.min_level = gymnasium.logger.ERROR
    print(f"{'ns for a step of one environment':34}{'EnvRows':>9}{'loop':>9}{'added':>9}{'infos':>9}{'Sync':>9}")
    for name, case in _CASES.items():
        ours, loop, infos, sync_ns = _row(*case)
        print(f"{name:34}{ours:9.0f}{loop:9.0f}{ours - loop:9.0f}{infos:9.0f}{sync_ns:9.0f}")
