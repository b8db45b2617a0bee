"""Trains CartPole-v1 with Stable-Baselines3's PPO and its defaults; tools/publishing_cost starts it."""

from collections.abc import Callable
from typing import Any

import gymnasium
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from tests.learning import published_cartpole


def prepare(env: gymnasium.Env[Any, Any], seed: int) -> Callable[[int], object]:
    """Makes the agent, and returns the function that trains it."""
    torch.set_num_threads(1)  # networks of this size are slower on two threads
    agent = PPO("MlpPolicy", DummyVecEnv([lambda: Monitor(env)]), seed=seed, device="cpu")
    return agent.learn  # type: ignore[no-any-return]


if __name__ == "__main__":
    published_cartpole.train(prepare)
