"""An engine in Python: Gymnasium's Pendulum-v1 as a batch, with NumPy.

    python pendulum_engine.py --num_envs 64 --name demo

Then, in another program: `tandem.SharedMemoryVectorEnv(tandem.SharedMemoryClient("demo"))`. Or let a trainer start it:
`tandem.launch_engine(server="pendulum_engine.py", num_envs=64)`.
"""

import math
from collections.abc import Sequence

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

import tandem
from tandem.serving.arrays import EngineArrays
from tandem.serving.engine import Index

_STEP_SECS = 0.05
_MAX_SPEED = 8.0
_MAX_TORQUE = 2.0


class Pendulum(tandem.Engine):
    """Swings pendulums up. The angle 0 is upright; mass and length are 1."""

    task = "PythonPendulum-v1"
    observation_space = spaces.Box(np.array([-1, -1, -8], np.float32), np.array([1, 1, 8], np.float32))
    action_space = spaces.Box(-_MAX_TORQUE, _MAX_TORQUE, (1,))
    step_secs = _STEP_SECS
    observation_names = ("cos(angle)", "sin(angle)", "speed")
    action_names = ("torque",)
    joint_names = ("hinge",)

    def __init__(self, num_envs: int, *, max_episode_steps: int = 200, gravity: float = 10.0) -> None:
        """Makes the state of all environments."""
        self.num_envs = num_envs
        self.max_episode_steps = max_episode_steps
        self._gravity = gravity
        self._angle = np.zeros(num_envs)
        self._speed = np.zeros(num_envs)
        self._steps = np.zeros(num_envs, np.int64)
        self._unseeded = np.random.default_rng()
        self._random: dict[int, np.random.Generator] = {}

    def reset(self, envs: NDArray[np.int64], seeds: Sequence[int | None], arrays: EngineArrays) -> None:
        """Starts each environment at a random angle and speed."""
        for env, seed in zip(envs.tolist(), seeds, strict=True):
            if seed is not None:
                self._random[env] = np.random.default_rng(seed)
            random = self._random.get(env, self._unseeded)
            self._angle[env], self._speed[env] = random.uniform([-math.pi, -1], [math.pi, 1])
        self._steps[envs] = 0
        self._observe(envs, arrays)

    def step(self, envs: Index, arrays: EngineArrays) -> None:
        """Applies the torques for one step."""
        torque = np.clip(arrays.actions[envs, 0], -_MAX_TORQUE, _MAX_TORQUE)
        angle, speed = self._angle[envs], self._speed[envs]
        normalized = (angle + math.pi) % (2 * math.pi) - math.pi
        arrays.rewards[envs] = -(normalized**2 + 0.1 * speed**2 + 0.001 * torque**2)
        speed = speed + (1.5 * self._gravity * np.sin(angle) + 3 * torque) * _STEP_SECS
        self._speed[envs] = np.clip(speed, -_MAX_SPEED, _MAX_SPEED)
        self._angle[envs] = angle + self._speed[envs] * _STEP_SECS
        self._steps[envs] += 1
        arrays.terminateds[envs] = False
        arrays.truncateds[envs] = self._steps[envs] == self.max_episode_steps  # 0: no limit
        self._observe(envs, arrays)

    def _observe(self, envs: Index, arrays: EngineArrays) -> None:
        arrays.obs[envs, 0] = np.cos(self._angle[envs])
        arrays.obs[envs, 1] = np.sin(self._angle[envs])
        arrays.obs[envs, 2] = self._speed[envs]

    def joints(self, env: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns angle and speed, for the services mujoco and telemetry."""
        return self._angle[env : env + 1], self._speed[env : env + 1]

    def render(self, env: int, camera: str, width: int, height: int) -> NDArray[np.uint8]:
        """Returns an image of the rod, for the services camera and viewport."""
        size = min(width, height)
        x = (np.arange(width) - width / 2) * 2.4 / size
        y = (height / 2 - np.arange(height)[:, None]) * 2.4 / size
        along = x * math.sin(self._angle[env]) + y * math.cos(self._angle[env])
        across = x * math.cos(self._angle[env]) - y * math.sin(self._angle[env])
        image = np.full((height, width, 3), 255, np.uint8)
        image[(along >= 0) & (along <= 1) & (np.abs(across) <= 0.1)] = (204, 77, 77)
        return image


if __name__ == "__main__":
    tandem.serve_program(Pendulum)
