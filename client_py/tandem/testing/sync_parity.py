"""Comparison of a vector environment with Gymnasium's SyncVectorEnv, and the environments for it."""

import functools
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from tandem.testing.sample_envs import RandomEnv
from tandem.testing.sample_spaces import FIXED, assert_same

NUM_ENVS = 5
ENVS: dict[str, Callable[[], gymnasium.Env[Any, Any]]] = {
    "CartPole": functools.partial(gymnasium.make, "CartPole-v1"),
    "Pendulum": functools.partial(gymnasium.make, "Pendulum-v1", max_episode_steps=30),
    "FrozenLake": functools.partial(gymnasium.make, "FrozenLake-v1"),
    "Blackjack": functools.partial(gymnasium.make, "Blackjack-v1"),
    "HalfCheetah": functools.partial(gymnasium.make, "HalfCheetah-v5", max_episode_steps=40),
    "Dict": functools.partial(RandomEnv, FIXED["Dict"], FIXED["Dict in another order"]),
    "image": functools.partial(RandomEnv, spaces.Box(0, 255, (16, 16, 3), np.uint8), FIXED["MultiDiscrete"]),
    "Text": functools.partial(RandomEnv, FIXED["Text of any characters"], FIXED["Text"]),
}


def _in_dtype(space: spaces.Space[Any], value: Any) -> Any:
    """Returns an observation in the space's dtype: some environments return an int."""
    if isinstance(space, spaces.Tuple):
        return tuple(map(_in_dtype, space, value))
    return space.dtype.type(value) if isinstance(space, spaces.Discrete) and space.dtype else value


def assert_parity(sync: SyncVectorEnv[Any, Any], ours: Any, steps: int, seed: int) -> int:
    """Compares some steps and resets of some environments; returns how many episodes ended."""
    assert_same(ours.reset(seed=seed), sync.reset(seed=seed))
    sync.action_space.seed(seed)
    rng = np.random.default_rng(seed)
    ended = 0
    for step in range(steps):
        actions = sync.action_space.sample()
        expected = sync.step(actions)
        _, _, terminations, truncations, infos = expected
        if "final_obs" in infos:
            for index in np.flatnonzero(infos["_final_obs"]):
                infos["final_obs"][index] = _in_dtype(sync.single_observation_space, infos["final_obs"][index])
        assert_same(ours.step(actions), expected)
        mask = terminations | truncations
        ended += int(mask.sum())
        if sync.autoreset_mode != AutoresetMode.DISABLED:
            mask = rng.random(NUM_ENVS) < 0.5 if step % 37 == 0 else np.zeros(NUM_ENVS, bool)
        if mask.any():
            reset_seed = None if step % 2 else step
            masks = ({"reset_mask": mask.copy()} for _ in range(2))
            assert_same(
                ours.reset(seed=reset_seed, options=next(masks)), sync.reset(seed=reset_seed, options=next(masks))
            )
    return ended
