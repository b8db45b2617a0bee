"""`as_sb3`, compared with Stable-Baselines3's DummyVecEnv; run by `tools/test --with torch`, since it needs torch."""

import os
import signal
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from stable_baselines3 import DQN, PPO, SAC
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecCheckNan, VecEnv, VecFrameStack, VecMonitor, VecNormalize

import tandem
from tandem.sb3 import SubprocVecEnv

_ENVS = 3
_TASKS = ["CartPole-v1", "Hopper-v5", "Reacher-v5"]
_WRAPPERS = {
    "none": lambda envs: envs,
    "VecMonitor": VecMonitor,
    "VecNormalize": VecNormalize,
    "VecFrameStack": lambda envs: VecFrameStack(envs, 3),
    "VecCheckNan": VecCheckNan,
}


def _dummy(task: str, **options: Any) -> VecEnv:
    return DummyVecEnv([lambda: gymnasium.make(task, **options)] * _ENVS)


def _ours(task: str, *, autoreset_mode: str = "NextStep", **options: Any) -> VecEnv:
    its = tandem.TaskOptions(**options)
    return tandem.make_vec(task, _ENVS, autoreset_mode=autoreset_mode, options=its).as_sb3()


def _subproc(task: str, **options: Any) -> VecEnv:
    return SubprocVecEnv([lambda: gymnasium.make(task, **options)] * _ENVS, num_workers=2)


@pytest.mark.parametrize("wrapper", _WRAPPERS)
@pytest.mark.parametrize("task", _TASKS)
@pytest.mark.parametrize("ours", [_ours, _subproc], ids=["as_sb3", "SubprocVecEnv"])
def test_equals_dummy_vec_env(ours: Any, task: str, wrapper: str) -> None:
    """Spaces, results, terminal observations, truncations and infos of steps and of resets are equal."""
    results = []
    for make in (_dummy, ours):
        envs = _WRAPPERS[wrapper](make(task, max_episode_steps=40))
        envs.seed(3)
        envs.action_space.seed(4)
        result: list[Any] = [envs.observation_space, envs.action_space, envs.num_envs, envs.reset()]
        result.append([dict(infos) for infos in envs.reset_infos])
        for _ in range(120):
            result.append(envs.step(np.stack([envs.action_space.sample() for _ in range(_ENVS)])))
            result.append([dict(infos) for infos in envs.reset_infos])
        result.append(envs.reset())
        results.append(result)
        envs.close()
    _assert_same(results[1], results[0])


def _assert_same(found: Any, expected: Any) -> None:
    assert isinstance(found, type(expected))
    if isinstance(expected, (tuple, list)):
        for one, other in zip(found, expected, strict=True):
            _assert_same(one, other)
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key in expected.keys() - {"t"}:  # an episode's wall time
            _assert_same(found[key], expected[key])
    elif isinstance(expected, np.ndarray):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    elif isinstance(expected, (float, np.floating)):
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-5)
    else:
        assert found == expected


def test_attributes_and_methods_of_chosen_environments() -> None:
    """get_attr, set_attr, env_method and env_is_wrapped do what Stable-Baselines3's SubprocVecEnv does."""
    found = []
    for make in (_dummy, _subproc):
        envs = make("CartPole-v1", render_mode="rgb_array")
        envs.set_attr("length", 0.7, indices=[0, 2])
        envs.set_attr("length", 0.9, indices=[])
        envs.reset()
        found.append(
            [
                envs.get_attr("length"),
                envs.get_attr("length", 1),
                envs.env_method("get_wrapper_attr", "gravity", indices=[2]),
                envs.get_attr("length", [-1, 0, 0, 1]),
                envs.env_is_wrapped(gymnasium.wrappers.TimeLimit, [-1, -1]),
                envs.env_is_wrapped(gymnasium.wrappers.TimeLimit),
                envs.env_is_wrapped(gymnasium.wrappers.FlattenObservation, [1]),
                [image.shape for image in envs.get_images()],
            ]
        )
        envs.close()
    assert found[1] == found[0]


class _Keeps(gymnasium.Env[Any, Any]):
    """Has a Dict of actions, and remembers the options of its reset."""

    observation_space = gymnasium.spaces.Box(0, 100, (1,), np.float32)
    action_space = gymnasium.spaces.Dict(
        {"move": gymnasium.spaces.Discrete(5), "force": gymnasium.spaces.Box(0, 9, (2,))}
    )

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.options = options
        return np.zeros(1, np.float32), {"options": str(options)}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return np.full(1, action["move"] + action["force"].sum(), np.float32), 0.0, False, False, {}


def test_options_and_structured_actions() -> None:
    """Each environment can have its own options, for one reset; actions of a Dict come one for each environment."""
    found = []
    for make in (DummyVecEnv, lambda functions: SubprocVecEnv(functions, num_workers=2)):
        envs = make([_Keeps] * _ENVS)
        result: list[Any] = []
        for options in ({"level": 1}, [{"level": 2}, {}, {"level": np.arange(2)}], None):
            if options is not None:
                envs.set_options(options)
            result += [
                envs.reset(),
                [dict(each) for each in envs.reset_infos],
                [str(each) for each in envs.get_attr("options")],
            ]
        actions = [{"move": np.int64(index), "force": np.full(2, index, np.float32)} for index in range(_ENVS)]
        result.append(envs.step(actions)[0])
        found.append(result)
        envs.close()
    _assert_same(found[1], found[0])


