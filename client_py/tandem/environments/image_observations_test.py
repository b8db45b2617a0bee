"""Images in observations: their values, final observations, copies, and each kind of environments that has them."""

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics, VectorizeTransformObservation

import tandem
from tandem.testing.engines import nothing_left_behind, watchdog  # noqa: F401, the fixtures

_ENVS = 3
_SIZE = (90, 60)
_SHAPE = (_SIZE[1], _SIZE[0], 3)


def _made(mode: AutoresetMode = AutoresetMode.NEXT_STEP, **options: Any) -> Any:
    its: dict[str, Any] = {"images": _SIZE, "num_envs": _ENVS, "autoreset_mode": mode} | options
    return tandem.make_vec("CartPole-v1", **its)


def _pushes() -> Iterator[np.ndarray[Any, Any]]:
    """Yields actions that end an episode in about ten steps, of each environment in another one."""
    random = np.random.default_rng(0)
    while True:
        yield np.where(random.random(_ENVS) < 0.9, 1, 0)


def _same(found: Any, expected: Any) -> None:
    assert found.keys() == expected.keys() == {"image", "state"}
    for key in found:
        assert found[key].dtype == expected[key].dtype
        np.testing.assert_array_equal(found[key], expected[key])


def _row(obs: Any, env_id: int) -> Any:
    return {key: value[env_id] for key, value in obs.items()}


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)
def test_observations_are_the_images_and_todays_values(mode: AutoresetMode, copy: bool) -> None:
    """The values are those of environments without images; the images are the engine's, of the same states."""
    options = tandem.TaskOptions(copy=copy)
    with closing(_made(mode, options=options)) as envs, closing(_made(mode, options=options, images=None)) as plain:
        state = plain.single_observation_space
        assert envs.single_observation_space == spaces.Dict(image=spaces.Box(0, 255, _SHAPE, np.uint8), state=state)
        obs, expected = envs.reset(seed=1)[0], plain.reset(seed=1)[0]
        for _, actions in zip(range(40), _pushes(), strict=False):
            assert obs in envs.observation_space
            np.testing.assert_array_equal(obs["state"], expected)
            np.testing.assert_array_equal(obs["image"], envs.client.images)
            assert obs["image"].std() > 1
            assert np.shares_memory(obs["image"], envs.client.images) is not copy
            if mode is AutoresetMode.DISABLED and envs.client.dones.any():
                mask = envs.client.dones.astype(bool)
                reset = [each.reset(options={"reset_mask": mask.copy()})[0] for each in (envs, plain)]
                _same(reset[0], {"image": envs.client.images, "state": reset[1]})
            (obs, *found, _), (expected, *theirs, _) = envs.step(actions), plain.step(actions)
            for one, other in zip(found, theirs, strict=True):
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("own", [False, True], ids=["engine's ends", "own ends"])
@pytest.mark.parametrize("copy", [True, False])
def test_final_observations_have_their_own_image(copy: bool, own: bool) -> None:
    """With SAME_STEP the image of the last state, as an environment has it that is not reset; not the new episode's."""
    functions: dict[str, Any] = {"terminated": lambda step: step.terminations} if own else {}
    options = tandem.TaskOptions(copy=copy, **functions)
    with closing(_made(AutoresetMode.SAME_STEP, options=options)) as envs, closing(_made()) as twin:
        envs.reset(seed=2)
        twin.reset(seed=2)
        seen = 0
        for _, actions in zip(range(30), _pushes(), strict=False):
            obs, _, terminations, _, infos = envs.step(actions)
            last = twin.step(actions)[0]
            if terminations.any():
                np.testing.assert_array_equal(infos["_final_obs"], terminations)
                for env_id in np.flatnonzero(terminations):
                    final = infos["final_obs"][env_id]
                    np.testing.assert_array_equal(final["image"], last["image"][env_id])
                    np.testing.assert_array_equal(final["state"], last["state"][env_id])
                    assert final in envs.single_observation_space
                    assert (final["image"] != obs["image"][env_id]).any()
                    assert not np.shares_memory(final["image"], envs.client.final_images)
                    seen += 1
                assert all(infos["final_obs"][env_id] is None for env_id in np.flatnonzero(~terminations))
                envs.reset(seed=2 + seen)
                twin.reset(seed=2 + seen)
        assert seen >= 3


