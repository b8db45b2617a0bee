"""`make_vec` with functions for rewards, terminations and observations, compared with environments of Gymnasium.

Length: each function in each mode of autoreset.
"""

import dataclasses
import inspect
import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.mujoco import MujocoEnv
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from numpy.typing import NDArray

import tandem
from tandem.testing.engines import watchdog  # noqa: F401, the fixture
from tandem.testing.sample_spaces import assert_same
from tandem.vector import Transition

_ENVS = 5
_STEP_SECS = 0.01
_XML = str(Path(inspect.getfile(MujocoEnv)).parent / "assets" / "hopper.xml")
_MODEL: dict[str, Any] = {
    "model": _XML,
    "frame_skip": 5,
    "reset_noise_scale": 0.05,
    "state": ("qpos", "qvel", "xpos", "cfrc_ext"),
    "max_episode_steps": 30,
}


class _Jumper(MujocoEnv):
    """The reference: Gymnasium's hopper with another reward, other ends and other observations."""

    metadata = {"render_modes": ["human", "rgb_array", "depth_array", "rgbd_tuple"], "render_fps": 100}

    def __init__(self) -> None:
        space = spaces.Box(-np.inf, np.inf, (11,), np.float64)
        super().__init__(_XML, 5, observation_space=space)
        self._return, self._length = 0.0, 0

    def step(self, action: Any) -> Any:
        """Steps as `_reward`, `_terminated` and `_observation` say."""
        before = self.data.qpos[0]
        self.do_simulation(action, self.frame_skip)
        drive = action[0] * action[0] + action[1] * action[1] + action[2] * action[2]
        reward = (self.data.qpos[0] - before) / _STEP_SECS + self.data.xpos[4, 2] - 0.5 * np.float64(drive)
        self._return += reward
        self._length += 1
        own = {"reward": reward, "episode_return": self._return, "episode_length": self._length}
        return self._observed(), reward, bool(self.data.qpos[1] < 1.2), False, self._infos() | own

    def reset_model(self) -> Any:
        """Adds noise to the first state."""
        self._return, self._length = 0.0, 0
        random = self.np_random
        qpos = self.init_qpos + random.uniform(-0.05, 0.05, self.model.nq)
        qvel = self.init_qvel + 0.05 * random.standard_normal(self.model.nv)
        self.set_state(qpos, qvel)  # type: ignore[no-untyped-call]
        return self._observed()

    def _observed(self) -> Any:
        return np.concatenate([self.data.qpos[1:], np.clip(self.data.qvel, -10, 10)])

    def _infos(self) -> dict[str, Any]:
        data = self.data
        return {name: getattr(data, name).ravel().copy() for name in _MODEL["state"]}

    _get_reset_info = _infos


def _reward(step: Transition) -> Any:
    speed = (step.state["qpos"][:, 0] - step.previous_state["qpos"][:, 0]) / _STEP_SECS
    a = step.actions
    drive = a[:, 0] * a[:, 0] + a[:, 1] * a[:, 1] + a[:, 2] * a[:, 2]
    return speed + step.state["xpos"][:, 4, 2] - 0.5 * drive.astype(np.float64)


def _terminated(step: Transition) -> NDArray[np.bool_]:
    return step.state["qpos"][:, 1] < 1.2


def _observation(step: Transition) -> NDArray[np.float64]:
    return np.concatenate([step.state["qpos"][:, 1:], np.clip(step.state["qvel"], -10, 10)], axis=1)


_ITS = [field.name for field in dataclasses.fields(tandem.TaskOptions)]


def _made(**options: Any) -> Any:
    given = _MODEL | options
    its = {name: given.pop(name) for name in _ITS if name in given}
    return tandem.make_vec(num_envs=_ENVS, options=tandem.TaskOptions(**its), **given)


def _in_order(infos: dict[str, Any]) -> dict[str, Any]:
    """Returns infos with sorted keys: those of Gymnasium depend on which environment was the first to have them."""
    return {key: _in_order(infos[key]) if isinstance(infos[key], dict) else infos[key] for key in sorted(infos)}


def _without_own(infos: dict[str, Any]) -> dict[str, Any]:
    """Returns infos without those of rewards that the trainer computes."""
    own = ("reward", "episode_return", "episode_length")
    kept = {key: value for key, value in infos.items() if key.removeprefix("_") not in own}
    return {key: _without_own(value) if isinstance(value, dict) else value for key, value in kept.items()}


