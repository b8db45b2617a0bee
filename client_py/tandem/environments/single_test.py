"""The single environment of `gymnasium.make`, compared with Gymnasium's own."""

import os
import signal
import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

import tandem
from tandem.environments.registration import TASKS
from tandem.environments.single import SharedMemoryEnv
from tandem.testing.engines import nothing_left_behind, watchdog  # noqa: F401, the fixtures


@pytest.fixture
def hopper() -> Iterator[SharedMemoryEnv]:
    """Makes a Hopper-v5, whose episodes are short."""
    env = SharedMemoryEnv("Hopper-v5")
    yield env
    env.close()


@pytest.mark.parametrize("task", ["CartPole-v1", "Pendulum-v1", "HalfCheetah-v5", "Hopper-v5", "Ant-v5"])
def test_episodes_are_gymnasiums(task: str) -> None:
    """Spaces, results, infos and types are equal over three episodes, and so is the time limit."""
    ours, theirs = gymnasium.make(f"tandem/{task}"), gymnasium.make(task)
    assert ours.observation_space == theirs.observation_space and ours.action_space == theirs.action_space
    assert ours.spec is not None and theirs.spec is not None
    assert ours.spec.max_episode_steps == theirs.spec.max_episode_steps
    theirs.action_space.seed(0)
    ends = 0
    for episode in range(3):
        seed = 5 if episode == 0 else None
        _assert_same(ours.reset(seed=seed), theirs.reset(seed=seed))
        assert ours.unwrapped.np_random_seed == theirs.unwrapped.np_random_seed == 5
        ended = False
        while not ended:
            action = theirs.action_space.sample()
            found, expected = ours.step(action), theirs.step(action)
            _assert_same(found, expected)
            ended = expected[2] or expected[3]
        ends += 1
    assert ends == 3
    ours.close()
    theirs.close()


def _assert_same(found: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            _assert_same(one, other)
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key in expected:
            _assert_same(found[key], expected[key])
    elif isinstance(expected, bool):
        assert found is expected
    else:
        assert np.shape(found) == np.shape(expected)
        assert isinstance(found, np.ndarray) == isinstance(expected, np.ndarray)
        if isinstance(expected, np.ndarray):
            assert found.dtype == expected.dtype
        np.testing.assert_array_equal(np.float32(found), np.float32(expected))


@pytest.mark.parametrize("task", ["CartPole-v1", "Hopper-v5"])
def test_gymnasiums_checker_passes(task: str) -> None:
    """The checker gives no warning that it does not give for Gymnasium's own environment."""
    texts = []
    for name in (f"tandem/{task}", task):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            check_env(gymnasium.make(name).unwrapped, skip_render_check=name == task)  # theirs would open a window
        texts.append({str(each.message) for each in caught})
    assert texts[0] <= texts[1]


def test_time_limit_is_the_wrappers() -> None:
    """`max_episode_steps` sets the limit of Gymnasium's TimeLimit wrapper; -1 means no limit."""
    env = gymnasium.make("tandem/Pendulum-v1", max_episode_steps=3)
    env.reset(seed=0)
    assert [env.step(env.action_space.sample())[3] for _ in range(3)] == [False, False, True]
    env.close()
    env = gymnasium.make("tandem/Pendulum-v1", max_episode_steps=-1)
    env.reset(seed=0)
    assert not any(env.step(env.action_space.sample())[3] for _ in range(201))
    env.close()


def test_options_reach_the_task() -> None:
    """A task option and dtype have effect, and the spec makes an equal environment."""
    env = gymnasium.make("tandem/Ant-v5", ctrl_cost_weight=0.1, options=tandem.TaskOptions(dtype="float32"))
    env.reset(seed=0)
    obs, *_, info = env.step(np.ones(8, np.float32))
    assert obs.dtype == np.float32 and info["reward_ctrl"] == pytest.approx(-0.8)
    assert env.spec is not None
    again = gymnasium.make(env.spec)
    again.reset(seed=0)
    np.testing.assert_array_equal(again.step(np.ones(8, np.float32))[0], obs)
    again.close()
    env.close()


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("num_envs", {"num_envs": 1}),
        ("autoreset_mode", {"autoreset_mode": "SameStep"}),
        ("TaskOptions.max_episode_steps", {"options": tandem.TaskOptions(max_episode_steps=1)}),
        ("TaskOptions.copy", {"options": tandem.TaskOptions(copy=False)}),
    ],
)
def test_fixed_options_of_one_environment_are_refused(name: str, given: dict[str, Any]) -> None:
    """The error has the option's name."""
    with pytest.raises(tandem.InvalidArgument, match=f"^{name}: expected none"):
        SharedMemoryEnv("Hopper-v5", **given)


