"""An engine in Python that counts steps, as tests/interop/foreign_client.py expects it."""

from collections.abc import Sequence

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

import tandem
from tandem.serving.arrays import EngineArrays
from tandem.serving.engine import Index


class CountingEngine(tandem.Engine):
    """Observes the steps of the episode, and the first action."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,))
    action_space = spaces.Box(-np.inf, np.inf, (3,))

    def __init__(self, num_envs: int = 1) -> None:
        """Makes so many environments."""
        self.num_envs = num_envs

    def reset(self, envs: NDArray[np.int64], seeds: Sequence[int | None], arrays: EngineArrays) -> None:
        """Begins to count at 0."""
        arrays.obs[envs] = 0

    def step(self, envs: Index, arrays: EngineArrays) -> None:
        """Counts."""
        arrays.obs[envs, 0] += 1
        arrays.obs[envs, 1] = arrays.actions[envs, 0]
        arrays.rewards[envs] = arrays.actions[envs].sum(axis=1)
        arrays.terminateds[envs] = False
        arrays.truncateds[envs] = False


if __name__ == "__main__":
    tandem.serve_program(CountingEngine)