def _same(found: Any, expected: Any) -> None:
    assert_same((*found[:-1], _in_order(found[-1])), (*expected[:-1], _in_order(expected[-1])))


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)
def test_equals_an_environment_of_gymnasium(mode: AutoresetMode, copy: bool) -> None:
    """Observations, rewards, flags and infos have Gymnasium's digits, also after resets by seeds and masks."""
    theirs = SyncVectorEnv([lambda: TimeLimit(_Jumper(), 30)] * _ENVS, autoreset_mode=mode)
    functions = {"reward": _reward, "terminated": _terminated, "observation": _observation}
    with closing(theirs), closing(_made(autoreset_mode=mode, copy=copy, **functions)) as ours:
        assert ours.observation_space == theirs.observation_space
        assert ours.action_space == theirs.action_space
        assert ours.autoreset_mode is mode and ours.metadata["autoreset_mode"] is mode
        _same(ours.reset(seed=4), theirs.reset(seed=4))
        theirs.action_space.seed(5)
        rng = np.random.default_rng(6)
        counts = np.zeros(2, int)
        for step in range(300):
            actions = theirs.action_space.sample()
            expected = theirs.step(actions)
            _same(ours.step(actions), expected)
            counts += expected[2].sum(), expected[3].sum()
            mask = expected[2] | expected[3]
            if mode is not AutoresetMode.DISABLED:
                mask = rng.random(_ENVS) < (0.5 if step % 37 == 0 else 0)
            if mask.any():
                seed = None if step % 2 else step
                results = [envs.reset(seed=seed, options={"reset_mask": mask.copy()}) for envs in (ours, theirs)]
                _same(*results)
        assert (counts > 5).all(), counts


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)
def test_a_task_of_tandem_with_its_own_rules(mode: AutoresetMode) -> None:
    """Functions that repeat the rules of HalfCheetah and of Hopper change nothing in the results of the tasks."""

    def made(task: str, **functions: Any) -> Any:
        options = tandem.TaskOptions(max_episode_steps=25, **functions)
        return closing(tandem.make_vec(task, 4, autoreset_mode=mode, options=options))

    def cheetah(step: Transition) -> NDArray[Any]:
        return step.rewards

    def fallen(step: Transition) -> NDArray[np.bool_]:
        assert (step.terminations <= step.stepped).all()
        return step.terminations.copy()

    for task, functions in (("HalfCheetah-v5", {"reward": cheetah}), ("Hopper-v5", {"terminated": fallen})):
        with made(task) as plain, made(task, **functions) as own:
            assert own.single_observation_space == plain.single_observation_space
            assert_same(own.reset(seed=1), plain.reset(seed=1))
            plain.action_space.seed(1)
            for _ in range(80):
                actions = plain.action_space.sample()
                expected = plain.step(actions)
                *found, infos = own.step(actions)
                assert_same((*found, _without_own(infos)), expected)
                ended = expected[2] | expected[3]
                if mode is AutoresetMode.DISABLED and ended.any():
                    assert_same(*(envs.reset(options={"reset_mask": ended.copy()}) for envs in (own, plain)))