def test_a_step_does_not_change_earlier_observations(hopper: SharedMemoryEnv) -> None:
    """The observation of a reset keeps its values after a step."""
    first, _ = hopper.reset(seed=0)
    kept = first.copy()
    hopper.step(np.ones(3))
    np.testing.assert_array_equal(first, kept)


def test_first_reset_without_a_seed_draws_one(hopper: SharedMemoryEnv) -> None:
    """The drawn seed starts the same episode in a later reset."""
    obs, _ = hopper.reset()
    seed = hopper.np_random_seed
    other, _ = hopper.reset()
    assert hopper.np_random_seed == seed and not np.array_equal(other, obs)
    again, _ = hopper.reset(seed=seed)
    np.testing.assert_array_equal(again, obs)


def test_steps_outside_an_episode_are_refused(hopper: SharedMemoryEnv) -> None:
    """A step before the first reset, or after a termination, is ResetNeeded."""
    with pytest.raises(ResetNeeded, match="after the start"):
        hopper.step(np.zeros(3))
    hopper.reset(seed=0)
    while not hopper.step(np.ones(3))[2]:
        pass
    with pytest.raises(ResetNeeded, match="after the end of an episode"):
        hopper.step(np.zeros(3))
    hopper.reset()
    hopper.step(np.zeros(3))


@pytest.mark.parametrize("action", [np.zeros(2), np.zeros((1, 3)), 0.0, [[1], [2], [3]]])
def test_actions_of_another_shape_are_refused(hopper: SharedMemoryEnv, action: Any) -> None:
    """The error names the action space; the episode continues."""
    hopper.reset(seed=0)
    with pytest.raises(tandem.InvalidAction, match=r"action: expected one of Box\(.*nothing was sent"):
        hopper.step(action)
    hopper.step(np.zeros(3))


def test_masks_are_refused(hopper: SharedMemoryEnv) -> None:
    """`reset` refuses the option reset_mask."""
    with pytest.raises(tandem.InvalidArgument, match="no 'reset_mask'"):
        hopper.reset(options={"reset_mask": np.ones(1, np.bool_)})


def test_after_close_every_call_is_refused(hopper: SharedMemoryEnv) -> None:
    """Each call raises ClosedEnvironmentError; a second `close` has no effect."""
    hopper.reset(seed=0)
    hopper.close()
    hopper.close()
    for call in (lambda: hopper.step(np.zeros(3)), hopper.reset):
        with pytest.raises(gymnasium.error.ClosedEnvironmentError, match="close"):
            call()


def test_a_dead_engine_is_peer_gone() -> None:
    """A step after SIGKILL of the engine raises PeerGone."""
    env = SharedMemoryEnv("CartPole-v1")
    env.reset(seed=0)
    os.kill(env.client.engine_pid, signal.SIGKILL)
    with pytest.raises(tandem.PeerGone):
        for _ in range(1000):
            env.step(0)
            env.reset()
    env.close()


def test_renders_the_same_as_the_vector() -> None:
    """The image equals the vector's and has the requested size; without a render mode `render` returns None."""
    env = gymnasium.make("tandem/InvertedPendulum-v5", render_mode="rgb_array", width=64, height=48)
    envs = tandem.make_vec("InvertedPendulum-v5", 1, render_mode="rgb_array", width=64, height=48)
    env.reset(seed=0)
    envs.reset(seed=0)
    picture, pictures = env.render(), envs.render()
    assert pictures is not None
    np.testing.assert_array_equal(picture, pictures[0])
    assert env.metadata == {"render_modes": ["rgb_array"], "render_fps": 25}
    env.close()
    envs.close()
    blind = SharedMemoryEnv("CartPole-v1")
    blind.reset(seed=0)
    assert blind.render() is None
    blind.close()


def test_human_mode_opens_gymnasiums_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gymnasium's HumanRendering wrapper shows the window."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    with pytest.warns(UserWarning, match="HumanRendering"):
        env = gymnasium.make("tandem/CartPole-v1", render_mode="human")
    env.reset(seed=0)
    env.step(0)
    env.close()


def test_render_fps_equals_gymnasiums() -> None:
    """Each task has Gymnasium's `render_fps`."""
    for task, facts in TASKS.items():
        env = gymnasium.make(task)
        assert env.metadata["render_fps"] == facts.render_fps, task
        env.close()
