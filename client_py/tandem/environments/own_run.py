"""`OwnRun`: the statistics of rewards and ends that the trainer computes, for infos and observers."""

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem._native import NativeClient
from tandem.environments.transition import Mask

_EPISODES = 100  # as an engine's RunStatistics has it


class OwnRun:
    """Counts the steps of environments with own rewards; an engine's `RunStatistics` does the same with its own."""

    def __init__(self, num_envs: int) -> None:
        """Takes the number of environments, whose episodes begin now."""
        self.values = np.zeros((2, num_envs))  # of each environment: the episode's return, and the last reward
        self._returns, self._rewards = self.values
        self._ended: deque[tuple[float, int]] = deque(maxlen=_EPISODES)  # return and length of each episode
        self._means: Any = None  # of both in _ended; None: no episode has ended
        self._episodes = 0

    def reset(self, mask: Mask) -> None:
        """Begins episodes in some environments."""
        self._returns[mask] = self._rewards[mask] = 0

    def add(
        self, stepped: Mask, rewards: NDArray[np.float64], ended: Mask, lengths: NDArray[np.int64]
    ) -> dict[str, Any]:
        """Adds a step of the environments in `stepped`.

        `ended`: those of them whose episodes it ended; `lengths`: each episode's number of steps. Returns the infos
        "reward", "episode_return" and "episode_length" of the environments in `stepped`.
        """
        self._rewards[stepped] = rewards[stepped]
        self._returns[stepped] += rewards[stepped]
        env_ids = np.flatnonzero(ended)
        if env_ids.size:
            self._ended.extend(zip(self._returns[env_ids].tolist(), lengths[env_ids].tolist(), strict=True))
            self._episodes += env_ids.size
            self._means = np.mean(self._ended, axis=0)
        values = {"reward": self._rewards, "episode_return": self._returns, "episode_length": lengths}
        infos: dict[str, Any] = {}
        for name, array in values.items():
            infos[name], infos[f"_{name}"] = np.where(stepped, array, array.dtype.type(0)), stepped.copy()
        return infos

    def show(self, native: NativeClient) -> None:
        """Shows the statistics to the engine and to observers of the client's region."""
        returns, lengths = (self._returns.mean(), 0.0) if self._means is None else self._means
        native.show_own_run(
            episodes=self._episodes,
            last_reward=float(self._rewards.mean()),
            rolling_return=float(returns),
            episode_length=float(lengths),
        )
