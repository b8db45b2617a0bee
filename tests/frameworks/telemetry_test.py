"""Trainings of Stable-Baselines3 print their episodes and numbers; run by `tools/test --with torch`."""

import io
import json
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

import tandem
from tandem.telemetry import EventWriter
from tandem.telemetry.sb3 import Callback, RecordEpisodes

_ENVS = 4


def _events(out: io.StringIO) -> list[Any]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("kind", [PPO, DQN])
def test_callback_prints_episodes_and_numbers(kind: Any, normalized: bool) -> None:
    """A step of CartPole rewards 1, whatever VecNormalize makes of it; the numbers are those of SB3's logger."""
    out = io.StringIO()
    with closing(VecMonitor(tandem.make_vec("CartPole-v1", _ENVS).as_sb3())) as envs:
        training = VecNormalize(envs) if normalized else envs
        model = kind("MlpPolicy", training, seed=1, device="cpu")
        if kind is PPO:
            model.n_steps = 64
            model._setup_model()
        model.learn(1500, callback=Callback(EventWriter(out, run_id="x")), log_interval=1)
        returns = [episode["r"] for episode in model.ep_info_buffer]
    events = _events(out)
    assert events[0]["event"] == "run_started"
    assert events[0]["payload"] == {"algo": kind.__name__, "num_envs": _ENVS, "seed": 1}
    episodes = [event for event in events if event.get("event_type") == "episode"]
    assert [episode["total_reward"] for episode in episodes][-len(returns) :] == returns
    assert all(episode["total_reward"] == episode["steps"] for episode in episodes)
    scalars = [event for event in events if event.get("event_type") == "scalars"]
    assert {"rollout/ep_rew_mean", "time/total_timesteps"} <= {name for each in scalars for name in each["scalars"]}
    assert all(each["step"] == each["scalars"]["time/total_timesteps"] for each in scalars)


def test_evaluations_are_numbers() -> None:
    """Those of SB3's EvalCallback, beside ours, in either order."""
    out = io.StringIO()
    with closing(tandem.make_vec("CartPole-v1", _ENVS).as_sb3()) as envs:
        with closing(VecMonitor(tandem.make_vec("CartPole-v1", 1).as_sb3())) as others:
            evaluation = EvalCallback(others, eval_freq=64, n_eval_episodes=1, verbose=0)
            model = PPO("MlpPolicy", envs, n_steps=64, n_epochs=1, device="cpu")
            events = EventWriter(out)
            model.learn(600, callback=[evaluation, Callback(events)])
            model.learn(600, callback=[Callback(events), evaluation], reset_num_timesteps=False)
    printed = _events(out)
    names = {name for event in printed if event.get("event_type") == "scalars" for name in event["scalars"]}
    assert "eval/mean_reward" in names
    # The run ends with the program (tracking_test).
    assert [event["event"] for event in printed if "event" in event] == ["run_started", "training_started"]


def test_recorder_around_a_vec_env() -> None:
    """Its results are the environments' own; each episode has an event."""
    out = io.StringIO()
    with closing(tandem.make_vec("CartPole-v1", _ENVS).as_sb3()) as envs:
        recorded = RecordEpisodes(envs, EventWriter(out))
        recorded.seed(3)
        recorded.reset()
        ended = 0
        for _ in range(200):
            _, rewards, dones, infos = recorded.step(np.array([recorded.action_space.sample() for _ in range(_ENVS)]))
            assert len(infos) == _ENVS and (rewards == 1).all()
            ended += int(dones.sum())
    events = _events(out)
    assert len(events) == ended > 10
    assert sum(event["steps"] for event in events) <= 200 * _ENVS
    assert sorted(event["episode"] for event in events)[0] == 0
