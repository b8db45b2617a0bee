"""The vector environment of `make_vec`, compared with Gymnasium's SyncVectorEnv."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.wrappers import vector as wrappers
from numpy.typing import NDArray

import tandem
from tandem.environments.registration import TASKS
from tandem.testing.engines import (  # noqa: F401, the fixtures
    FAIL,
    HANG,
    launch_trivial,
    nothing_left_behind,
    watchdog,
)


def _sync(task: str, num_envs: int, mode: AutoresetMode = AutoresetMode.NEXT_STEP, **options: Any) -> VectorEnv:
    return gymnasium.make_vec(
        task, num_envs, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode}, **options
    )


@pytest.fixture
def hoppers() -> Iterator[tandem.SharedMemoryVectorEnv]:
    """Makes three Hopper-v5: float64 observations, infos, and short episodes."""
    envs = tandem.make_vec("Hopper-v5", num_envs=3)
    yield envs
    envs.close()


@pytest.fixture
def poles() -> Iterator[tandem.SharedMemoryVectorEnv]:
    """Makes two CartPole-v1: discrete actions."""
    envs = tandem.make_vec("CartPole-v1", num_envs=2)
    yield envs
    envs.close()


_WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "RecordEpisodeStatistics": wrappers.RecordEpisodeStatistics,
    "NormalizeObservation": wrappers.NormalizeObservation,
    "NormalizeReward": wrappers.NormalizeReward,
    "ClipReward": lambda envs: wrappers.ClipReward(envs, -0.5, 0.5),
    "ClipAction": wrappers.ClipAction,
    "RescaleAction": lambda envs: wrappers.RescaleAction(envs, -2.0, 2.0),
    "RescaleObservation": lambda envs: wrappers.RescaleObservation(
        wrappers.TransformObservation(
            envs,
            lambda obs: np.clip(obs, -9, 9),
            single_observation_space=gymnasium.spaces.Box(-9, 9, (11,), np.float64),
        ),
        -1,
        1,
    ),
    "TransformReward": lambda envs: wrappers.TransformReward(envs, lambda reward: reward * 2),
    "TransformAction": lambda envs: wrappers.TransformAction(envs, lambda action: -action),
    "FlattenObservation": wrappers.FlattenObservation,
    "DtypeObservation": lambda envs: wrappers.DtypeObservation(envs, np.float32),
    "DictInfoToList": wrappers.DictInfoToList,
    "all of CleanRL's": lambda envs: wrappers.NormalizeReward(
        wrappers.TransformObservation(
            wrappers.NormalizeObservation(wrappers.ClipAction(wrappers.RecordEpisodeStatistics(envs))),
            lambda obs: np.clip(obs, -10, 10),
        )
    ),
}


_REFUSED = {
    "NormalizeObservation": (AutoresetMode.SAME_STEP, AutoresetMode.DISABLED),
    "all of CleanRL's": (AutoresetMode.SAME_STEP, AutoresetMode.DISABLED),
    "RescaleObservation": (AutoresetMode.SAME_STEP,),
    "FlattenObservation": (AutoresetMode.SAME_STEP,),
    "DtypeObservation": (AutoresetMode.SAME_STEP,),
}


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)
@pytest.mark.parametrize("wrapper", _WRAPPERS)
def test_gymnasiums_wrapper_gives_the_same_as_on_sync(wrapper: str, mode: AutoresetMode) -> None:
    """Spaces, and results and infos of 120 steps, are equal, or the wrapper refuses the autoreset mode of both."""
    results = []
    for make in (_sync, lambda task, num_envs, mode: tandem.make_vec(task, num_envs, autoreset_mode=mode)):
        envs = make("Hopper-v5", 3, mode)
        if mode in _REFUSED.get(wrapper, ()):
            with pytest.raises(ValueError, match="mode"):
                _WRAPPERS[wrapper](envs)
            envs.close()
            continue
        envs = _WRAPPERS[wrapper](envs)
        envs.action_space.seed(5)
        result: list[Any] = [envs.observation_space, envs.action_space, envs.reset(seed=7)]
        for _ in range(120):
            step = envs.step(envs.action_space.sample())
            result.append(step)
            ended = np.logical_or(step[2], step[3])
            if mode is AutoresetMode.DISABLED and ended.any():
                result.append(envs.reset(options={"reset_mask": ended}))
        results.append(result)
        envs.close()
    if results:
        _assert_same(results[1], results[0])


def test_normalised_observations_are_those_of_rounded_ones() -> None:
    """In every digit: Gymnasium's, rounded to float32 before NormalizeObservation; from workers without rounding."""

    def normalised(envs: Any) -> NDArray[np.float32]:
        envs = wrappers.NormalizeObservation(envs)
        envs.action_space.seed(5)
        found = [envs.reset(seed=7)[0], *(envs.step(envs.action_space.sample())[0] for _ in range(120))]
        envs.close()
        return np.stack(found)

    def rounded(obs: NDArray[np.float64]) -> NDArray[np.float64]:
        return obs.astype(np.float32).astype(np.float64)

    native = normalised(tandem.make_vec("Hopper-v5", 3))
    np.testing.assert_array_equal(native, normalised(wrappers.TransformObservation(_sync("Hopper-v5", 3), rounded)))
    plain = normalised(_sync("Hopper-v5", 3))
    assert (native != plain).any()
    np.testing.assert_array_equal(normalised(tandem.make_vec("Hopper-v5", 3, backend="python")), plain)