def test_unknown_start_methods_are_refused() -> None:
    """As Stable-Baselines3 does; the others have no effect."""
    with pytest.raises(tandem.InvalidArgument, match="start_method: expected one of"):
        SubprocVecEnv([_Keeps], start_method="thread")
    SubprocVecEnv([_Keeps], start_method="fork").close()


def test_make_vec_env_with_our_class() -> None:
    """`vec_env_cls` is the only change."""
    results = []
    for cls in (DummyVecEnv, SubprocVecEnv):
        envs = make_vec_env("CartPole-v1", 4, seed=2, vec_env_cls=cls)
        assert envs.env_is_wrapped(Monitor) == [True] * 4
        model = PPO("MlpPolicy", envs, n_steps=64, seed=1, device="cpu").learn(512)
        results.append([value.detach().numpy() for value in model.policy.parameters()])
        envs.close()
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("algorithm", "task"), [(PPO, "Hopper-v5"), (SAC, "Pendulum-v1"), (DQN, "CartPole-v1")])
def test_algorithms_train_evaluate_save_and_load(algorithm: Any, task: str, tmp_path: Path) -> None:
    """On-policy and off-policy algorithms, continuous and discrete actions, with evaluations during the training."""
    train, evaluate = VecMonitor(_ours(task)), VecMonitor(_ours(task))
    short = {"n_steps": 64} if algorithm is PPO else {"learning_starts": 50}
    agent = algorithm("MlpPolicy", train, seed=0, device="cpu", **short)
    agent.learn(600, callback=EvalCallback(evaluate, eval_freq=100, n_eval_episodes=3, verbose=0))
    agent.save(tmp_path / "agent")
    again = algorithm.load(tmp_path / "agent", env=train, device="cpu")
    mean, _ = evaluate_policy(again, evaluate, n_eval_episodes=3)
    assert np.isfinite(mean)
    train.close()
    evaluate.close()


def test_any_autoreset_mode_becomes_same_step() -> None:
    """The mode changes without a restart of the engine."""
    for mode in tandem.AutoresetMode:
        envs = tandem.make_vec("Hopper-v5", _ENVS, autoreset_mode=mode, engine=tandem.EngineOptions(restart=True))
        pid = envs.client.engine_pid
        sb3 = envs.as_sb3()
        sb3.seed(0)
        sb3.reset()
        ended = 0
        for _ in range(100):
            infos = sb3.step(np.ones((_ENVS, 3), np.float32))[3]
            ended += sum("terminal_observation" in each for each in infos)
        assert ended > 0 and envs.client.engine_pid == pid
        sb3.close()


def test_a_restarted_engine_truncates_every_environment() -> None:
    """Stable-Baselines3 bootstraps the episodes' values from their last observations."""
    envs = tandem.make_vec("Hopper-v5", _ENVS, engine=tandem.EngineOptions(restart=True))
    sb3 = envs.as_sb3()
    sb3.reset()
    obs = sb3.step(np.zeros((_ENVS, 3), np.float32))[0]
    os.kill(envs.client.engine_pid, signal.SIGKILL)
    os.waitid(os.P_PID, envs.client.engine_pid, os.WEXITED | os.WNOWAIT)
    _, _, dones, infos = sb3.step(np.zeros((_ENVS, 3), np.float32))
    assert dones.all()
    for each, last in zip(infos, obs, strict=True):
        assert each["TimeLimit.truncated"] and each["engine_restarted"]
        np.testing.assert_array_equal(each["terminal_observation"], last)
    sb3.close()


def test_views_and_other_options_are_refused() -> None:
    """SB3 keeps observations across steps, and an engine has one option of a reset."""
    envs = tandem.make_vec("Hopper-v5", _ENVS, options=tandem.TaskOptions(copy=False))
    with pytest.raises(tandem.InvalidArgument, match="copy"):
        envs.as_sb3()
    envs.close()
    sb3 = _ours("Hopper-v5")
    sb3.set_options({"low": -1})
    with pytest.raises(tandem.InvalidArgument, match=r"options\[0\]: expected None or a dict with 'contract' alone"):
        sb3.reset()
    sb3.reset()
    sb3.close()


