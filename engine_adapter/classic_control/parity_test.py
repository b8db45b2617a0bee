"""The classic control tasks of the server against Gymnasium's own, over the region's bytes."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from engine_adapter.testing.foreign_client import assert_close, serving
from tools.testing import pytest_main

_ENVS = 3
_STEPS = 1000


def _gymnasiums(task: str, limit: int | None, options: dict[str, Any]) -> gymnasium.vector.VectorEnv[Any, Any, Any]:
    return gymnasium.make_vec(
        task,
        num_envs=_ENVS,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP},
        max_episode_steps=limit,
        **options,
    )


@pytest.mark.parametrize("seed", [0, 2**32 - 2])
@pytest.mark.parametrize(
    ("task", "limit", "options"),
    [
        ("CartPole-v1", None, {}),
        ("CartPole-v1", 15, {"sutton_barto_reward": True}),
        ("Pendulum-v1", None, {}),
        ("Pendulum-v1", 70, {"g": 9.81}),
    ],
)
def test_random_steps_are_gymnasiums(task: str, limit: int | None, options: dict[str, Any], seed: int) -> None:
    """Environment i starts where Gymnasium's starts with `seed + i`, steps alike, ends alike and starts again alike."""
    flags = ["--threads=2", f"--num_envs={_ENVS}", f"--seed={seed}"]
    if limit is not None:
        flags.append(f"--max_episode_steps={limit}")
    envs = _gymnasiums(task, limit, options)
    envs.action_space.seed(seed)
    terminations = truncations = 0
    with serving(task, *flags, **options) as client:
        np.testing.assert_array_equal(client.obs, envs.reset(seed=seed)[0])
        for _ in range(_STEPS):
            actions = envs.action_space.sample()
            client.actions[:] = actions.reshape(client.actions.shape)
            result = client.step()
            obs, rewards, terminateds, truncateds, infos = envs.step(actions)
            assert_close(result.obs, obs)
            assert_close(result.rewards, rewards)
            np.testing.assert_array_equal(result.terminateds, terminateds)
            np.testing.assert_array_equal(result.truncateds, truncateds)
            for env in np.flatnonzero(terminateds | truncateds):
                assert_close(client.final_obs[env], infos["final_obs"][env])
            terminations += int(np.count_nonzero(terminateds))
            truncations += int(np.count_nonzero(truncateds))
    envs.close()
    assert (terminations > 0) == (task == "CartPole-v1")
    assert (truncations > 0) == (task == "Pendulum-v1" or limit is not None)


def test_flagged_resets_go_on_with_gymnasiums_draws() -> None:
    """An episode that the client cuts short is followed by the one that Gymnasium's reset() starts."""
    env = gymnasium.make("CartPole-v1")
    with serving("CartPole-v1", "--seed=5") as client:
        np.testing.assert_array_equal(client.obs[0], env.reset(seed=5)[0])
        for episode in range(3):
            for step in range(3 + episode):
                client.actions[:] = step % 2
                assert_close(client.step().obs[0], env.step(step % 2)[0])
            client.resets[:] = 1
            np.testing.assert_array_equal(client.step().obs[0], env.reset()[0])
            assert not client.resets.any(), "the engine clears the flags"
    env.close()


if __name__ == "__main__":
    pytest_main.run(__file__)