def _assert_same(found: Any, expected: Any) -> None:
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            _assert_same(one, other)
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key in expected.keys() - {"t", "_t"}:  # an episode's wall time
            _assert_same(found[key], expected[key])
    elif isinstance(expected, np.ndarray) and expected.dtype == object:
        _assert_same(list(found), list(expected))
    elif isinstance(expected, (np.ndarray, np.number, float)):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    else:
        assert found == expected


def test_spaces_and_metadata_are_those_of_sync(hoppers: tandem.SharedMemoryVectorEnv) -> None:
    """Spaces, num_envs and metadata, which wrappers read, are equal."""
    theirs = _sync("Hopper-v5", 3)
    for name in ("observation_space", "action_space", "single_observation_space", "single_action_space", "num_envs"):
        assert getattr(hoppers, name) == getattr(theirs, name)
    assert hoppers.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert hoppers.unwrapped is hoppers and hoppers.render_mode is None and not hoppers.closed
    assert hoppers.spec is not None and hoppers.spec.id == "tandem/Hopper-v5"
    theirs.close()


def test_gymnasiums_registry_makes_them() -> None:
    """`import tandem` registers the tasks, which accept options."""
    envs = gymnasium.make_vec("tandem/Ant-v5", num_envs=2, ctrl_cost_weight=0.1, autoreset_mode="SameStep")
    assert isinstance(envs.unwrapped, tandem.SharedMemoryVectorEnv)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert envs.spec is not None and envs.spec.kwargs["ctrl_cost_weight"] == 0.1
    envs.reset(seed=0)
    *_, infos = envs.step(np.ones((2, 8), np.float32))
    np.testing.assert_allclose(infos["reward_ctrl"], [-0.8, -0.8])
    envs.close()


def test_observations_are_copies_by_default(hoppers: tandem.SharedMemoryVectorEnv) -> None:
    """With copy=False the observations are the region's own float32 array."""
    actions = np.zeros((3, 3), np.float32)
    first, _ = hoppers.reset(seed=0)
    kept = first.copy()
    second = hoppers.step(actions)[0]
    np.testing.assert_array_equal(first, kept)
    assert first.dtype == second.dtype == np.float64 and first is not second

    views = tandem.make_vec("Hopper-v5", 3, options=tandem.TaskOptions(copy=False))
    assert views.observation_space.dtype == np.float32
    obs, _ = views.reset(seed=0)
    assert obs is views.client.obs and views.step(actions)[0] is obs
    np.testing.assert_array_equal(obs, second.astype(np.float32))
    views.close()

    narrow = tandem.make_vec("Hopper-v5", 3, options=tandem.TaskOptions(dtype=np.float32))
    obs, _ = narrow.reset(seed=0)
    assert obs.dtype == narrow.observation_space.dtype == np.float32 and obs is not narrow.client.obs
    narrow.close()


def test_send_and_recv_are_the_halves_of_step(hoppers: tandem.SharedMemoryVectorEnv) -> None:
    """The results of `send` and `recv` equal those of `step`."""
    hoppers.reset(seed=0)
    hoppers.send(np.zeros((3, 3), np.float32))
    halves = hoppers.recv()
    hoppers.reset(seed=0)
    stepped = hoppers.step(np.zeros((3, 3), np.float32))
    _assert_same(halves, stepped)


