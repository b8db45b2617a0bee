"""Balances CartPole-v1 by the quickstart's search, with an installed wheel; steps the SDK's engine in C.

Usage: python learn_cart_pole.py C_ENGINE
"""

import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np

import tandem

_WELL = 400  # an episode's return is 500 at most


class FirstEpisodes:
    """Environments as the search sees them: an action's sign is the push; rewards after the first episode are 0."""

    def __init__(self, client: tandem.SharedMemoryClient) -> None:
        """`client`: attached to CartPole-v1."""
        self._client = client
        self.num_envs, self.obs_size, self.act_size = client.num_envs, client.obs_size, client.act_size
        self.actions = np.zeros((client.num_envs, client.act_size), np.float32)

    def reset(self, seed: int) -> Any:
        """Starts an episode in each."""
        self._going = np.ones(self.num_envs, bool)
        return self._client.reset(seed=seed)

    def step(self, actions: Any) -> Any:
        """Steps all; returns what the client returns."""
        obs, rewards, ended = self._client.step((actions > 0).astype(np.float32))
        counted = rewards * self._going
        self._going &= ~ended.astype(bool)
        return obs, counted, ended


if __name__ == "__main__":
    quickstart = runpy.run_path(str(Path(__file__).parents[2] / "client_py/examples/train_ars.py"))
    engine = tandem.launch_engine("CartPole-v1", num_envs=16, seed=0)
    with engine, tandem.SharedMemoryClient(engine.name) as client:
        search = quickstart["Search"](FirstEpisodes(client), 0)
        returns = [search.evaluate()]
        while returns[-1] < _WELL and len(returns) < 100:
            search.iterate()
            returns.append(search.evaluate())
    print(f"{'ok' if returns[-1] >= _WELL else 'FAILED'} {tandem.__file__}: CartPole-v1, returns {np.round(returns)}")
    engine = tandem.launch_engine(server=Path(sys.argv[1]), num_envs=3, flags=("--truncate_after=4",))
    with engine, tandem.SharedMemoryClient(engine.name, timeout=60) as client:
        ended = [bool(client.step(np.ones((3, 1), np.float32))[2].all()) for _ in range(8)]
    print(f"{'ok' if ended == [False, False, False, True] * 2 else 'FAILED'} {sys.argv[1]}: steps end episodes {ended}")