def test_a_policy_of_images_and_values_trains() -> None:
    """`MultiInputPolicy` gets both, also of final observations; the images have channels first, as its layers need."""
    envs = VecMonitor(tandem.make_vec("CartPole-v1", _ENVS, images=(48, 40)).as_sb3())
    agent = PPO("MultiInputPolicy", envs, n_steps=16, batch_size=24, n_epochs=1, seed=0, device="cpu")
    assert agent.observation_space["image"].shape == (3, 40, 48)
    assert agent.observation_space["state"].shape == (4,)
    before = [value.detach().clone() for value in agent.policy.features_extractor.parameters()]
    agent.learn(3 * 32)
    changed = zip(before, agent.policy.features_extractor.parameters(), strict=True)
    assert all(bool((one != other).any()) for one, other in changed)
    assert envs.reset()["image"].shape == (_ENVS, 40, 48, 3)
    finals = 0
    while finals < 4:
        obs, _, dones, infos = envs.step(np.ones(_ENVS, int))
        for index in np.flatnonzero(dones):
            last = infos[index]["terminal_observation"]
            assert last in envs.observation_space
            assert (last["image"] != obs["image"][index]).any()
            finals += 1
    envs.close()


def test_contracts_of_set_options(tmp_path: Path) -> None:
    """One for all environments, or one for each, for one reset; later episodes keep it."""
    from tandem.testing.commanded_cart import arguments, commanding, commands_of  # as in test_agents_as_rows

    limit = tandem.TaskOptions(max_episode_steps=3)
    sb3 = VecMonitor(tandem.make_vec(num_envs=_ENVS, options=limit, **arguments(tmp_path)).as_sb3())
    sb3.set_options({"contract": commanding(4)})
    assert commands_of(sb3.reset()).tolist() == [4, 4, 4]
    sb3.set_options([{"contract": commanding(1)}, {}, {"contract": commanding(3)}])
    assert commands_of(sb3.reset()).tolist() == [1, 4, 3]
    dones = 0
    for _ in range(7):
        obs, _, ends, infos = sb3.step(np.zeros((_ENVS, 1), np.float32))
        assert commands_of(obs).tolist() == [1, 4, 3]
        assert all(commands_of(each["terminal_observation"]) in (1, 3, 4) for each in infos if "episode" in each)
        dones += ends.sum()
    assert dones == 2 * _ENVS
    assert commands_of(sb3.reset()).tolist() == [1, 4, 3]
    sb3.seed(5)
    sb3.set_options({"contract": commanding(-1, 1)})
    drawn = commands_of(sb3.reset())
    assert len(set(drawn.tolist())) == _ENVS and (abs(drawn) <= 1).all()
    sb3.seed(5)
    sb3.set_options({"contract": commanding(-1, 1)})
    np.testing.assert_array_equal(commands_of(sb3.reset()), drawn)
    sb3.close()


def test_unsupported_calls_of_environments_are_refused() -> None:
    """Methods and attributes of single Python environments are refused."""
    sb3 = _ours("CartPole-v1")
    with pytest.raises(tandem.Unsupported, match="make_vec"):
        sb3.set_attr("gravity", 1)
    with pytest.raises(tandem.Unsupported, match="not Python objects"):
        sb3.env_method("render")
    assert sb3.get_attr("render_mode") == [None] * _ENVS
    assert sb3.get_attr("observation_space", [0, 2]) == [sb3.observation_space] * 2
    with pytest.raises(IndexError):
        sb3.get_attr("render_mode", _ENVS)
    assert sb3.env_is_wrapped(gymnasium.Wrapper) == [False] * _ENVS
    sb3.close()


def test_own_rewards_and_ends() -> None:
    """Rewards and dones are those of the functions, and VecMonitor has the episodes."""
    functions = {"reward": lambda step: np.ones(_ENVS), "terminated": lambda step: step.steps == 7}
    sb3 = VecMonitor(_ours("Hopper-v5", autoreset_mode="Disabled", **functions))
    agent = PPO("MlpPolicy", sb3, n_steps=64, device="cpu").learn(3 * 64)
    assert {(episode["r"], episode["l"]) for episode in agent.ep_info_buffer} == {(7.0, 7)}
    sb3.close()


def test_agents_as_rows() -> None:
    """Each agent of a ParallelEnv is an environment; its last observation is in the infos of its last step."""
    # Not at the top: workers that a wheel starts import this file, and no wheel has tandem.testing.
    from tandem.testing.parallel_envs import Tag

    sb3 = VecMonitor(tandem.pettingzoo.parallel_vec(Tag, 4, num_workers=2, autoreset_mode="NextStep").as_sb3())
    assert sb3.num_envs == 12
    sb3.seed(3)
    PPO("MlpPolicy", sb3, n_steps=16, device="cpu").learn(12 * 16)
    sb3.reset()
    steps = np.zeros(12, int)
    for _ in range(40):
        _, _, dones, infos = sb3.step(np.ones(12, int))
        steps += 1
        for row in np.flatnonzero(dones):
            if infos[row]["active"]:
                assert infos[row]["terminal_observation"][1] == steps[row] == infos[row]["episode"]["l"]
        steps[dones] = 0
    assert sb3.get_attr("possible_agents", [0, 11]) == [["red", "green", "blue"]] * 2
    assert sb3.env_method("render", indices=[4])[0].shape == (4, 4, 3)
    assert len(sb3.get_images()) == 4
    sb3.set_options({"level": 1})
    assert sb3.reset().shape == (12, 2)
    sb3.close()