def _hinge_terms(step: Transition) -> Any:
    return step.steps == 3 + np.arange(len(step.steps))


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)
def test_subsets_follow_the_mode(mode: AutoresetMode) -> None:
    """`step(env_ids=...)` steps and resets these environments alone; the others keep their steps."""
    with closing(_made(autoreset_mode=mode, terminated=_hinge_terms, reward=lambda step: step.steps)) as envs:
        envs.reset(seed=0)
        zeros = np.zeros((2, 3), np.float32)
        for step in (1, 2, 3):
            _, rewards, terminations, _, infos = envs.step(zeros, env_ids=[4, 0])
            assert rewards.tolist() == [step, step]
            assert terminations.tolist() == [False, step == 3]
        assert ("final_obs" in infos) == (mode is AutoresetMode.SAME_STEP)
        if mode is AutoresetMode.DISABLED:
            with pytest.raises(tandem.InvalidArgument, match="found environments \\[0\\]"):
                envs.step(zeros, env_ids=[4, 0])
            envs.reset(env_ids=[0])
        rewards, terminations = envs.step(zeros, env_ids=[4, 0])[1:3]
        assert rewards.tolist() == [4, 0 if mode is AutoresetMode.NEXT_STEP else 1]
        _, rewards, terminations, _, _ = envs.step(np.zeros((_ENVS, 3), np.float32))
        assert rewards.tolist() == [1 if mode is AutoresetMode.NEXT_STEP else 2, 1, 1, 1, 5]


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)
def test_infos_have_returns_and_lengths(mode: AutoresetMode) -> None:
    """Of the environments that were stepped, from 0 at each reset; in `final_info` those of ended episodes."""
    functions = {"reward": lambda step: step.steps * 1.0, "terminated": _hinge_terms}
    with closing(_made(autoreset_mode=mode, **functions)) as envs:
        envs.reset(seed=0)
        zeros = np.zeros((2, 3), np.float32)
        for step, total in ((1, 1), (2, 3), (3, 6)):
            infos = envs.step(zeros, env_ids=[4, 0])[4]
            assert infos["episode_length"][0] == step and infos["episode_return"][0] == total
        of_last = infos
        if mode is AutoresetMode.SAME_STEP:
            assert infos["_episode_return"].tolist() == [True, False]
            of_last = infos["final_info"]
        assert of_last["_episode_return"][1] and of_last["_reward"][1]
        its = [of_last[name][1].item() for name in ("reward", "episode_return", "episode_length")]
        assert its == [3.0, 6.0, 3]
        if mode is AutoresetMode.DISABLED:
            assert "reward" not in envs.reset(env_ids=[0])[1]
        infos = envs.step(np.zeros((_ENVS, 3), np.float32))[4]
        is_reset = mode is AutoresetMode.NEXT_STEP
        assert infos["_reward"].tolist() == [not is_reset, True, True, True, True]
        assert infos["episode_return"].tolist() == [0 if is_reset else 1, 1, 1, 1, 10]


def test_observations_alone_add_no_infos() -> None:
    """Rewards and returns are the engine's then."""
    with closing(_made(observation=_observation)) as envs:
        envs.reset(seed=0)
        assert "reward" not in envs.step(np.zeros((_ENVS, 3), np.float32))[4]


def _drawn(envs: Any) -> tuple[dict[str, Any], Any]:
    """Returns metadata and metrics of a frame that shows the environments as they are now."""
    metadata = json.loads(envs.client.drawn_frame(60)[1])
    with tandem.FastLaneReader.attach(envs.client.name) as reader:
        metrics = reader.metrics()
    return metadata, (metrics.last_reward, metrics.rolling_return)


def test_observers_see_own_rewards() -> None:
    """Frames have the trainer's returns and episodes; without the functions those of a model are unknown."""
    shown: dict[str, Any] = {"frames": tandem.FrameOptions((8, 8), envs=[0], hz=0)}
    functions = {"reward": lambda step: np.arange(_ENVS) + step.steps, "terminated": lambda step: step.steps == 2}
    zeros = np.zeros((_ENVS, 3), np.float32)
    with closing(_made(autoreset_mode="SameStep", **functions, **shown)) as envs:
        envs.reset(seed=0)
        metadata, metrics = _drawn(envs)
        assert np.isnan(metrics).all() and metadata["episodes"] == 0  # no step yet
        envs.step(zeros)
        metadata, metrics = _drawn(envs)
        assert metrics == (3.0, 3.0)  # the means of 1 .. 5
        assert metadata["episodes"] == 0 and "episode_length" not in metadata
        for _ in range(3):
            envs.step(zeros)
        metadata, metrics = _drawn(envs)
        assert metrics == (4.0, 7.0)  # returns are 3 + 2 * i
        assert (metadata["episodes"], metadata["episode_length"]) == (10, 2)
        envs.client.replaced(tandem.AutoresetMode.SAME_STEP).close()  # another client, without functions
    with closing(_made(**shown)) as envs:
        envs.reset(seed=0)
        envs.step(zeros)
        assert np.isnan(_drawn(envs)[1]).all()


