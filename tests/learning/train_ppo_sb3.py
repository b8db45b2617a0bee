"""Runs client_py/examples/train_ppo_sb3.py with Tandem or SB3's DummyVecEnv; tools/learning starts it."""

from typing import Any

import gymnasium
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecEnvWrapper

import tandem
from examples import train_ppo_sb3
from tests.learning.curve import Curve, as_float32, run


class Stopwatch(VecEnvWrapper):
    """Measures the time in the environments."""

    def __init__(self, envs: VecEnv, curve: Curve) -> None:
        """Wraps environments."""
        super().__init__(envs)
        self.curve = curve

    def reset(self) -> Any:
        """Resets all environments."""
        return self.venv.reset()

    def step_async(self, actions: Any) -> None:
        """Begins a step."""
        with self.curve.stepping():
            self.venv.step_async(actions)

    def step_wait(self) -> Any:
        """Ends the step."""
        with self.curve.stepping():
            return self.venv.step_wait()


class Recorder(BaseCallback):
    """Records the episodes of a curve."""

    def __init__(self, curve: Curve) -> None:
        """Sets the curve."""
        super().__init__()
        self.curve = curve

    def _on_step(self) -> bool:
        self.curve.steps = self.num_timesteps
        for info in self.locals["infos"]:
            if "episode" in info:
                self.curve.add_episode(float(info["episode"]["r"]))
        return True


def _make(curve: Curve) -> VecEnv:
    if curve.vector == "tandem":
        return tandem.make_vec(curve.task, curve.num_envs, backend=curve.backend).as_sb3()

    def make_one() -> gymnasium.Env[Any, Any]:
        env = gymnasium.make(curve.task)
        return env if curve.float64 else gymnasium.wrappers.TransformObservation(env, as_float32, env.observation_space)

    return DummyVecEnv([make_one] * curve.num_envs)  # DummyVecEnv itself rounds rewards


def train(curve: Curve) -> None:
    """Trains, and fills in the curve."""
    envs = Stopwatch(_make(curve), curve)
    try:
        train_ppo_sb3.train(envs, curve.asked_steps, curve.seed, Recorder(curve))
    finally:
        envs.close()


if __name__ == "__main__":
    run(train)
