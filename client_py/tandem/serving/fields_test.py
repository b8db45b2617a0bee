"""Engines in Python whose observations and actions are fields."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from numpy.typing import NDArray

import tandem
from tandem.environments.own_rewards import OwnRewardsVectorEnv
from tandem.environments.restart import RestartingVectorEnv
from tandem.environments.transition import OwnFunctions
from tandem.serving.arrays import EngineArrays
from tandem.spaces.space_json import space_from_json
from tandem.testing.engines import (  # noqa: F401, the fixtures
    nothing_left_behind,
    watchdog,
)
from tandem.testing.python_engines import serving


class Camera(tandem.Engine):
    """Shows the action in an image."""

    observation_space = spaces.Dict(
        image=spaces.Box(0, 255, (2, 2, 3), np.uint8), arm=spaces.Tuple([spaces.Discrete(5), spaces.Box(-1, 1, (2, 1))])
    )
    action_space = spaces.Discrete(200, start=-3)
    num_envs = 3

    def reset(self, envs: NDArray[np.int64], seeds: Sequence[int | None], arrays: EngineArrays) -> None:
        """Shows 1, and no arm."""
        arrays.obs["image"][envs] = 1
        arrays.obs["arm"][0][envs] = 0
        arrays.obs["arm"][1][envs] = 0

    def step(self, envs: Any, arrays: EngineArrays) -> None:
        """Ends the episode if the action is 100."""
        action = arrays.actions[envs]
        arrays.obs["image"][envs] = action[:, None, None, None]
        arrays.obs["arm"][0][envs] = 4
        arrays.obs["arm"][1][envs, 1] = 0.5
        arrays.rewards[envs] = action
        arrays.terminateds[envs] = action == 100
        arrays.truncateds[envs] = False


def test_fields_move_between_client_and_engine() -> None:
    """With SAME_STEP the host keeps the last observation of every field."""
    with serving(Camera()) as name, tandem.SharedMemoryClient(name) as client:
        fields = client.fields
        assert (client.obs_size, client.act_size) == (0, 0)
        assert fields["obs", "/image"].dtype == np.uint8 and fields["action", ""].dtype == np.int64
        assert (fields["obs", "/image"] == 1).all()
        fields["action", ""][:] = [3, 100, 7]
        _, rewards, dones = client.step(client.actions)
        assert rewards.tolist() == [3, 100, 7] and dones.tolist() == [0, 1, 0]
        assert fields["obs", "/image"][:, 0, 0, 0].tolist() == [3, 1, 7]
        assert fields["final_obs", "/image"][1, 0, 0, 0] == 100
        assert fields["obs", "/arm/0"].tolist() == [4, 0, 4]
        assert fields["obs", "/arm/1"][:, :, 0].tolist() == [[0, 0.5], [0, 0], [0, 0.5]]


def test_the_description_has_the_spaces() -> None:
    """A client can make Gymnasium's spaces from it."""
    with serving(Camera()) as name, tandem.SharedMemoryClient(name) as client:
        said = json.loads(client.description)
    assert space_from_json(said["observation_space"]) == Camera.observation_space
    assert space_from_json(said["action_space"]) == Camera.action_space


def test_rows_and_fields_can_be_mixed() -> None:
    """Float32 observations are rows, and actions are fields."""

    class Mixed(tandem.Engine):
        num_envs, observation_space, action_space = 2, spaces.Box(-9, 9, (1,)), spaces.MultiDiscrete([3, 4])

        def reset(self, envs: NDArray[np.int64], seeds: Sequence[int | None], arrays: EngineArrays) -> None:
            arrays.obs[envs] = 0

        def step(self, envs: Any, arrays: EngineArrays) -> None:
            arrays.obs[envs, 0] = arrays.actions[envs].sum(axis=1)

    with serving(Mixed()) as name, tandem.SharedMemoryClient(name) as client:
        assert (client.obs_size, client.act_size) == (1, 0)
        client.fields["action", ""][:] = [[1, 2], [0, 3]]
        assert client.step(client.actions)[0].tolist() == [[3], [3]]
        envs = tandem.SharedMemoryVectorEnv(client)
        assert envs.single_observation_space == Mixed.observation_space
        assert envs.reset(seed=0)[0].tolist() == [[0], [0]]
        assert envs.step(np.array([[2, 2], [0, 1]]))[0].tolist() == [[4], [1]]
        envs.close()


@pytest.mark.parametrize("copy", [True, False])
def test_a_vector_environment_has_the_engines_spaces(copy: bool) -> None:
    """Observations, actions, last observations, and steps of some environments."""
    with serving(Camera()) as name:
        envs = tandem.SharedMemoryVectorEnv(tandem.SharedMemoryClient(name), copy=copy)
        assert envs.single_observation_space == Camera.observation_space
        assert envs.single_action_space == Camera.action_space
        first, infos = envs.reset(seed=0)
        assert first in envs.observation_space and infos == {}
        obs, rewards, terminations, truncations, infos = envs.step(np.array([3, 100, 7]))
        assert obs["image"][:, 0, 0, 0].tolist() == [3, 1, 7] and obs["arm"][0].tolist() == [4, 0, 4]
        assert (first["image"] == 1).all() == copy
        assert rewards.tolist() == [3, 100, 7] and rewards.dtype == np.float64
        assert terminations.tolist() == [False, True, False] and not truncations.any()
        assert infos["_final_obs"].tolist() == [False, True, False]
        last = infos["final_obs"][1]
        assert last in Camera.observation_space and last["image"][0, 0, 0] == 100 and last["arm"][0] == 4
        obs, rewards, *_ = envs.step([9, 8], env_ids=[2, 0])
        assert obs["image"][:, 0, 0, 0].tolist() == [9, 8] and rewards.tolist() == [9, 8]
        assert envs.step(envs.action_space.sample())[0] in envs.observation_space
        with pytest.raises(tandem.InvalidAction):
            envs.step(np.array([3.5, 1, 0]))
        envs.close()


def test_vector_environments_of_fields_refuse_what_they_have_not() -> None:
    """A dtype of the observations, a restart, and own rewards."""

    def unused(*_: Any) -> Any:
        raise AssertionError

    with serving(Camera()) as name, tandem.SharedMemoryClient(name) as client:
        with pytest.raises(tandem.InvalidArgument, match="dtype: expected None .* fields"):
            tandem.SharedMemoryVectorEnv(client, dtype=np.float32)
        engine: Any = None
        with pytest.raises(tandem.InvalidArgument, match="EngineOptions.restart: expected False .* fields"):
            RestartingVectorEnv(client, engine=engine, relaunch=unused)
        with pytest.raises(tandem.Unsupported, match="reward, terminated, observation: .* float32 rows"):
            OwnRewardsVectorEnv(client, functions=OwnFunctions(reward=unused), mode=tandem.AutoresetMode.NEXT_STEP)


def test_actions_are_read_only() -> None:
    """Also in a tree."""
    seen: list[Any] = []

    class Watching(Camera):
        action_space = spaces.Dict(a=spaces.Discrete(2))  # type: ignore[assignment]

        def reset(self, envs: NDArray[np.int64], seeds: Sequence[int | None], arrays: EngineArrays) -> None:
            super().reset(envs, seeds, arrays)
            seen.append(arrays.actions)

    with serving(Watching()) as name, tandem.SharedMemoryClient(name):
        pass
    with pytest.raises(ValueError, match="read-only"):
        seen[0]["a"][0] = 1