def test_a_new_client_begins_without_own_rewards() -> None:
    """The engine's own statistics hold then."""
    options = tandem.TaskOptions(reward=lambda step: np.full(2, 99.0))
    frames = tandem.FrameOptions((8, 8), hz=0)
    with closing(tandem.make_vec("CartPole-v1", 2, options=options, frames=frames)) as envs:
        envs.reset(seed=0)
        envs.step(np.zeros(2, int))
        assert _drawn(envs)[1] == (99.0, 99.0)
        name = envs.client.name
        envs.client.close()
        with closing(tandem.SharedMemoryVectorEnv(tandem.SharedMemoryClient(name, timeout=60))) as plain:
            plain.reset(seed=0)
            plain.step(np.zeros(2, int))
            assert _drawn(plain)[1] == (1.0, 1.0)


def test_functions_see_the_whole_transition() -> None:
    """Arrays have the documented shapes and dtypes, are read-only, and show resets."""
    seen: list[dict[str, Any]] = []

    def reward(step: Transition) -> NDArray[np.float64]:
        seen.append({name: value for name, value in vars(step).items() if "state" not in name})
        seen[-1] = {name: value.copy() for name, value in seen[-1].items()}
        assert step.state["cfrc_ext"].shape == step.previous_state["cfrc_ext"].shape == (_ENVS, 5, 6)
        assert step.state["qvel"].shape == (_ENVS, 6) and step.state["qvel"].dtype == np.float64
        state = np.hstack([step.state["qpos"], step.state["qvel"]])
        np.testing.assert_array_equal(step.obs, state.astype(np.float32))
        with pytest.raises(ValueError, match="read-only"):
            step.state["qvel"][0] = 1
        with pytest.raises(ValueError, match="read-only"):
            step.obs[0] = 1
        return np.zeros(_ENVS)

    with closing(_made(reward=reward, max_episode_steps=2)) as envs:
        first, _ = envs.reset(seed=0)
        actions = np.full((_ENVS, 3), 0.5, np.float32)
        observations = [first] + [envs.step(actions)[0] for _ in range(3)]
    kinds = {name: (value.dtype.name, value.shape) for name, value in seen[0].items()}
    assert kinds == {
        "obs": ("float32", (_ENVS, 12)),
        "previous_obs": ("float32", (_ENVS, 12)),
        "actions": ("float32", (_ENVS, 3)),
        "rewards": ("float32", (_ENVS,)),
        "terminations": ("bool", (_ENVS,)),
        "truncations": ("bool", (_ENVS,)),
        "steps": ("int64", (_ENVS,)),
        "stepped": ("bool", (_ENVS,)),
    }
    assert [step["truncations"].all() for step in seen] == [False, True]
    assert [step["steps"].tolist() for step in seen] == [[1] * _ENVS, [2] * _ENVS]
    for step, before, after in zip(seen, observations, observations[1:], strict=False):
        np.testing.assert_array_equal(step["previous_obs"], before)
        np.testing.assert_array_equal(step["obs"], after)
        np.testing.assert_array_equal(step["actions"], actions)


_EVERY_ARRAY = """
<mujoco>
  <worldbody>
    <body><joint name="hinge" axis="0 1 0"/><geom size="0.05"/><site/></body>
    <body pos="0 0 1"><joint axis="0 1 0"/><geom size="0.05"/><geom size="0.04"/></body>
  </worldbody>
  <actuator><intvelocity joint="hinge" actrange="-1 1" ctrlrange="-1 1" ctrllimited="true"/></actuator>
  <sensor><jointpos joint="hinge"/></sensor>
</mujoco>
"""
_STATE = (
    "qpos qvel qacc act ctrl sensordata xpos xquat xipos subtree_com cinert cvel cfrc_ext geom_xpos site_xpos "
    "actuator_force qfrc_actuator qfrc_constraint"
).split()


