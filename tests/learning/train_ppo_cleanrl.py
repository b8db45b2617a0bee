"""Runs client_py/examples/train_ppo_cleanrl.py with Tandem or SyncVectorEnv; tools/learning starts it."""

import functools
from typing import Any

import gymnasium
from gymnasium.vector import SyncVectorEnv, VectorEnv, VectorWrapper
from gymnasium.wrappers import vector as wrappers

from examples import train_ppo_cleanrl
from tests.learning.curve import Curve, as_float32, run


class Recorder(VectorWrapper):
    """Fills in a curve during the steps."""

    def __init__(self, envs: VectorEnv, curve: Curve) -> None:
        """Wraps environments that have episode statistics."""
        super().__init__(envs)
        self.curve = curve

    def step(self, actions: Any) -> Any:
        """Steps the environments, and records ended episodes."""
        with self.curve.stepping():
            results = self.env.step(actions)
        self.curve.steps += self.num_envs
        infos = results[4]
        if "episode" in infos:
            for value in infos["episode"]["r"][infos["_episode"]]:
                self.curve.add_episode(float(value))
        return results


def _make(curve: Curve) -> VectorEnv:
    envs: VectorEnv
    if curve.vector == "tandem":
        envs = train_ppo_cleanrl.make(curve.task, curve.num_envs, curve.backend)
    elif curve.task.startswith("ALE/"):
        envs = SyncVectorEnv([functools.partial(train_ppo_cleanrl.atari, curve.task)] * curve.num_envs)
    else:
        envs = gymnasium.make_vec(curve.task, curve.num_envs, vectorization_mode="sync")
    if curve.float64:
        return envs
    return wrappers.TransformReward(wrappers.TransformObservation(envs, as_float32), as_float32)


def train(curve: Curve) -> None:
    """Trains, and fills in the curve."""
    envs = Recorder(train_ppo_cleanrl.wrap(_make(curve)), curve)
    try:
        train_ppo_cleanrl.train(envs, curve.asked_steps, curve.seed)
    finally:
        envs.close()


if __name__ == "__main__":
    run(train)
