"""A MuJoCo engine in Python: HalfCheetah as a batch, stepped by the threads of `mujoco.rollout`.

    python mujoco_engine.py --num_envs 64 --name demo
    python mujoco_engine.py --num_envs 64 --num_threads 8 --frame_skip 10

It needs `pip install mujoco gymnasium[mujoco]`, for the model. `warp_engine.py` simulates the same on a GPU.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import gymnasium
import mujoco
import numpy as np
from gymnasium import spaces
from mujoco import rollout
from numpy.typing import NDArray

import tandem
from tandem.serving.arrays import EngineArrays
from tandem.serving.engine import Actuator, Index

_MODEL = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / "half_cheetah.xml"
_RESET_NOISE = 0.1
_CONTROL_COST = 0.1


class HalfCheetah(tandem.Engine):
    """Runs cheetahs. Observations and rewards are those of Gymnasium's HalfCheetah-v5."""

    task = "PythonHalfCheetah-v5"
    info_sizes = {"x_position": None, "x_velocity": None}  # noqa: RUF012, never changed

    def __init__(
        self, num_envs: int, *, max_episode_steps: int = 1000, frame_skip: int = 5, num_threads: int = 0
    ) -> None:
        """Loads the model; `num_threads`: 0: as many as cores."""
        self.num_envs = num_envs
        self.max_episode_steps = max_episode_steps
        self._frame_skip = frame_skip
        self._model = model = mujoco.MjModel.from_xml_path(str(_MODEL))
        self._datas = [mujoco.MjData(model) for _ in range(num_threads or len(os.sched_getaffinity(0)))]
        self._pool = rollout.Rollout(nthread=len(self._datas))
        self._positions = slice(1, 1 + model.nq)  # of a state, after the time
        self._velocities = slice(1 + model.nq, 1 + model.nq + model.nv)
        kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
        self._initial = np.zeros(mujoco.mj_stateSize(model, kind))
        mujoco.mj_getState(model, self._datas[0], self._initial, kind)
        self._states = np.tile(self._initial, (num_envs, 1))
        self._controls: NDArray[np.float64] = np.zeros((num_envs, model.nu))
        self._steps = np.zeros(num_envs, np.int64)
        self._random = [np.random.default_rng() for _ in range(num_envs)]
        self.step_secs = float(model.opt.timestep * frame_skip)
        low, high = model.actuator_ctrlrange.T.astype(np.float32)
        self.action_space = spaces.Box(low, high)
        self.observation_space = spaces.Box(-np.inf, np.inf, (model.nq - 1 + model.nv,))
        self.joint_names = [model.joint(each).name for each in range(model.njnt)]
        self.actuators = [Actuator(model.actuator(each).name, low[each], high[each]) for each in range(model.nu)]

    def reset(self, envs: NDArray[np.int64], seeds: Sequence[int | None], arrays: EngineArrays) -> None:
        """Puts each cheetah near its initial state."""
        for env, seed in zip(envs.tolist(), seeds, strict=True):
            if seed is not None:
                self._random[env] = np.random.default_rng(seed)
            state, random = self._states[env], self._random[env]
            state[:] = self._initial
            state[self._positions] += random.uniform(-_RESET_NOISE, _RESET_NOISE, self._model.nq)
            state[self._velocities] += _RESET_NOISE * random.standard_normal(self._model.nv)
        self._controls[envs] = 0
        self._steps[envs] = 0
        arrays.infos["x_position"][envs] = self._states[envs, 1]
        arrays.infos["x_velocity"][envs] = 0
        self._observe(envs, arrays)

    def step(self, envs: Index, arrays: EngineArrays) -> None:
        """Simulates `frame_skip` steps of the model, with constant controls."""
        controls = np.nan_to_num(arrays.actions[envs]).astype(np.float64)
        before = self._states[envs]
        self._controls[envs] = controls
        states, _ = self._pool.rollout(
            self._model, self._datas, before, np.repeat(controls[:, None], self._frame_skip, axis=1)
        )
        velocity = (states[:, -1, 1] - before[:, 1]) / self.step_secs
        self._states[envs] = states[:, -1]
        self._steps[envs] += 1
        arrays.rewards[envs] = velocity - _CONTROL_COST * np.square(controls).sum(axis=1)
        arrays.terminateds[envs] = False
        arrays.truncateds[envs] = self._steps[envs] == self.max_episode_steps  # 0: no limit
        arrays.infos["x_position"][envs] = self._states[envs, 1]
        arrays.infos["x_velocity"][envs] = velocity
        self._observe(envs, arrays)

    def _observe(self, envs: Index, arrays: EngineArrays) -> None:
        # Without the first position: an observation does not show how far the cheetah is.
        arrays.obs[envs] = self._states[envs, 2 : self._velocities.stop]

    def joints(self, env: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns qpos and qvel, for the services mujoco and telemetry."""
        return self._states[env, self._positions], self._states[env, self._velocities]

    def controls(self, env: int) -> NDArray[np.float64]:
        """Returns the last step's controls."""
        return np.copy(self._controls[env])


if __name__ == "__main__":
    tandem.serve_program(HalfCheetah)
