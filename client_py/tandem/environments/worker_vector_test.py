"""Environments in Python, in worker processes: results, attributes, options and arguments of `make_vec`."""

import functools
import importlib
import os
import sys
import threading
import types
import warnings
from contextlib import closing
from pathlib import Path
from typing import Any

import cloudpickle
import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import tandem
from tandem.testing.engines import watchdog  # noqa: F401, the fixture
from tandem.testing.sample_envs import RandomEnv, ScriptedEnv
from tandem.testing.sample_spaces import FIXED, PICKLED, assert_same
from tandem.testing.sync_parity import ENVS, NUM_ENVS, assert_parity


def _made(env_fn: Any, **options: Any) -> tandem.vector.WorkerVectorEnv:
    envs = tandem.make_vec([env_fn] * NUM_ENVS, num_workers=2, **options)
    assert isinstance(envs, tandem.vector.WorkerVectorEnv)
    return envs


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("name", ENVS)
def test_results_equal_sync_vector_envs(name: str, mode: AutoresetMode) -> None:
    """Observations, rewards, flags and infos have the same types and digits."""
    sync = SyncVectorEnv([ENVS[name]] * NUM_ENVS, autoreset_mode=mode)
    with closing(_made(ENVS[name], autoreset_mode=mode)) as envs:
        assert envs.observation_space == sync.observation_space
        assert envs.action_space == sync.action_space
        assert_parity(sync, envs, steps=60, seed=5)


@pytest.mark.parametrize("name", ["Graph", "Tuple with a Sequence", "custom"])
def test_pickled_spaces(name: str) -> None:
    """Values without a type of their own are equal, too; make_vec warns once of their cost."""
    env_fn = functools.partial(RandomEnv, PICKLED[name], FIXED["Dict"])
    with pytest.warns(UserWarning, match="observation_space.*pickled in each step"):
        envs = _made(env_fn, autoreset_mode="SameStep")
    assert_parity(SyncVectorEnv([env_fn] * NUM_ENVS, autoreset_mode=AutoresetMode.SAME_STEP), envs, steps=20, seed=1)
    envs.close()


