"""Tests `Episodes`: which episodes ended in a rollout."""

import numpy as np
import pytest

from tandem.ray.rollout import Episodes


@pytest.mark.parametrize("ends", [0.0, 0.02, 0.3, 0.95])
def test_episodes_are_those_of_a_sum_over_the_steps(ends: float) -> None:
    """Over several rollouts, in the order of their ends; a reset is no step."""
    random = np.random.default_rng(0)
    num_envs, horizon = 5, 7
    episodes = Episodes(num_envs)
    returns, lengths = np.zeros(num_envs), np.zeros(num_envs, np.int64)
    resets = np.zeros((horizon + 1, num_envs), np.bool_)
    for _ in range(40):
        resets[0] = resets[-1]
        for step in range(horizon):  # no episode ends in its reset
            resets[step + 1] = (random.random(num_envs) < ends) & ~resets[step]
        rewards = random.normal(size=(horizon, num_envs)) * ~resets[:-1]
        expected = []
        for step in range(horizon):
            returns += rewards[step]
            lengths += ~resets[step]
            done = resets[step + 1]
            expected += list(zip(returns[done], lengths[done], strict=True))
            returns[done], lengths[done] = 0, 0
        found = episodes.ended(rewards, resets)
        assert len(found[0]) == len(expected)
        if expected:
            wanted_returns, wanted_lengths = zip(*expected, strict=True)
            np.testing.assert_allclose(found[0], wanted_returns, rtol=1e-12, atol=1e-12)
            np.testing.assert_array_equal(found[1], wanted_lengths)