@pytest.mark.parametrize("seed", [7, [1, 2, 3], [5, None, 2**40], None])
def test_reset_takes_gymnasiums_seeds(hoppers: tandem.SharedMemoryVectorEnv, seed: Any) -> None:
    """None continues each environment's random stream."""
    theirs = _sync("Hopper-v5", 3)
    _assert_same(hoppers.reset(seed=11), theirs.reset(seed=11))
    _assert_same(hoppers.reset(seed=seed), theirs.reset(seed=seed))
    theirs.close()


_MASK = np.array([True, False, True])


def test_step_takes_values_that_convert_to_float32(hoppers: tandem.SharedMemoryVectorEnv) -> None:
    """Lists, integers, other float widths, strides and byte orders give equal results."""
    results = []
    for actions in (
        np.ones((3, 3), np.float32),
        np.ones((3, 3)),
        [[1, 1, 1]] * 3,
        np.ones((3, 6), np.float32)[:, ::2],
        np.ones((3, 6))[:, ::2],
        np.ones((3, 3), np.float16),
        np.ones((3, 3), np.int8),
        np.ones((3, 3), ">f8"),
        np.ones((3, 3), np.float32, order="F"),
    ):
        hoppers.reset(seed=0)
        results.append(hoppers.step(actions))
    for result in results[1:]:
        _assert_same(result, results[0])


def test_close_ends_the_engine(hoppers: tandem.SharedMemoryVectorEnv) -> None:
    """After `close` no client can attach to the region."""
    hoppers.close()
    assert hoppers.closed
    with pytest.raises(tandem.NotReady):
        tandem.SharedMemoryClient(hoppers.client.name, timeout=0)


def test_has_the_attributes_of_gymnasiums_vector_environments(hoppers: tandem.SharedMemoryVectorEnv) -> None:
    """The attributes' values equal those of SyncVectorEnv."""
    theirs: Any = _sync("Hopper-v5", 3)
    assert hoppers.autoreset_mode is theirs.autoreset_mode is AutoresetMode.NEXT_STEP
    assert len(hoppers) == 3
    assert hoppers.np_random_seed == (-1, -1, -1)
    seeds: tuple[Any, ...] = (42, [7, None, 2**40], None)
    for seed in seeds:
        hoppers.reset(seed=seed)
        theirs.reset(seed=seed)
        assert hoppers.np_random_seed == theirs.np_random_seed
    hoppers.reset(seed=5, options={"reset_mask": np.array([True, False, True])})
    assert hoppers.np_random_seed == (5, 43, 7)
    for name in ("render_mode", "observation_space", "action_space"):
        assert hoppers.get_attr(name) == theirs.get_attr(name)
    assert hoppers.call("render") == ()
    theirs.close()


def test_an_engine_without_a_description_has_unbounded_float32_spaces() -> None:
    """The engine is a trivial one without description, and the client is made by the caller."""
    with launch_trivial(num_envs=2, obs_size=5, act_size=3) as engine:
        envs = tandem.SharedMemoryVectorEnv(tandem.SharedMemoryClient(engine.name))
        assert envs.single_observation_space == gymnasium.spaces.Box(-np.inf, np.inf, (5,), np.float32)
        assert envs.single_action_space == gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float32)
        assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
        envs.reset()
        assert envs.step(np.zeros((2, 3), np.float32))[4] == {}
        envs.close()
        assert engine.poll() is None


def _of_trivial(timeout: float) -> tuple[tandem.EngineProcess, tandem.SharedMemoryVectorEnv]:
    engine = launch_trivial()
    client = tandem.SharedMemoryClient(engine.name, autoreset_mode=tandem.AutoresetMode.NEXT_STEP)
    envs = tandem.SharedMemoryVectorEnv(client, engine=engine)
    envs.reset()
    client._native.set_timeout(timeout)
    return engine, envs


def _actions(first: float) -> NDArray[np.float32]:
    actions = np.zeros((2, 6), np.float32)
    actions[0, 0] = first
    return actions


def test_a_time_out_leaves_the_step_pending() -> None:
    """`close` works while the step is pending, without the stuck engine's answer."""
    _, envs = _of_trivial(timeout=1)
    with pytest.raises(tandem.StepTimeout, match="stepping"):
        envs.step(_actions(HANG))
    with pytest.raises(tandem.StepPending):
        envs.step(_actions(0))
    with pytest.raises(tandem.StepTimeout):
        envs.reset()
    envs.close()