def test_pickle_that_is_too_long() -> None:
    """The text of the failure names the option."""
    env_fn = functools.partial(RandomEnv, spaces.Sequence(spaces.Box(0, 1, (50,))), FIXED["Discrete"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        envs = _made(env_fn, engine=tandem.WorkerOptions(object_bytes=64))
    with pytest.raises(tandem.EnvFailed, match=r"expected at most 64 bytes when pickled.*object_bytes"):
        envs.reset(seed=1)
    envs.close()


def test_attributes_and_methods() -> None:
    """call, get_attr, set_attr and render reach the environments and their wrappers, in their order."""
    envs = tandem.make_vec("CartPole-v1", 3, backend="python", num_workers=2, render_mode="rgb_array")
    assert envs.render_mode == "rgb_array"
    assert envs.spec is not None and envs.spec.id == "CartPole-v1"
    assert envs.metadata["render_fps"] == 50
    envs.reset(seed=[7, 8, 9])
    assert envs.np_random_seed == (7, 8, 9)
    images: Any = envs.render()
    assert [image.shape for image in images] == [(400, 600, 3)] * 3
    envs.set_attr("theta_threshold_radians", [1.0, 2.0, 3.0])
    assert envs.get_attr("theta_threshold_radians") == (1.0, 2.0, 3.0)
    envs.set_attr("length", 0.7)
    assert envs.call("length") == (0.7,) * 3
    assert [rng.bit_generator.state["bit_generator"] for rng in envs.get_attr("np_random")] == ["PCG64"] * 3
    with pytest.raises(tandem.InvalidArgument, match="values: expected 3 values"):
        envs.set_attr("length", [1, 2])
    with pytest.raises(tandem.EnvFailed, match="has no attribute 'nothing'"):
        envs.get_attr("nothing")
    with pytest.raises(tandem.EnvFailed, match="cannot pickle|can't pickle|Can't pickle"):
        envs.set_attr("lock", threading.Lock)
        envs.call("lock")
    envs.close()
    with pytest.raises(tandem.EnvironmentClosed):
        envs.get_attr("length")


def test_options_of_a_reset() -> None:
    """Each environment gets them, without the mask; the next reset has its own."""
    with closing(_made(ScriptedEnv)) as envs:
        envs.reset(options={"level": np.arange(3)})
        assert_same(envs.get_attr("options"), ({"level": np.arange(3)},) * NUM_ENVS)
        options: dict[str, Any] = {"reset_mask": np.arange(NUM_ENVS) == 1, "level": 2}
        envs.reset(options=options)
        assert options == {"level": 2}
        assert envs.get_attr("options")[1] == {"level": 2}
        assert_same(envs.get_attr("options")[0], {"level": np.arange(3)})
        envs.reset()
        assert envs.get_attr("options") == (None,) * NUM_ENVS


def test_options_of_each_environment() -> None:
    """Each environment gets its own; observations, infos and seeds are those of one reset."""
    infos = functools.partial(ScriptedEnv, infos=lambda calls: {"calls": calls})
    with closing(_made(infos)) as envs:
        envs.reset(seed=0)
        envs.step(np.zeros(NUM_ENVS, int))
        options = [{"level": 0}, None, *({"level": index} for index in range(2, NUM_ENVS))]
        obs, parts = envs.reset_each(options, seed=9)
        assert obs[:, 0].tolist() == [0] * NUM_ENVS
        assert envs.get_attr("options") == tuple(options)
        assert [calls[-1] for calls in envs.get_attr("calls")] == [("reset", 9 + index) for index in range(NUM_ENVS)]
        assert sorted(index for ids, _ in parts for index in ids) == list(range(NUM_ENVS))
        assert all(each["calls"][ids].tolist() == [3] * len(ids) for ids, each in parts)
        envs.reset()
        assert envs.get_attr("options") == (None,) * NUM_ENVS
        with pytest.raises(tandem.InvalidArgument, match=f"options: expected {NUM_ENVS}"):
            envs.reset_each(options[1:])


def test_observations_without_copies() -> None:
    """With copy=False they are the region's memory; with copies each step has arrays of its own."""
    with closing(_made(ENVS["image"], options=tandem.TaskOptions(copy=False))) as envs:
        first, _ = envs.reset(seed=1)
        second = envs.step(envs.action_space.sample())[0]
        assert np.shares_memory(first, second) and second.flags.c_contiguous and second.flags.writeable
    with closing(_made(ENVS["image"])) as envs:
        first, _ = envs.reset(seed=1)
        assert not np.shares_memory(first, envs.step(envs.action_space.sample())[0])


def test_send_and_recv() -> None:
    """The two halves of a step; a reset drops a step that was not received."""
    with closing(_made(ENVS["CartPole"])) as envs:
        envs.reset(seed=1)
        envs.send(np.zeros(NUM_ENVS, int))
        with pytest.raises(tandem.StepPending):
            envs.send(np.ones(NUM_ENVS, int))
        assert envs.recv()[1].tolist() == [1.0] * NUM_ENVS
        with pytest.raises(tandem.NoStepPending):
            envs.recv()
        envs.send(np.zeros(NUM_ENVS, int))
        assert_same(envs.reset(seed=4), SyncVectorEnv([ENVS["CartPole"]] * NUM_ENVS).reset(seed=4))


def test_no_reset_before_the_first() -> None:
    """The environments see the calls that SyncVectorEnv makes: none between construction and the first reset."""
    with closing(_made(ScriptedEnv)) as envs:
        with pytest.raises(tandem.ResetNeeded):
            envs.step(np.zeros(NUM_ENVS, int))
        envs.reset(seed=3)
        assert envs.get_attr("calls") == tuple([("reset", 3 + index)] for index in range(NUM_ENVS))


def test_invalid_actions_send_nothing() -> None:
    """Another shape or structure is refused; the next step is legal."""
    with closing(_made(ENVS["CartPole"])) as envs:
        envs.reset(seed=1)
        for wrong in (np.zeros(NUM_ENVS - 1, int), np.zeros((NUM_ENVS, 2), int), "left", None):
            with pytest.raises(tandem.InvalidAction):
                envs.step(wrong)
        envs.step([0] * NUM_ENVS)


def test_workers_are_new_programs() -> None:
    """They are no forks of this process, and have the modules' paths and variables of it."""
    os.environ["TANDEM_TEST_VARIABLE"] = "x"

    class Spy(ScriptedEnv):
        def facts(self) -> tuple[Any, ...]:
            return sys.path, os.environ["TANDEM_TEST_VARIABLE"], threading.active_count(), os.getsid(0), os.getpid()

    with closing(tandem.make_vec([Spy] * 4, num_workers=4)) as envs:
        facts = envs.call("facts")
    assert all(path == sys.path and variable == "x" and threads == 1 for path, variable, threads, _, _ in facts)
    assert {session for *_, session, _ in facts} != {os.getsid(0)}
    assert len({pid for *_, pid in facts}) == 4


@pytest.mark.parametrize("held", ["class", "partial", "closure", "module"])
def test_what_workers_cannot_import(held: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a class of a test module, to which pytest has given a package."""
    (tmp_path / "odd.py").write_text(
        "from tandem.testing.sample_envs import ScriptedEnv\nclass Odd(ScriptedEnv): ...\n"
    )
    package = types.ModuleType("nowhere")
    package.__path__ = [str(tmp_path)]
    monkeypatch.setitem(sys.modules, "nowhere", package)
    odd = importlib.import_module("nowhere.odd")
    functions = {
        "class": odd.Odd,
        "partial": functools.partial(odd.Odd),
        "closure": (lambda made: lambda: made())(odd.Odd),
        "module": lambda: odd.Odd(),
    }
    with closing(_made(functions[held])) as envs:
        envs.reset(seed=1)
    del sys.modules["nowhere.odd"]
    assert cloudpickle.list_registry_pickle_by_value() == set()


def test_random_numbers_differ_between_workers() -> None:
    """An environment that draws from NumPy's global generator without a seed draws others in each worker."""

    class Draws(ScriptedEnv):
        def draw(self) -> float:
            return float(np.random.random())

    with closing(tandem.make_vec([Draws] * 3, num_workers=3)) as envs:
        assert len(set(envs.call("draw"))) == 3


def test_registered_with_our_entry_point() -> None:
    """gymnasium.make_vec then makes Tandem's environments, with the time limit of the registration."""
    gymnasium.register(
        "Scripted-v0",
        entry_point=lambda **options: ScriptedEnv(**options),
        vector_entry_point=functools.partial(tandem.vector.make_registered, ScriptedEnv),
        max_episode_steps=2,
    )
    with closing(gymnasium.make_vec("Scripted-v0", 4)) as envs:
        assert isinstance(envs, tandem.vector.WorkerVectorEnv)
        envs.reset(seed=1)
        assert [bool(envs.step([0] * 4)[3].all()) for _ in range(2)] == [False, True]
    del gymnasium.registry["Scripted-v0"]


def test_choice_of_the_backend() -> None:
    """Tasks of Tandem run in C++ unless Python is asked for; other ids run in Python."""
    assert "CartPole-v1" in tandem.list_tasks()
    envs = tandem.make_vec("CartPole-v1", 1, backend="python")
    assert isinstance(envs, tandem.vector.WorkerVectorEnv)
    envs.close()
    other: Any = tandem.make_vec(
        "Acrobot-v1", 2, render_mode="rgb_array", options=tandem.TaskOptions(max_episode_steps=3)
    )
    assert isinstance(other, tandem.vector.WorkerVectorEnv) and other.render_mode == "rgb_array"
    other.reset(seed=0)
    assert [bool(other.step([0, 0])[3].all()) for _ in range(3)] == [False, False, True]
    other.close()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("Acrobot-v1", 2, {"backend": "rust"}), "backend: expected one of 'native', 'python', found 'rust'"),
        ((ScriptedEnv, 2, {"backend": "native"}), "backend: expected 'python' for functions"),
        (
            ("No-v1", 2, {"backend": "python"}),
            "task: unknown: expected one of gymnasium.registry, found 'No-v1'; 'module:id' imports",
        ),
        (
            ("Acrobot-v1", 2, {"threads": 2}),
            "threads: expected none, found 2: .* in Python; num_workers=... is the number",
        ),
        ((ScriptedEnv, 2, {"n_envs": 2}), "n_envs: .*, found 2; use num_envs; .*TaskOptions.kwargs="),
        (
            (ScriptedEnv, 2, {"options": tandem.TaskOptions(dtype=np.float32)}),
            "TaskOptions.dtype: .*, where a wrapper of the environment does this",
        ),
        ((ScriptedEnv, 2, {"num_workers": 3}), r"num_workers: expected an integer in 1 \.\. 2, found 3"),
        ((ScriptedEnv, 0, {}), "num_envs: expected an integer in 1"),
        (([ScriptedEnv] * 3, 2, {}), "num_envs: expected 3, the number of functions, found 2"),
        (([], None, {}), "task: expected a task's name"),
        (([ScriptedEnv, 3], None, {}), "task: expected a task's name"),
        (
            (ScriptedEnv, 2, {"engine": tandem.EngineOptions()}),
            "engine: expected tandem.WorkerOptions for environments",
        ),
        ((None, 2, {"backend": "python"}), "backend: expected None or 'native' without a task"),
    ],
)
def test_invalid_arguments(arguments: tuple[Any, Any, dict[str, Any]], text: str) -> None:
    """The message says what was expected, what was found, and what to do."""
    task, num_envs, options = arguments
    with pytest.raises(tandem.InvalidArgument, match=text):
        tandem.make_vec(task, num_envs, **options)


@pytest.mark.parametrize("functions", [ScriptedEnv, [ScriptedEnv, functools.partial(ScriptedEnv, length=5)]])
def test_functions_get_keyword_arguments(functions: Any) -> None:
    """As an id's environment does; the limit of steps applies, too. TaskOptions has those that it would else take."""
    with closing(tandem.make_vec(functions, 2, length=2)) as envs:
        envs.reset(seed=0)
        assert [envs.step([0, 0])[2].tolist() for _ in range(2)] == [[False] * 2, [True] * 2]
    with closing(
        tandem.make_vec(functions, 2, options=tandem.TaskOptions(max_episode_steps=1, kwargs={"length": 9}))
    ) as envs:
        envs.reset(seed=0)
        assert envs.step([0, 0])[3].tolist() == [True, True]
