"""A MuJoCo Warp engine in Python: HalfCheetah as a batch, on a GPU or on the CPU.

    python warp_engine.py --num_envs 4096 --name demo

It needs `pip install mujoco-warp gymnasium[mujoco]`, the latter for the model. The first start compiles MuJoCo Warp's
kernels, which takes half a minute or more; later ones read them from Warp's cache. So `tandem.launch_engine` needs a
longer `timeout`. States are float32, unlike those of MuJoCo itself.

On a GPU a kernel writes the observations into the memory that a trainer's `client.obs_cuda` shows, without a copy; with
`--fills_cpu=0` only there. Not yet run on a device.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import mujoco_warp
import numpy as np
import warp
from gymnasium import spaces
from numpy.typing import NDArray

import tandem
from tandem.serving.arrays import CudaArrays, EngineArrays
from tandem.serving.engine import Actuator, Index

_MODEL = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / "half_cheetah.xml"
_RESET_NOISE = 0.1
_CONTROL_COST = 0.1
_STATE = ("qpos", "qvel", "qacc_warmstart")  # the solver starts from the last accelerations


def _write_obs(
    qpos: warp.array2d(dtype=float),  # type: ignore[valid-type]
    qvel: warp.array2d(dtype=float),  # type: ignore[valid-type]
    obs: warp.array2d(dtype=float),  # type: ignore[valid-type]
) -> None:
    env, column = warp.tid()
    positions = qpos.shape[1] - 1
    if column < positions:
        obs[env, column] = qpos[env, column + 1]
    else:
        obs[env, column] = qvel[env, column - positions]


_observe_kernel = warp.kernel(_write_obs)


class HalfCheetah(tandem.Engine):
    """Runs cheetahs. Observations and rewards are those of Gymnasium's HalfCheetah-v5."""

    task = "WarpHalfCheetah-v5"
    info_sizes = {"x_position": None, "x_velocity": None}  # noqa: RUF012, never changed

    def __init__(
        self, num_envs: int, *, max_episode_steps: int = 1000, frame_skip: int = 5, fills_cpu: int = 1
    ) -> None:
        """Loads the model, and compiles the kernels by a first step."""
        self.num_envs = num_envs
        device = warp.get_device()
        if device.is_cuda:
            self.cuda_device = device.ordinal
        self.fills_cpu = bool(fills_cpu) or not device.is_cuda
        self._gpu_obs: Any = None
        self.max_episode_steps = max_episode_steps
        self._frame_skip = frame_skip
        model = mujoco.MjModel.from_xml_path(str(_MODEL))
        self._model = mujoco_warp.put_model(model)
        self._data = mujoco_warp.make_data(model, nworld=num_envs)
        # The states of all environments, float32[num_envs, ...], in this process's memory.
        self._state: dict[str, NDArray[np.float32]] = {name: self._of_device(name).copy() for name in _STATE}
        self._initial = {name: values[0].copy() for name, values in self._state.items()}
        self._is_on_device = False
        self._controls: NDArray[np.float32] = np.zeros((num_envs, model.nu), np.float32)
        self._graph: Any = None
        self._simulate()
        if warp.get_device().is_cuda:  # then a step is one launch
            with warp.ScopedCapture() as capture:
                self._simulate()
            self._graph = capture.graph
        self._steps = np.zeros(num_envs, np.int64)
        self._random = [np.random.default_rng() for _ in range(num_envs)]
        self.step_secs = float(model.opt.timestep * frame_skip)
        low, high = model.actuator_ctrlrange.T.astype(np.float32)
        self.action_space = spaces.Box(low, high)
        self.observation_space = spaces.Box(-np.inf, np.inf, (model.nq - 1 + model.nv,))
        self.joint_names = [model.joint(each).name for each in range(model.njnt)]
        self.actuators = [Actuator(model.actuator(each).name, low[each], high[each]) for each in range(model.nu)]

    def _of_device(self, name: str) -> NDArray[np.float32]:
        """Returns an array of the simulation: on the CPU the array itself, else a copy."""
        values: NDArray[np.float32] = getattr(self._data, name).numpy()
        return values

    def _simulate(self) -> None:
        for _ in range(self._frame_skip):
            mujoco_warp.step(self._model, self._data)

    def reset(self, envs: NDArray[np.int64], seeds: Sequence[int | None], arrays: EngineArrays) -> None:
        """Puts each cheetah near its initial state."""
        state = self._state
        for env, seed in zip(envs.tolist(), seeds, strict=True):
            if seed is not None:
                self._random[env] = np.random.default_rng(seed)
            random, positions = self._random[env], self._initial["qpos"]
            state["qpos"][env] = positions + random.uniform(-_RESET_NOISE, _RESET_NOISE, positions.shape)
            state["qvel"][env] = _RESET_NOISE * random.standard_normal(self._initial["qvel"].shape)
            state["qacc_warmstart"][env] = 0
        self._is_on_device = False
        self._controls[envs] = 0
        self._steps[envs] = 0
        arrays.infos["x_position"][envs] = state["qpos"][envs, 0]
        arrays.infos["x_velocity"][envs] = 0
        self._observe(envs, arrays)

    def step(self, envs: Index, arrays: EngineArrays) -> None:
        """Simulates `frame_skip` steps of all environments, and keeps the results of those that are asked for."""
        self._controls[envs] = np.nan_to_num(arrays.actions[envs])
        before = self._state["qpos"][envs, 0].astype(np.float64)
        if not self._is_on_device:
            for name in _STATE:
                getattr(self._data, name).assign(self._state[name])
        self._data.ctrl.assign(self._controls)
        if self._graph is None:
            self._simulate()
        else:
            warp.capture_launch(self._graph)
        for name in _STATE:
            self._state[name][envs] = self._of_device(name)[envs]
        self._is_on_device = isinstance(envs, slice)  # then these are all
        position = self._state["qpos"][envs, 0]
        velocity = (position - before) / self.step_secs
        self._steps[envs] += 1
        arrays.rewards[envs] = velocity - _CONTROL_COST * np.square(self._controls[envs]).sum(axis=1)
        arrays.terminateds[envs] = False
        arrays.truncateds[envs] = self._steps[envs] == self.max_episode_steps  # 0: no limit
        arrays.infos["x_position"][envs] = position
        arrays.infos["x_velocity"][envs] = velocity
        self._observe(envs, arrays)

    def _observe_on_gpu(self, cuda: CudaArrays, rewards: NDArray[np.float32]) -> None:
        """Writes the observations of all environments, which are the same as before where nothing has changed."""
        if self._gpu_obs is None:
            self._gpu_obs, self._gpu_rewards = _of_memory(cuda.obs), _of_memory(cuda.rewards)
            if warp.get_device().is_cuda:
                cuda.write_on(warp.get_stream().cuda_stream)
        if not self._is_on_device:
            for name in _STATE:
                getattr(self._data, name).assign(self._state[name])
            self._is_on_device = True
        warp.launch(
            _observe_kernel, dim=self._gpu_obs.shape, inputs=[self._data.qpos, self._data.qvel], outputs=[self._gpu_obs]
        )
        self._gpu_rewards.assign(rewards)

    def _observe(self, envs: Index, arrays: EngineArrays) -> None:
        # Without the first position: an observation does not show how far the cheetah is.
        if arrays.cuda is not None:
            self._observe_on_gpu(arrays.cuda, arrays.rewards)
        if not self.fills_cpu:
            return
        positions = self._state["qpos"].shape[1] - 1
        arrays.obs[envs, :positions] = self._state["qpos"][envs, 1:]
        arrays.obs[envs, positions:] = self._state["qvel"][envs]

    def joints(self, env: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns qpos and qvel, for the services mujoco and telemetry."""
        return self._state["qpos"][env].astype(np.float64), self._state["qvel"][env].astype(np.float64)

    def controls(self, env: int) -> NDArray[np.float64]:
        """Returns the last step's controls."""
        return np.array(self._controls[env], np.float64)


def _of_memory(array: Any) -> Any:
    """Returns a Warp array of an array that the host has allocated, without a copy."""
    return warp.array(ptr=array.pointer, shape=array.shape, dtype=warp.float32, device=warp.get_device())


if __name__ == "__main__":
    tandem.serve_program(HalfCheetah)