def _interrupt_pending(envs: tandem.SharedMemoryVectorEnv) -> None:
    """Waits until something is sent to the engine, which is stopped, and raises SIGINT."""
    while not envs.client.pending:
        time.sleep(0.001)
    time.sleep(0.1)
    signal.raise_signal(signal.SIGINT)


def test_result_of_an_interrupted_reset_is_not_a_step() -> None:
    """`recv` after an interrupted reset returns no reward, no ended flag and no infos."""
    envs = tandem.make_vec("Reacher-v5", 2, autoreset_mode="Disabled", options=tandem.TaskOptions(max_episode_steps=3))
    envs.reset(seed=0)
    for _ in range(3):
        _, rewards, _, truncations, _ = envs.step(np.ones((2, 2)))
    assert rewards.all() and truncations.all()
    os.kill(envs.client.engine_pid, signal.SIGSTOP)
    threading.Thread(target=_interrupt_pending, args=[envs]).start()
    with pytest.raises(KeyboardInterrupt):
        envs.reset(options={"reset_mask": np.array([True, False])})
    os.kill(envs.client.engine_pid, signal.SIGCONT)
    _, rewards, terminations, truncations, infos = envs.recv()
    assert not rewards.any() and not terminations.any() and not truncations.any() and infos == {}
    with pytest.raises(tandem.InvalidArgument, match=r"\[1\]"):
        envs.step(np.ones((2, 2)))
    envs.close()


def test_a_step_may_follow_a_first_reset_that_was_interrupted_and_received() -> None:
    """The first reset is interrupted, and `recv` receives its result; a step is legal then."""
    envs = tandem.make_vec("Reacher-v5", num_envs=2)
    os.kill(envs.client.engine_pid, signal.SIGSTOP)
    threading.Thread(target=_interrupt_pending, args=[envs]).start()
    with pytest.raises(KeyboardInterrupt):
        envs.reset(seed=0)
    os.kill(envs.client.engine_pid, signal.SIGCONT)
    envs.recv()
    envs.step(np.ones((2, 2)))
    envs.close()


def test_after_an_interrupt_reset_starts_again() -> None:
    """`reset` receives and drops the pending step's result, as when a notebook's cell runs again."""
    envs = tandem.make_vec("HalfCheetah-v5", num_envs=2)
    expected, _ = envs.reset(seed=3)
    killer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    killer.start()
    with pytest.raises(KeyboardInterrupt):
        while True:
            envs.send(np.zeros((2, 6), np.float32))
            envs.recv()
    killer.join()
    obs, _ = envs.reset(seed=3)
    np.testing.assert_array_equal(obs, expected)
    envs.send(np.zeros((2, 6), np.float32))
    obs, _ = envs.reset(seed=3)
    np.testing.assert_array_equal(obs, expected)
    envs.close()


def test_the_registry_has_the_engines_tasks_and_time_limits() -> None:
    """The tasks equal those of --list_tasks; the time limits equal Gymnasium's."""
    listed = subprocess.run(
        [sys.executable, "-m", "tandem.engine.program", "--list_tasks"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert sorted(TASKS) == listed.stdout.split()
    for task, facts in TASKS.items():
        assert gymnasium.spec(task).max_episode_steps == facts.max_episode_steps


def test_the_spec_makes_the_same_environments_again() -> None:
    """The spec contains the options and arguments; an unlimited episode stays unlimited."""
    engine = tandem.EngineOptions(timeout=60)
    options = tandem.TaskOptions(dtype="float32", max_episode_steps=0)
    envs = tandem.make_vec("Hopper-v5", 2, autoreset_mode="SameStep", engine=engine, options=options, healthy_reward=3)
    assert envs.spec is not None and envs.spec.kwargs["engine"] == engine
    again = gymnasium.make_vec(envs.spec)
    assert again.spec is not None and again.spec.kwargs["max_episode_steps"] == -1  # no limit, as before
    assert again.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    _assert_same(again.reset(seed=1), envs.reset(seed=1))
    _assert_same(again.step(np.zeros((2, 3))), envs.step(np.zeros((2, 3))))
    again.close()
    envs.close()


def test_importing_tandem_imports_neither_torch_nor_stable_baselines3() -> None:
    """Only `as_sb3` imports stable_baselines3."""
    program = "import sys, tandem; print(sorted({'torch', 'stable_baselines3', 'mujoco'} & set(sys.modules)))"
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert completed.stdout.strip() == "[]"