def test_arrays_of_the_state_have_mujocos_shapes(tmp_path: Path) -> None:
    """All that docs/own_robot.md lists; those of bodies, geoms and sites have a row for each."""
    model = tmp_path / "model.xml"
    model.write_text(_EVERY_ARRAY)
    data = mujoco.MjData(mujoco.MjModel.from_xml_path(str(model)))
    expected = {name: (2, *getattr(data, name).shape) for name in _STATE}
    found: dict[str, tuple[int, ...]] = {}

    def reward(step: Transition) -> NDArray[np.float64]:
        found.update((name, step.state[name].shape) for name in _STATE)
        return np.zeros(2)

    with closing(
        tandem.make_vec(model=model, num_envs=2, state=_STATE, options=tandem.TaskOptions(reward=reward))
    ) as envs:
        envs.reset(seed=0)
        envs.step(envs.action_space.sample())
    assert found == expected


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int64, np.float16, np.float64])
def test_own_observations_have_a_space_of_their_dtype(dtype: Any) -> None:
    """With the dtype's limits."""
    with closing(_made(observation=lambda step: (step.obs[:, :2] > 0).astype(dtype))) as envs:
        assert envs.single_observation_space.dtype == dtype and envs.single_observation_space.shape == (2,)
        assert envs.reset(seed=0)[0] in envs.observation_space
        assert envs.step(np.zeros((_ENVS, 3), np.float32))[0] in envs.observation_space


@pytest.mark.parametrize(
    ("functions", "text"),
    [
        ({"reward": lambda step: step.rewards[:2]}, "reward: .* float64\\[5\\], found float32\\[2\\]"),
        ({"reward": lambda step: 1.0}, "reward: .* found float64\\[\\]"),
        ({"reward": lambda step: ["a"] * _ENVS}, "reward: .* found <U1\\[5\\]"),
        ({"reward": lambda step: np.where(step.steps == 1, np.inf, 0)}, "reward: .* found inf for environment 0"),
        ({"terminated": lambda step: step.steps}, "terminated: .* bool\\[5\\], found int64\\[5\\]"),
        (
            {"observation": lambda step: step.obs[:, : 2 - step.steps.max()]},
            "observation: .* float32\\[5, 2\\] as in its first call, found float32\\[5, 1\\]",
        ),
    ],
)
def test_results_are_checked(functions: dict[str, Callable[[Transition], Any]], text: str) -> None:
    """Errors have what was expected and found."""
    with closing(_made(**functions)) as envs:
        envs.reset(seed=0)
        with pytest.raises(tandem.InvalidArgument, match=text):
            envs.step(np.zeros((_ENVS, 3), np.float32))
        assert not envs.client.pending


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP], ids=lambda mode: mode.name)
def test_exceptions_leave_the_environments_usable(mode: AutoresetMode) -> None:
    """The exception comes as it is. Episodes that ended in this step are reset by the next one."""
    reasons: Iterator[Exception | None] = iter([None, None, KeyError("mine"), None, None])

    def reward(step: Transition) -> NDArray[np.int64]:
        if (reason := next(reasons)) is not None:
            raise reason
        return step.steps

    with closing(_made(reward=reward, autoreset_mode=mode, max_episode_steps=3)) as envs:
        envs.reset(seed=0)
        zeros = np.zeros((_ENVS, 3), np.float32)
        for _ in range(2):
            envs.step(zeros)
        with pytest.raises(KeyError, match="mine"):
            envs.step(zeros)
        assert envs.step(zeros)[1].tolist() == [0] * _ENVS  # all are reset
        assert envs.step(zeros)[1].tolist() == [1] * _ENVS
        envs.reset(seed=1)
        assert envs.step(zeros)[1].tolist() == [1] * _ENVS


def test_a_time_out_of_the_reset_loses_no_results() -> None:
    """With SAME_STEP, `recv` continues where the second exchange of a step timed out; `reset` drops its results."""
    stops = iter([False, True, False, True, False])
    stopped: list[int] = []

    def terminated(step: Transition) -> Any:
        if next(stops):
            os.kill(envs.client.engine_pid, signal.SIGSTOP)  # between the exchanges
            stopped.append(envs.client.engine_pid)
        return step.steps == 2

    with closing(_made(terminated=terminated, autoreset_mode="SameStep", reward=lambda step: step.steps + 10)) as envs:
        zeros = np.zeros((_ENVS, 3), np.float32)
        for number, call in enumerate(("recv", "reset")):
            envs.reset(seed=0)
            before = envs.step(zeros)[0]
            envs.send(zeros)
            while len(stopped) == number:  # on a busy machine the first exchange may time out too
                with pytest.raises(tandem.StepTimeout):
                    envs.recv(0.2)
            assert envs.client.pending
            with pytest.raises(tandem.StepPending):
                envs.step(zeros)
            os.kill(envs.client.engine_pid, signal.SIGCONT)
            if call == "recv":
                obs, rewards, terminations, _, infos = envs.recv(10)
                assert rewards.tolist() == [12.0] * _ENVS and terminations.all() and infos["_final_obs"].all()
                assert not np.array_equal(infos["final_obs"][0], obs[0]) and not np.array_equal(before, obs)
        envs.reset()
        assert envs.step(zeros)[1].tolist() == [11.0] * _ENVS


