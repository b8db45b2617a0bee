"""`serve`: an engine in a thread of this process, with a client beside it."""

import contextlib
import re
import threading
import time
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from gymnasium import spaces
from numpy.typing import NDArray

import tandem
from tandem.serving.arrays import EngineArrays
from tandem.testing.engines import (  # noqa: F401, the fixtures
    nothing_left_behind,
    unique_name,
    watchdog,
)
from tandem.testing.python_engines import EXIT, FAIL, RETURN, Counter, serving


def _actions(first: float = 0, num_envs: int = 3) -> NDArray[np.float32]:
    actions = np.zeros((num_envs, 3), np.float32)
    actions[0, 0] = first
    return actions


def _vector_env(name: str) -> tandem.SharedMemoryVectorEnv:
    return tandem.SharedMemoryVectorEnv(tandem.SharedMemoryClient(name))


def test_a_client_steps_the_engine() -> None:
    """All environments are `slice(None)`; the results are those of the engine."""
    engine = Counter()
    with serving(engine, seed=5) as name, tandem.SharedMemoryClient(name) as client:
        assert (client.task, client.num_envs, client.obs_size, client.act_size) == ("Counter", 3, 2, 3)
        assert engine.resets == [([0, 1, 2], [5, 6, 7])]
        actions = np.arange(9, dtype=np.float32).reshape(3, 3)
        for step in range(1, 4):
            obs, rewards, dones = client.step(actions)
            assert obs.tolist() == [[step, 0], [step, 3], [step, 6]]
            assert rewards.tolist() == [3, 12, 21]
            assert not dones.any()
        assert engine.stepped == [slice(None)] * 3
        client.reset([2, 0], seed=[9, None])
        assert engine.resets[-1] == ([0, 2], [None, 9])


def test_vector_environments_have_the_engines_spaces_and_infos() -> None:
    """Bounds and infos come from the description."""

    class Informed(Counter):
        observation_space = spaces.Box(np.array([0, -1], np.float32), np.array([9, 1], np.float32))
        action_space = spaces.Box(-1, 1, (3,))
        info_sizes: ClassVar = {"energy": None, "forces": 2}
        max_episode_steps = 7

        def reset(self, envs: NDArray[np.int64], seeds: Sequence[int | None], arrays: EngineArrays) -> None:
            super().reset(envs, seeds, arrays)
            arrays.infos["energy"][envs] = -1
            arrays.infos["forces"][envs] = 0

        def step(self, envs: Any, arrays: EngineArrays) -> None:
            super().step(envs, arrays)
            arrays.infos["energy"][envs] = self.count[envs]
            arrays.infos["forces"][envs] = [[1, 2]]

    with serving(Informed()) as name, contextlib.closing(_vector_env(name)) as envs:
        assert envs.single_observation_space == Informed.observation_space
        assert envs.single_action_space == Informed.action_space
        _, infos = envs.reset(seed=1)
        assert infos["energy"].tolist() == [-1, -1, -1]
        *_, infos = envs.step(envs.action_space.sample())
        assert infos["energy"].tolist() == [1, 1, 1]
        assert infos["forces"].tolist() == [[1, 2]] * 3


@pytest.mark.parametrize("mode", list(tandem.AutoresetMode))
def test_autoreset_is_the_hosts_work(mode: tandem.AutoresetMode) -> None:
    """With each mode the engine gets steps and resets as C++ engines do."""
    engine = Counter(truncate_after=2)
    with serving(engine) as name, tandem.SharedMemoryClient(name, autoreset_mode=mode) as client:
        for _ in range(2):
            client.step(_actions())
        assert client.truncateds.tolist() == client.dones.tolist() == [1, 1, 1]
        assert not client.terminateds.any()
        if mode is tandem.AutoresetMode.SAME_STEP:
            assert client.final_obs[:, 0].tolist() == [2, 2, 2]
        client.step(_actions())
        expected = {"SameStep": 1, "NextStep": 0, "Disabled": 3}[mode.value]
        assert client.obs[:, 0].tolist() == [expected] * 3


