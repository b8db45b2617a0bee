"""Tianshou: `tandem.tianshou.SubprocVectorEnv` in place of its own."""

import io
import json
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from tianshou.algorithm.modelfree.reinforce import ProbabilisticActorPolicy
from tianshou.data import AsyncCollector, Batch, Collector, VectorReplayBuffer
from tianshou.env import BaseVectorEnv, DummyVectorEnv
from torch.distributions import Categorical

import tandem
from tandem.telemetry import EventWriter
from tandem.telemetry.tianshou import Logger
from tandem.testing.commanded_cart import arguments, commanding, commands_of
from tandem.tianshou import SubprocVectorEnv, VectorEnv

_ENVS = 4
_FAILS = 13
_MAKE: Callable[[], gymnasium.Env[Any, Any]] = lambda: gymnasium.make("CartPole-v1")  # noqa: E731, pickled


class _Waits(gymnasium.Env[Any, Any]):
    """Takes as many milliseconds for a step as the action says; its observation is a dict."""

    observation_space = spaces.Dict({"steps": spaces.Box(0, 1e6, (1,), np.float32), "kind": spaces.Discrete(3)})
    action_space = spaces.Discrete(1000)

    def __init__(self) -> None:
        self.steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.steps = 0
        return self._obs(), {"options": str(options)}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if action == _FAILS:
            raise ValueError("a fault")
        time.sleep(action / 1e3)
        self.steps += 1
        return self._obs(), float(action), self.steps == 5, False, {"steps": self.steps}

    def _obs(self) -> dict[str, Any]:
        return {"steps": np.full(1, self.steps, np.float32), "kind": self.steps % 3}


def test_results_equal_dummy_vector_envs() -> None:
    """Results of all and of some environments, with resets of those whose episodes end, and seeds."""
    results = []
    for make in (DummyVectorEnv, SubprocVectorEnv):
        with closing(make([_MAKE] * _ENVS)) as envs:
            assert isinstance(envs, BaseVectorEnv) and len(envs) == _ENVS
            found: list[Any] = [envs.reset(seed=3), envs.action_space, envs.get_env_attr("gravity", 2)]
            envs.set_env_attr("gravity", 9.0, [1])
            found.append(envs.get_env_attr("gravity"))
            for step in range(60):
                ids = np.array([[0, 1, 2, 3], [3, 1], [2]][step % 3])
                found.append(envs.step(np.full(len(ids), step % 2), ids))
                ended = ids[found[-1][2] | found[-1][3]]
                if len(ended):
                    found.append(envs.reset(ended))
            found += [envs.seed(7), envs.step(np.zeros(_ENVS, int))]
            results.append(found)
    _assert_same(results[1], results[0])


def _assert_same(found: Any, expected: Any) -> None:
    if isinstance(expected, (list, tuple)):
        for one, other in zip(found, expected, strict=True):
            _assert_same(one, other)
    elif isinstance(expected, np.ndarray) and expected.dtype == object:
        _assert_same(list(found), list(expected))
    elif isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    else:
        assert found == expected


def test_waits_for_some() -> None:
    """With wait_num a step returns the environments that are ready; resets are legal while others are in a step."""
    with closing(SubprocVectorEnv([_Waits] * _ENVS, wait_num=2)) as envs:
        obs, infos = envs.reset(options={"x": 1})
        assert [each["options"] for each in infos] == ["{'x': 1}"] * _ENVS
        assert obs.dtype == object and obs[0]["steps"] == 0 and obs[0]["kind"] == 0
        obs, rewards, terminated, _, infos = envs.step(np.array([900, 0, 900, 0]))
        assert sorted(each["env_id"] for each in infos) == [1, 3]
        with pytest.raises(AssertionError):
            envs.step(np.zeros(1, int), [0])  # Tianshou's own check
        for _ in range(4):
            obs, rewards, terminated, _, infos = envs.step(np.zeros(2, int), [1, 3])
            assert sorted(each["env_id"] for each in infos) == [1, 3]
        assert terminated.tolist() == [True, True]
        obs, infos = envs.reset([3, 1], seed=4, options={"level": 2})
        assert [each["steps"].item() for each in obs] == [0, 0]
        assert [each["options"] for each in infos] == ["{'level': 2}"] * 2
        obs, rewards, _, _, infos = envs.step(None)
        assert sorted(each["env_id"] for each in infos) == [0, 2] and rewards.tolist() == [900.0, 900.0]


def test_failures_beside_steps() -> None:
    """The environment that failed can be reset while another is in a step."""
    with closing(SubprocVectorEnv([_Waits] * 3, wait_num=1)) as envs:
        envs.reset()
        with pytest.raises(tandem.EnvFailed, match="a fault"):
            envs.step(np.array([900, _FAILS]), [0, 1])
        _, rewards, terminated, truncated, infos = envs.step(None)
        assert [(each["env_id"], each["env_failed"]) for each in infos] == [(1, True)]
        assert (rewards.item(), terminated.item(), truncated.item()) == (0, False, True)
        obs, _ = envs.reset([1])
        assert obs[0]["steps"] == 0
        assert [each["env_id"] for each in envs.step(np.zeros(1, int), [1])[4]] == [1]
        assert [each["env_id"] for each in envs.step(None)[4]] == [0]
        with pytest.raises(tandem.NoStepPending, match="found none"):
            envs.step(None)