def test_a_refused_reset_resets_nothing() -> None:
    """After it, an ended episode is still ended."""
    with closing(_made(terminated=lambda step: step.steps == 1, autoreset_mode="Disabled")) as envs:
        envs.reset(seed=0)
        zeros = np.zeros((_ENVS, 3), np.float32)
        envs.step(zeros)
        with pytest.raises(tandem.InvalidArgument, match="seed"):
            envs.reset(seed=-1)
        envs.reset(env_ids=[1, 2, 3, 4])
        with pytest.raises(tandem.InvalidArgument, match="found environments \\[0\\]"):
            envs.step(zeros)
        envs.reset(env_ids=[0])
        envs.step(zeros)


def test_wrappers_of_gymnasium_work() -> None:
    """RecordEpisodeStatistics has the returns and lengths of episodes whose ends and rewards are the functions'."""
    functions = {"reward": lambda step: np.ones(_ENVS), "terminated": lambda step: step.steps == 4}
    with closing(RecordEpisodeStatistics(_made(autoreset_mode="SameStep", **functions))) as envs:
        envs.reset(seed=0)
        for step in range(1, 9):
            infos = envs.step(envs.action_space.sample())[4]
            assert ("episode" in infos) == (step % 4 == 0)
        assert infos["episode"]["r"].tolist() == [4.0] * _ENVS and infos["episode"]["l"].tolist() == [4] * _ENVS


def test_one_environment_and_discrete_actions() -> None:
    """`gymnasium.make` takes the functions, too; a discrete action is a number in the transition."""
    actions: list[float] = []

    def reward(step: Transition) -> list[float]:
        actions.append(float(step.actions[0, 0]))
        return [7.0]

    own = tandem.TaskOptions(reward=reward, terminated=lambda step: step.steps == 2)
    env = gymnasium.make("tandem/CartPole-v1", options=own)
    with closing(env):
        env.reset(seed=0)
        assert [env.step(action)[1:3] for action in (1, 0)] == [(7.0, False), (7.0, True)]
    assert actions == [1.0, 0.0]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"reward": 1.0}, "reward: expected a function of a tandem.vector.Transition, found 1.0"),
        (
            {"terminated": lambda step: step, "engine": tandem.EngineOptions(restart=True)},
            "EngineOptions.restart: expected False with reward",
        ),
        ({"observation": lambda step: step.obs, "dtype": "float32"}, "dtype: expected None with observation"),
        ({"task": "Acrobot-v1", "model": None, "reward": lambda step: step}, "TaskOptions.reward: .* in Python"),
        ({"state": ("qpos", "speed")}, "state: expected a list of names, .* out of qpos, .* found .*speed"),
        ({"observation": lambda step: np.zeros(3)}, "observation: .* with a row for each .* call make_vec again"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], text: str) -> None:
    """Nothing is left running."""
    with pytest.raises(tandem.InvalidArgument, match=text):
        _made(**arguments)


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)
def test_results_that_an_interrupt_dropped(mode: AutoresetMode) -> None:
    """Episodes that ended in this step are reset by the next one."""
    functions = {"reward": lambda step: step.steps * 1.0}
    with closing(_made(autoreset_mode=mode, max_episode_steps=2, **functions)) as envs:
        envs.reset(seed=0)
        actions = np.zeros((_ENVS, 3), np.float32)
        envs.step(actions)
        envs.send(actions)
        envs.client.recv()
        if mode is AutoresetMode.DISABLED:
            with pytest.raises(tandem.InvalidArgument, match="expected no ended episode"):
                envs.step(actions)
            envs.reset()
        else:
            assert envs.step(actions)[1].tolist() == [0.0] * _ENVS
        assert envs.step(actions)[1].tolist() == [1.0] * _ENVS
