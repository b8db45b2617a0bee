"""Engines in Python for tests, and `serving`, which serves one from a thread of the test."""

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

import tandem
from tandem.serving.arrays import EngineArrays
from tandem.serving.engine import Index
from tandem.testing.engines import unique_name

# First actions that make `Counter` misbehave.
FAIL, RETURN, EXIT, HANG = -1001.0, -1002.0, -1003.0, -1004.0


class Counter(tandem.Engine):
    """Counts the steps of each episode: obs is (count, first action), the reward the sum of the actions."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,))
    action_space = spaces.Box(-np.inf, np.inf, (3,))
    step_secs = 0.01

    def __init__(self, num_envs: int = 3, *, truncate_after: int = 0) -> None:
        """Makes the counts; an episode has `truncate_after` steps, 0: no limit."""
        self.num_envs = num_envs
        self.truncate_after = truncate_after
        self.count = np.zeros(num_envs, np.int64)
        self.resets: list[tuple[list[int], list[int | None]]] = []
        self.stepped: list[Any] = []

    def reset(self, envs: NDArray[np.int64], seeds: Sequence[int | None], arrays: EngineArrays) -> None:
        """Sets counts to 0."""
        self.resets.append((envs.tolist(), list(seeds)))
        self.count[envs] = 0
        arrays.obs[envs] = 0

    def step(self, envs: Index, arrays: EngineArrays) -> None:
        """Counts."""
        self.stepped.append(envs if isinstance(envs, slice) else envs.tolist())
        first = arrays.actions[0, 0]
        if first == FAIL:
            raise ValueError("no step for you")
        if first == RETURN:
            return "results"  # type: ignore[return-value]
        if first == EXIT:
            raise SystemExit(3)
        while first == HANG:
            threading.Event().wait(0.01)
        self.count[envs] += 1
        arrays.obs[envs, 0] = self.count[envs]
        arrays.obs[envs, 1] = arrays.actions[envs, 0]
        arrays.rewards[envs] = arrays.actions[envs].sum(axis=1)
        arrays.terminateds[envs] = False
        arrays.truncateds[envs] = self.count[envs] == self.truncate_after


@contextlib.contextmanager
def serving(engine: tandem.Engine, **options: Any) -> Iterator[str]:
    """Serves an engine from a thread; yields the region's name. What `serve` raised is raised at the end."""
    name = options.setdefault("name", unique_name())
    stop = threading.Event()
    raised: list[BaseException] = []

    def run() -> None:
        try:
            tandem.serve(engine, stop=stop, **options)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield name
    finally:
        stop.set()
        thread.join()
    if raised:
        raise raised[0]


if __name__ == "__main__":
    tandem.serve_program(Counter)
