"""Gymnasium's tests of vector environments, for an engine's environments.

Each has the name of its original in Gymnasium's folders tests/vector and tests/wrappers/vector (MIT licence, Farama
Foundation), and checks the same. docs/differences.md lists the tests that do not apply to an engine's environments.
"""

import os

os.environ["SDL_VIDEODRIVER"] = "dummy"  # for pygame

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import vector as wrappers

import tandem


def _sync(task: str, num_envs: int, mode: AutoresetMode = AutoresetMode.NEXT_STEP) -> gymnasium.vector.VectorEnv:
    return gymnasium.make_vec(task, num_envs, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode})


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_vector_env_equal(mode: AutoresetMode) -> None:
    """Spaces, results, infos and types equal SyncVectorEnv's over 100 steps."""
    ours, theirs = tandem.make_vec("CartPole-v1", 4, autoreset_mode=mode), _sync("CartPole-v1", 4, mode)
    assert ours.num_envs == theirs.num_envs
    assert ours.observation_space == theirs.observation_space
    assert ours.single_observation_space == theirs.single_observation_space
    assert ours.action_space == theirs.action_space
    assert ours.single_action_space == theirs.single_action_space
    assert data_equivalence(ours.reset(seed=0), theirs.reset(seed=0))
    for _ in range(100):
        actions = ours.action_space.sample()
        assert actions in theirs.action_space
        assert data_equivalence(ours.step(actions), theirs.step(actions))
    ours.close()
    theirs.close()


def test_random_seeding_basics() -> None:
    """A reset without a seed keeps the reported seeds."""
    envs = tandem.make_vec("CartPole-v1", 4)
    for seed in (42, None):
        envs.reset(seed=seed)
        assert envs.np_random_seed == (42, 43, 44, 45)
    envs.close()


def test_partial_reset() -> None:
    """Environments in the mask start from their seeds; the others keep their state."""
    envs = tandem.make_vec("CartPole-v1", 3, autoreset_mode=AutoresetMode.DISABLED)
    at_reset, _ = envs.reset(seed=[0, 1, 2])
    envs.action_space.seed(123)
    for _ in range(3):
        at_step, *_ = envs.step(envs.action_space.sample())
    masked, _ = envs.reset(seed=[0, 1, 0], options={"reset_mask": np.array([True, True, False])})
    np.testing.assert_array_equal(masked[:2], at_reset[:2])
    np.testing.assert_array_equal(masked[2], at_step[2])
    envs.close()


@pytest.mark.parametrize("mask", [[True], [True] * 4, [[True] * 3], [False] * 3, [1, 1, 0], [1.0, 1.0, 0.0]])
def test_partial_reset_failure(mask: list[Any]) -> None:
    """The error is a ValueError, also where Gymnasium raises a TypeError."""
    envs = tandem.make_vec("CartPole-v1", 3, autoreset_mode=AutoresetMode.DISABLED)
    envs.reset(options={"reset_mask": np.array([True, True, True])})
    with pytest.raises(ValueError, match="reset_mask"):
        envs.reset(options={"reset_mask": np.array(mask)})
    envs.close()


def test_action_count_compatibility() -> None:
    """Too few, too many and a single action are a ValueError; for the last Gymnasium raises a TypeError."""
    envs = tandem.make_vec("CartPole-v1", 4, autoreset_mode=AutoresetMode.DISABLED)
    envs.reset()
    actions = envs.action_space.sample()
    obs, rewards, terminations, truncations, _ = envs.step(actions)
    assert len(obs) == len(rewards) == len(terminations) == len(truncations) == 4
    wrong: Any
    for wrong in (actions[:3], np.concatenate([actions, actions[:1]]), 0):
        with pytest.raises(ValueError, match="actions"):
            envs.step(wrong)
    envs.close()


@pytest.mark.parametrize("use_single_action_space", [True, False])
def test_step_sync_vector_env(use_single_action_space: bool) -> None:
    """Checks shapes and types of all results, for actions in an array and in a list."""
    envs = tandem.make_vec("CartPole-v1", 8)
    envs.reset()
    single = envs.single_action_space
    actions = [single.sample() for _ in range(8)] if use_single_action_space else envs.action_space.sample()
    obs, rewards, terminations, truncations, _ = envs.step(actions)
    envs.close()
    assert isinstance(obs, np.ndarray) and obs.dtype == envs.observation_space.dtype
    assert obs.shape == envs.observation_space.shape == (8, *(envs.single_observation_space.shape or ()))
    assert isinstance(rewards[0], np.floating) and rewards.shape == (8,)
    assert terminations.dtype == truncations.dtype == np.bool_
    assert terminations.shape == truncations.shape == (8,)


def test_render_sync_vector() -> None:
    """`render` returns a tuple of images; `call("render")` returns the same."""
    envs = tandem.make_vec("CartPole-v1", 3, render_mode="rgb_array")
    assert envs.render_mode == "rgb_array"
    envs.reset()
    frames = envs.render()
    assert isinstance(frames, tuple) and len(frames) == 3
    assert all(isinstance(frame, np.ndarray) for frame in frames)
    np.testing.assert_array_equal(envs.call("render"), frames)
    envs.close()


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_autoreset_metadata(mode: AutoresetMode) -> None:
    """The mode may be given as enum member or as value."""
    for given in (mode, mode.value):
        envs = gymnasium.make_vec("tandem/CartPole-v1", 2, autoreset_mode=given)
        assert envs.metadata["autoreset_mode"] is mode
        envs.close()


def test_human_rendering_accepts_the_environments() -> None:
    """The wrapper needs the render mode rgb_array and render_fps."""
    envs = tandem.make_vec("CartPole-v1", 3, render_mode="rgb_array")
    assert wrappers.HumanRendering(envs).render_mode == "human"
    envs.close()
