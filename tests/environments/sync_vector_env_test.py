"""Environments of many packages in worker processes, compared with SyncVectorEnv; `tools/test --with environments`."""

import functools
import os
import warnings
from collections.abc import Callable
from contextlib import closing
from typing import Any

import ale_py
import gymnasium
import minigrid
import numpy as np
import pytest
import shimmy
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

import tandem

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
for package in (ale_py, minigrid, shimmy):
    gymnasium.register_envs(package)

_ENVS = 3
_STEPS = int(os.environ.get("TANDEM_PARITY_STEPS", "1000"))


def _pong() -> gymnasium.Env[Any, Any]:
    gymnasium.register_envs(ale_py)  # also in a worker
    return FrameStackObservation(AtariPreprocessing(gymnasium.make("ALE/Pong-v5", frameskip=1)), 4)


def _made(name: str, package: Any = None, **options: Any) -> gymnasium.Env[Any, Any]:
    if package is not None:
        gymnasium.register_envs(package)
    return gymnasium.make(name, **options)


_FUNCTIONS: dict[str, Callable[[], gymnasium.Env[Any, Any]]] = {
    "ALE/Pong-v5, 84x84, stack of 4": _pong,
    "ALE/Breakout-v5": functools.partial(_made, "ALE/Breakout-v5", ale_py, max_episode_steps=300),
    **{
        name: functools.partial(_made, name, **options)
        for name, options in {
            "CartPole-v1": {},
            "Acrobot-v1": {"max_episode_steps": 150},
            "MountainCarContinuous-v0": {"max_episode_steps": 150},
            "Pendulum-v1": {},
            "FrozenLake-v1": {},
            "Taxi-v4": {},
            "HalfCheetah-v5": {"max_episode_steps": 200},
            "Humanoid-v5": {},
            "LunarLander-v3": {},
            "BipedalWalker-v3": {"max_episode_steps": 200},
            "CarRacing-v3": {"max_episode_steps": 60},
        }.items()
    },
    "MiniGrid-Empty-5x5-v0": functools.partial(_made, "MiniGrid-Empty-5x5-v0", minigrid),
    "MiniGrid-DoorKey-6x6-v0": functools.partial(_made, "MiniGrid-DoorKey-6x6-v0", minigrid, max_episode_steps=80),
    "dm_control/cartpole-balance-v0": functools.partial(
        _made, "dm_control/cartpole-balance-v0", shimmy, max_episode_steps=150
    ),
    "dm_control/walker-walk-v0": functools.partial(_made, "dm_control/walker-walk-v0", shimmy, max_episode_steps=150),
}
# Steps of these take milliseconds.
_SLOW = (
    "CarRacing-v3",
    "dm_control/walker-walk-v0",
    "Humanoid-v5",
    "ALE/Pong-v5, 84x84, stack of 4",
    "ALE/Breakout-v5",
)
# Box2D's objects cannot be pickled.
_NOT_SAVED = {
    "LunarLander-v3": r"LunarLander\.world, a Box2D",
    "BipedalWalker-v3": r"BipedalWalker\.world, a Box2D",
    "CarRacing-v3": r"CarRacing\.contactListener_keepref",
}


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)
@pytest.mark.parametrize("name", _FUNCTIONS)
def test_equals_sync_vector_env(name: str, mode: AutoresetMode) -> None:
    """Observations, rewards, flags and infos have the same types and digits, from random seeds."""
    function = _FUNCTIONS[name]
    seed = int(np.random.default_rng().integers(2**31))
    print("seed", seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = SyncVectorEnv([function] * _ENVS, autoreset_mode=mode)
        ours = tandem.make_vec([function] * _ENVS, num_workers=2, autoreset_mode=mode)
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    _assert_same(ours.reset(seed=seed), theirs.reset(seed=seed), "reset")
    theirs.action_space.seed(seed)
    for step in range(_STEPS // (5 if name in _SLOW else 1)):
        actions = theirs.action_space.sample()
        expected = theirs.step(actions)
        # In Tandem a final observation has the space's dtype and order of keys.
        for index, value in enumerate(expected[4].get("final_obs", ())):
            if value is not None:
                expected[4]["final_obs"][index] = _in_space(theirs.single_observation_space, value)
        _assert_same(ours.step(actions), expected, f"step {step}")
        ended = expected[2] | expected[3]
        if mode is AutoresetMode.DISABLED and ended.any():
            given = [{"reset_mask": ended.copy()} for _ in range(2)]
            _assert_same(ours.reset(options=given[0]), theirs.reset(options=given[1]), f"reset after step {step}")
    ours.close()
    theirs.close()


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)
@pytest.mark.parametrize("name", _FUNCTIONS)
def test_the_future_of_a_state_is_the_same(name: str, mode: AutoresetMode) -> None:
    """In the same rows, and in other ones of other workers."""
    if name in _NOT_SAVED and mode is not AutoresetMode.NEXT_STEP:
        pytest.skip("cannot be saved")
    function, order, count = _FUNCTIONS[name], [1, 2, 0], 60 if name in _SLOW else 200
    with (
        warnings.catch_warnings(action="ignore"),
        closing(tandem.make_vec([function] * _ENVS, num_workers=2, autoreset_mode=mode)) as envs,
        closing(tandem.make_vec([function] * _ENVS, num_workers=3, autoreset_mode=mode)) as others,
    ):
        envs.reset(seed=3)
        others.reset(seed=4)
        envs.action_space.seed(5)
        actions = [[envs.single_action_space.sample() for _ in range(_ENVS)] for _ in range(count)]
        for step in range(count // 3):
            last = _stepped(envs, actions[step])
        if name in _NOT_SAVED:
            with pytest.raises(tandem.Unsupported, match=_NOT_SAVED[name]):
                envs.save_state()
            return
        states = envs.save_state()
        future = [_stepped(envs, each) for each in actions]
        _assert_same(envs.load_state(states)[0], last[0], "load")
        for step, each in enumerate(actions):
            _assert_same(_stepped(envs, each), future[step], f"step {step}")
        others.load_state([states[i] for i in order])
        for step, each in enumerate(actions):
            found = _stepped(others, [each[i] for i in order])
            for at, expected in zip(found[1:4], future[step][1:4], strict=True):
                _assert_same(at, expected[order], f"step {step} of others")


def _stepped(envs: Any, actions: list[Any]) -> Any:
    """Steps; with autoreset disabled, ended episodes are reset first."""
    if envs.autoreset_mode is AutoresetMode.DISABLED and (ended := np.flatnonzero(envs.client.dones)).size:
        envs.reset(env_ids=ended)
    return envs.step(actions)


def _in_space(space: spaces.Space[Any], value: Any) -> Any:
    """Returns an observation with the dtypes and the order of keys of its space."""
    if isinstance(space, spaces.Dict):
        return {key: _in_space(item, value[key]) for key, item in space.spaces.items()}
    return space.dtype.type(value) if isinstance(space, spaces.Discrete) and space.dtype else value


def _assert_same(found: Any, expected: Any, place: str) -> None:
    assert type(found) is type(expected), (place, type(found), type(expected))
    if isinstance(expected, np.ndarray) and expected.dtype == object:
        assert found.dtype == object and found.shape == expected.shape, place
        for index, (one, other) in enumerate(zip(found.ravel(), expected.ravel(), strict=True)):
            _assert_same(one, other, f"{place}[{index}]")
    elif isinstance(expected, np.ndarray | np.generic):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape), place
        assert found.tobytes() == expected.tobytes(), (place, found, expected)
    elif isinstance(expected, dict):
        assert list(found) == list(expected), place
        for key in expected:
            _assert_same(found[key], expected[key], f"{place}[{key!r}]")
    elif isinstance(expected, tuple | list):
        assert len(found) == len(expected), place
        for index, (one, other) in enumerate(zip(found, expected, strict=True)):
            _assert_same(one, other, f"{place}[{index}]")
    else:
        assert found == expected, (place, found, expected)