def test_some_environments() -> None:
    """Steps and resets of some have their rows of images, in their order; the others keep theirs."""
    with closing(_made()) as envs:
        obs, _ = envs.reset(seed=3)
        before = {key: value.copy() for key, value in obs.items()}
        for _ in range(5):
            obs = envs.step([1, 0], env_ids=[2, 0])[0]
        assert obs["image"].shape == (2, *_SHAPE) and obs["state"].shape == (2, 4)
        np.testing.assert_array_equal(obs["image"], envs.client.images[[2, 0]])
        assert (obs["image"][0] != before["image"][2]).any()
        np.testing.assert_array_equal(envs.client.images[1], before["image"][1])
        obs, _ = envs.reset(seed=[5, 3], env_ids=[2, 0])
        np.testing.assert_array_equal(obs["image"][1], before["image"][0])
        np.testing.assert_array_equal(obs["state"][1], before["state"][0])


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)
def test_a_restarted_engine(mode: AutoresetMode) -> None:
    """The last observations before the death, images included, are truncated; then images are the new engine's."""
    with closing(_made(mode, engine=tandem.EngineOptions(restart=True))) as envs:
        envs.reset(seed=4)
        last = envs.step(np.ones(_ENVS, int))[0]
        os.kill(envs.client.engine_pid, signal.SIGKILL)
        obs, _, _, truncations, infos = envs.step(np.ones(_ENVS, int))
        assert truncations.all() and infos["engine_restarted"].all()
        if mode is AutoresetMode.SAME_STEP:
            for env_id in range(_ENVS):
                _same(infos["final_obs"][env_id], _row(last, env_id))
            np.testing.assert_array_equal(obs["image"], envs.client.images)
        else:
            _same(obs, last)
        if mode is AutoresetMode.DISABLED:
            envs.reset()
        obs = envs.step(np.ones(_ENVS, int))[0]
        np.testing.assert_array_equal(obs["image"], envs.client.images)
        assert (obs["image"] != last["image"]).any()


def test_own_observations_are_the_state() -> None:
    """The function's array and its space take the place of the engine's values."""
    options = tandem.TaskOptions(observation=lambda step: step.obs[:, :2] > 0)
    with closing(_made(options=options)) as envs:
        assert envs.single_observation_space["state"] == spaces.Box(0, 1, (2,), np.bool_)  # type: ignore[arg-type]
        obs, _ = envs.reset(seed=0)
        assert obs in envs.observation_space and obs["image"].std() > 1
        assert envs.step(np.ones(_ENVS, int))[0] in envs.observation_space


def test_todays_form_is_an_option() -> None:
    """`in_observation=False` leaves the images to `client.images`; so do no keys for a client."""
    with closing(_made(images=tandem.ImageOptions(_SIZE, in_observation=False))) as envs:
        assert isinstance(envs.single_observation_space, spaces.Box)
        assert envs.reset(seed=0)[0].shape == (_ENVS, 4)
        assert envs.client.images.shape == (_ENVS, *_SHAPE)
    with tandem.launch_engine("CartPole-v1", images=_SIZE) as engine:
        with closing(tandem.SharedMemoryVectorEnv(tandem.SharedMemoryClient(engine.name), image_keys=())) as envs:
            assert envs.reset(seed=0)[0].shape == (1, 4)
        with closing(tandem.SharedMemoryVectorEnv(tandem.SharedMemoryClient(engine.name))) as envs:
            assert envs.reset(seed=0)[0].keys() == {"image", "state"}


@pytest.mark.parametrize("keys", [("a",) * 2, ("state",), tuple("abcd")])
def test_invalid_keys_are_refused(keys: tuple[str, ...]) -> None:
    """Equal ones, the key of the other values, or another number than that of the cameras."""
    with tandem.launch_engine("CartPole-v1", images=_SIZE) as engine, tandem.SharedMemoryClient(engine.name) as client:
        with pytest.raises(tandem.InvalidArgument, match="image_keys: expected different keys, .* 90 pixels"):
            tandem.SharedMemoryVectorEnv(client, image_keys=keys)


def test_one_environment() -> None:
    """`gymnasium.make` has the Dict of one environment, and passes Gymnasium's checks."""
    env = gymnasium.make("tandem/CartPole-v1", images=_SIZE)
    with closing(env):
        assert env.observation_space["image"] == spaces.Box(0, 255, _SHAPE, np.uint8)  # type: ignore[index]
        obs, _ = env.reset(seed=0)
        assert obs in env.observation_space
        for _ in range(5):
            following = env.step(1)[0]
        assert (following["image"] != obs["image"]).any()
        check_env(env.unwrapped, skip_render_check=True)


def test_wrappers_of_gymnasium_get_the_dict() -> None:
    """Those of vector environments, and of their observations."""

    class _Small(gymnasium.wrappers.TransformObservation):
        def __init__(self, env: Any) -> None:
            small = spaces.Box(0, 255, (8, 8, 3), np.uint8)
            super().__init__(env, lambda obs: obs["image"][:8, :8], small)

    envs = VectorizeTransformObservation(RecordEpisodeStatistics(_made()), _Small)
    with closing(envs):
        obs, _ = envs.reset(seed=0)
        assert obs.shape == (_ENVS, 8, 8, 3) and obs.dtype == np.uint8
        assert envs.step(np.ones(_ENVS, int))[0].shape == (_ENVS, 8, 8, 3)
