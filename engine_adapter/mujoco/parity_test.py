"""HalfCheetah-v5 of the server against Gymnasium's own, over the region's bytes."""

import gymnasium
import numpy as np

from engine_adapter.testing.foreign_client import assert_close, serving
from tools.testing import pytest_main


def test_an_episode_without_noise_equals_gymnasiums_to_its_truncation() -> None:
    """1,000 random actions: observations, rewards and ends; then the next episode's start."""
    env = gymnasium.make("HalfCheetah-v5", reset_noise_scale=0)
    expected, _ = env.reset(seed=0)
    with serving("HalfCheetah-v5", "--num_envs=2", "--threads=2", reset_noise_scale=0) as client:
        assert (client.obs_size, client.act_size) == (17, 6)
        assert_close(client.obs, [expected] * 2)
        start = client.obs.copy()
        actions = np.random.default_rng(0).uniform(-1, 1, (1000, 6)).astype(np.float32)
        for step, action in enumerate(actions):
            client.actions[:] = action
            result = client.step()
            expected, reward, terminated, truncated, _ = env.step(action)
            # A foreign client gets SAME_STEP: the last observation lies in final_obs.
            assert_close(client.final_obs if truncated else result.obs, [expected] * 2)
            assert_close(result.rewards, [float(reward)] * 2)
            assert result.terminateds.tolist() == [terminated] * 2, step
            assert result.truncateds.tolist() == [truncated] * 2, step
        assert truncated, "Gymnasium's episode ended with the last action"
        np.testing.assert_array_equal(client.obs, start)
    env.close()


def test_seeded_episodes_are_gymnasiums() -> None:
    """`--seed=N`: environment i starts exactly where reset(seed=N + i) starts, steps alike, and so do later resets."""
    envs = [gymnasium.make("HalfCheetah-v5") for _ in range(4)]
    starts = [env.reset(seed=4294967294 + i)[0] for i, env in enumerate(envs)]
    rng = np.random.default_rng(0)
    # The last two seeds have more than 32 bits.
    with serving("HalfCheetah-v5", "--num_envs=4", "--seed=4294967294") as client:
        np.testing.assert_array_equal(client.obs, np.asarray(starts, np.float32))
        for _ in range(3):
            for _ in range(50):
                client.actions[:] = rng.uniform(-1, 1, (4, 6))
                result = client.step()
                for i, env in enumerate(envs):
                    expected, expected_reward, *_ = env.step(client.actions[i].copy())
                    assert_close(result.obs[i], expected)
                    assert_close(result.rewards[i], float(expected_reward))
            client.resets[:] = 1
            obs = client.step().obs
            assert not client.resets.any(), "the engine clears the flags"
            np.testing.assert_array_equal(obs, np.asarray([env.reset()[0] for env in envs], np.float32))
    for env in envs:
        env.close()


if __name__ == "__main__":
    pytest_main.run(__file__)