def test_seed_drops_steps() -> None:
    """All environments are then ready, as after a reset."""
    with closing(SubprocVectorEnv([_Waits] * 2, wait_num=1)) as envs:
        envs.reset()
        assert [each["env_id"] for each in envs.step(np.array([900, 0]))[4]] == [1]
        envs.seed(3)
        assert [each["steps"].item() for each in envs.reset()[0]] == [0, 0]
        assert [each["env_id"] for each in envs.step(np.array([900, 0]))[4]] == [1]


def test_waits_for_a_time() -> None:
    """With timeout a step returns at least one environment."""
    with closing(SubprocVectorEnv([_Waits] * _ENVS, timeout=0.1)) as envs:
        envs.reset()
        infos = envs.step(np.array([0, 2000, 2000, 400]))[4]
        assert [each["env_id"] for each in infos] == [0]
        infos = envs.step(None)[4]
        assert [each["env_id"] for each in infos] == [3]


def test_one_worker_for_each_environment_that_may_be_late() -> None:
    """Another number of workers is refused."""
    with pytest.raises(tandem.InvalidArgument, match="num_workers: expected 4, one for each environment"):
        SubprocVectorEnv([_MAKE] * _ENVS, wait_num=2, num_workers=2)


def test_contracts_by_the_options_of_a_reset(tmp_path: Path) -> None:
    """Also where Tianshou resets environments whose episodes have ended."""
    limit = tandem.TaskOptions(max_episode_steps=2)
    carts = tandem.make_vec(num_envs=3, autoreset_mode="Disabled", options=limit, **arguments(tmp_path))
    with closing(VectorEnv(carts)) as envs:
        obs, _ = envs.reset(options={"contract": [commanding(1), commanding(2), commanding(3)]})
        assert commands_of(obs).tolist() == [1, 2, 3]
        obs, _ = envs.reset([2, 0], options={"contract": commanding(4)})
        assert commands_of(obs).tolist() == [4, 4]
        for _ in range(2):
            obs, _, _, truncated, _ = envs.step(np.zeros((3, 1)))
        assert commands_of(obs).tolist() == [4, 2, 4] and truncated.all()
        assert commands_of(envs.reset([1])[0]).tolist() == [2]


class _Actor(torch.nn.Module):
    """Prefers one of two actions."""

    def __init__(self) -> None:
        super().__init__()
        self._layer = torch.nn.Linear(4, 2)

    def forward(self, obs: Any, state: Any = None, info: Any = None) -> tuple[Any, Any]:
        return torch.softmax(self._layer(torch.as_tensor(obs, dtype=torch.float32)), -1), state


class _Policy(ProbabilisticActorPolicy):
    """Keeps something of each step, and has a state: Tianshou 2.0.1's AsyncCollector fails with other policies."""

    def forward(self, batch: Any, state: Any = None, **options: Any) -> Any:
        result: Any = super().forward(batch, state, **options)
        result.policy = Batch(kept=np.zeros(len(result.act)))
        result.state = np.zeros((len(result.act), 1))
        return result


_SYNC_OR_ASYNC = pytest.mark.parametrize("options", [{}, {"wait_num": 2}], ids=["all", "some"])


def _collector(envs: SubprocVectorEnv) -> Collector[Any]:
    policy = _Policy(actor=_Actor(), dist_fn=Categorical, action_space=spaces.Discrete(2), action_scaling=False)
    collector: Any = AsyncCollector if envs.is_async else Collector
    return collector(policy, envs, VectorReplayBuffer(4000, _ENVS))


@_SYNC_OR_ASYNC
def test_collectors(options: dict[str, Any]) -> None:
    """They collect whole episodes of a policy."""
    with closing(SubprocVectorEnv([_MAKE] * _ENVS, **options)) as envs:
        collector = _collector(envs)
        collector.reset()
        stats = collector.collect(n_step=400)
        assert stats.n_collected_steps >= 400 and stats.n_collected_episodes > 4
        assert len(collector.buffer) == stats.n_collected_steps
        batch: Any = collector.buffer[:]
        assert np.isfinite(batch.obs).all() and batch.terminated.sum() == stats.n_collected_episodes


@_SYNC_OR_ASYNC
def test_logged_episodes_have_the_steps_of_all_their_collections(options: dict[str, Any]) -> None:
    """Also after updates, which empty the buffer. An evaluation between two collections has no event."""
    out = io.StringIO()
    with closing(SubprocVectorEnv([_MAKE] * _ENVS, **options)) as envs:
        collector = _collector(envs)
        logger = Logger(collector, EventWriter(out))
        logged = 0
        for number in range(12):
            if number % 6 == 0:
                collector.reset()
                collector.collect(n_step=50)  # as an evaluation
                collector.reset()
            stats = collector.collect(n_step=10 * _ENVS)
            logger.log_training_data(asdict(stats), number)
            collector.reset_buffer(keep_statistics=True)
            logged += stats.n_collected_episodes
    episodes = [json.loads(line) for line in out.getvalue().splitlines() if '"episode"' in line]
    assert [episode["episode"] for episode in episodes] == list(range(logged)) and logged > 8
    assert max(episode["steps"] for episode in episodes) > 10
    for episode in episodes:
        assert episode["total_reward"] == episode["steps"] and episode["terminated"]