def test_some_environments_are_an_array_of_indices() -> None:
    """One environment is reset in the same exchange; its row is not the step's."""
    engine = Counter()
    with serving(engine) as name, tandem.SharedMemoryClient(name) as client:
        client.step(_actions())
        client.resets[1] = 1
        obs, _, _ = client.step(_actions())
        assert engine.resets[-1] == ([1], [None])
        assert engine.stepped[-1] == [0, 2]
        assert obs[:, 0].tolist() == [2, 0, 2]


def test_arrays_are_the_regions_memory() -> None:
    """Made once; flags are bool; actions are read-only; they outlive the region."""
    seen: list[EngineArrays] = []

    class Watching(Counter):
        def step(self, envs: Any, arrays: EngineArrays) -> None:
            seen.append(arrays)
            super().step(envs, arrays)

    with serving(Watching()) as name:
        with tandem.SharedMemoryClient(name) as client:
            for _ in range(2):
                client.step(_actions(7))
            assert seen[0] is seen[1]
            assert seen[0].obs[0].tolist() == [2, 7]
        while seen[0].obs[0].tolist() != [0, 0]:  # the engine has not yet seen that the client left
            time.sleep(0.001)
    arrays = seen[0]
    assert (arrays.obs.dtype, arrays.obs.shape) == (np.float32, (3, 2))
    assert [array.dtype.name for array in arrays[2:5]] == ["float32", "bool", "bool"]
    assert arrays.infos == {}
    assert not arrays.actions.flags.writeable
    assert arrays.obs[0].tolist() == [0, 0]  # reset when the client left


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (FAIL, "ValueError: no step for you"),
        (RETURN, "step of Counter: expected None, found 'results'; write results into"),
    ],
)
def test_a_failed_step_fails_the_exchange_alone(action: float, text: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The client gets the exception's text, and the next step works. Equal tracebacks in a row are logged once."""
    with serving(Counter()) as name, tandem.SharedMemoryClient(name) as client:
        for _ in range(2):
            with pytest.raises(tandem.EngineFailed, match=re.escape(text)):
                client.step(_actions(action))
        obs, _, _ = client.step(_actions())
        assert obs[:, 0].tolist() == [1, 1, 1]
        with pytest.raises(tandem.EngineFailed):
            client.step(_actions(action))
    log = capfd.readouterr().err
    assert log.count("step failed: ") == 2
    if action == FAIL:
        assert log.count("Traceback") == log.count('raise ValueError("no step for you")') == 2


def test_a_failed_reset_fails_the_exchange_alone() -> None:
    """Later calls work."""

    class Stubborn(Counter):
        fails = False

        def reset(self, envs: NDArray[np.int64], seeds: Sequence[int | None], arrays: EngineArrays) -> None:
            if self.fails:
                raise RuntimeError("stuck")
            super().reset(envs, seeds, arrays)

    engine = Stubborn()
    with serving(engine) as name, tandem.SharedMemoryClient(name) as client:
        engine.fails = True
        with pytest.raises(tandem.EngineFailed, match="RuntimeError: stuck"):
            client.reset()
        engine.fails = False
        client.reset()


def test_the_first_reset_raises_from_serve() -> None:
    """There is no region then."""

    class Broken(Counter):
        def reset(self, envs: NDArray[np.int64], seeds: Sequence[int | None], arrays: EngineArrays) -> None:
            raise ZeroDivisionError("at the start")

    with pytest.raises(ZeroDivisionError, match="at the start"):
        tandem.serve(Broken(), name=unique_name())


def test_an_exit_in_a_step_ends_serve() -> None:
    """The client gets an error of the step, and then PeerGone."""
    with pytest.raises(SystemExit), serving(Counter()) as name, tandem.SharedMemoryClient(name) as client:
        with pytest.raises(tandem.EngineFailed, match="SystemExit"):
            client.step(_actions(EXIT))
        with pytest.raises(tandem.PeerGone):
            while True:
                client.step(_actions())


def test_steps_without_an_exchange_use_copies() -> None:
    """A paused engine makes single steps; the next exchange reports their rewards."""
    engine = Counter()
    with serving(engine) as name, tandem.SharedMemoryClient(name) as client:
        client.step(np.ones((3, 3), np.float32))
        before = client.obs.copy()
        client.scene.pause()
        assert client.scene.single_step(2) == 2
        np.testing.assert_array_equal(client.obs, before)
        client.scene.resume()
        obs, rewards, _ = client.step(np.ones((3, 3), np.float32))
        assert obs[:, 0].tolist() == [4, 4, 4]
        assert rewards.tolist() == [9, 9, 9]


def test_a_used_name_is_refused() -> None:
    """The first engine still serves."""
    with serving(Counter()) as name, tandem.SharedMemoryClient(name) as client:
        with pytest.raises(tandem.AlreadyAttached):
            tandem.serve(Counter(), name=name)
        client.step(_actions())


def test_stop_ends_the_call_while_a_client_steps() -> None:
    """Also if the client never pauses."""
    stop = threading.Event()
    with serving(Counter(), name=(name := unique_name())), tandem.SharedMemoryClient(name) as client:
        client.step(_actions())
    name = unique_name()
    thread = threading.Thread(target=tandem.serve, args=[Counter()], kwargs={"name": name, "stop": stop})
    thread.start()
    with tandem.SharedMemoryClient(name) as client, pytest.raises(tandem.PeerGone):
        stop.set()
        while True:
            client.step(_actions())
    thread.join()


def _with(**attributes: Any) -> Counter:
    engine = Counter()
    for name, value in attributes.items():
        setattr(engine, name, value)
    return engine


class _NoStep(tandem.Engine):
    num_envs, observation_space, action_space = 1, spaces.Box(0, 1, (1,)), spaces.Box(0, 1, (1,))

    def reset(self, envs: NDArray[np.int64], seeds: Sequence[int | None], arrays: EngineArrays) -> None:
        pass


class _NoSpace(tandem.Engine):
    num_envs = 1

    def reset(self, envs: NDArray[np.int64], seeds: Sequence[int | None], arrays: EngineArrays) -> None:
        pass

    def step(self, envs: Any, arrays: EngineArrays) -> None:
        pass


@pytest.mark.parametrize(
    ("engine", "text"),
    [
        (Counter, "expected a tandem.Engine, found <class .*; pass an object, such as Counter\\(num_envs\\)"),
        (3, "engine: expected a tandem.Engine, found 3"),
        (_NoStep(), "step: expected a method of _NoStep, found none; def step\\(self, envs, arrays\\)"),
        (_NoSpace(), "observation_space: expected an attribute of _NoSpace, found none"),
        (_with(num_envs=0), "num_envs: expected an integer in 1"),
        (_with(action_space="Box"), "action_space: expected a gymnasium.Space, found 'Box'"),
        (_with(observation_space=spaces.Graph(spaces.Discrete(2), None)), "observation_space: expected a space with"),
        (_with(observation_space=spaces.Box(0, 1, (0,))), "observation_space: expected a space with numbers"),
        (_with(step_secs=-1), "step_secs: expected finite seconds"),
        (_with(action_names=["a"]), "action_names: expected 3 names, or none, found 1"),
        (_with(observation_names="ab"), "observation_names: expected a list of names, found 'ab'"),
        (_with(info_sizes={"x": 0}), "info_sizes\\['x'\\]: expected an integer in 1"),
        (_with(task="x" * 64), "task"),
        (_with(max_episode_steps=-1), "max_episode_steps: expected an integer"),
    ],
)
def test_invalid_engines_are_refused(engine: Any, text: str) -> None:
    """The message names the attribute or method."""
    with pytest.raises((tandem.InvalidArgument, tandem.Unsupported), match=text):
        tandem.serve(engine, name=unique_name())


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"name": "a/b"}, "name"),
        ({"seed": -1}, "seed: expected an integer"),
        ({"wait": "long"}, "wait: expected one of"),
        ({"services": "scene"}, "services: expected a list of names, or 'all'"),
        ({"services": ["sceen"]}, "sceen"),
        ({"group_access": 1}, "group_access: expected a bool"),
        ({"stop": 1}, "stop: expected a threading.Event"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], text: str) -> None:
    """The message names the argument."""
    with pytest.raises(tandem.InvalidArgument, match=text):
        tandem.serve(Counter(), **{"name": unique_name(), **options})
