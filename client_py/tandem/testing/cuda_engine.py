"""An engine that writes on a GPU, by the stand-in driver: each value shows the step and the environment."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

import tandem
from tandem.serving.arrays import EngineArrays
from tandem.serving.engine import Index
from tandem.testing.standin import StandIn

WIDTH = 5


def expected_obs(steps: NDArray[np.int64]) -> NDArray[np.float32]:
    """Returns float32[num_envs, WIDTH]: the observation of environments after these numbers of steps."""
    return (steps[:, None] * 1000 + np.arange(len(steps))[:, None] * 10 + np.arange(WIDTH)).astype(np.float32)


class CudaCounter(tandem.Engine):
    """Counts the steps of an episode. The first action of an environment ends its episode if it is positive."""

    observation_space: spaces.Space[Any] = spaces.Box(-np.inf, np.inf, (WIDTH,))
    action_space = spaces.Box(-1, 1, (2,))
    cuda_device = 0
    cuda_image_size = (4, 2)
    step_secs = 0.01

    def __init__(self, num_envs: int, *, fills_cpu: int = 1, own_stream: int = 1, step_ms: int = 0) -> None:
        """With 0 for `own_stream` it writes on the legacy default stream; a step takes `step_ms` or more."""
        self.num_envs = num_envs
        self.fills_cpu = bool(fills_cpu)
        self._step_secs = step_ms / 1e3
        self._own_stream = own_stream
        self._steps = np.zeros(num_envs, np.int64)
        self._gpu: StandIn | None = None
        self._stream = 0
        # Pinned, so that the device copies them later.
        self._obs = np.zeros((num_envs, WIDTH), np.float32)
        self._rewards = np.zeros(num_envs, np.float32)
        self._images = np.zeros((num_envs, 2, 4, 3), np.uint8)

    def _write(self, arrays: EngineArrays) -> None:
        if arrays.cuda is None:
            return
        if self._gpu is None:
            self._gpu = StandIn()
            for array in (self._obs, self._rewards, self._images):
                self._gpu.pin(array)
            if self._own_stream:
                self._stream = self._gpu.stream(blocking=False)
                arrays.cuda.write_on(self._stream)
        self._gpu.synchronize(self._stream)  # the last copies have read the pinned arrays
        self._obs[:] = expected_obs(self._steps)
        self._rewards[:] = self._steps
        self._images[:] = (self._steps % 251)[:, None, None, None]
        assert arrays.cuda.images is not None
        self._gpu.write(arrays.cuda.obs.pointer, self._obs, self._stream)
        self._gpu.write(arrays.cuda.rewards.pointer, self._rewards, self._stream)
        self._gpu.write(arrays.cuda.images.pointer, self._images, self._stream)

    def reset(self, envs: NDArray[np.int64], seeds: Sequence[int | None], arrays: EngineArrays) -> None:
        """Begins to count at the seed, or at 0."""
        for env, seed in zip(envs.tolist(), seeds, strict=True):
            self._steps[env] = seed or 0
        self._finish(envs, arrays)

    def step(self, envs: Index, arrays: EngineArrays) -> None:
        """Counts."""
        time.sleep(self._step_secs)
        self._steps[envs] += 1
        arrays.rewards[envs] = self._steps[envs]
        arrays.terminateds[envs] = arrays.actions[envs, 0] > 0
        arrays.truncateds[envs] = False
        self._finish(envs, arrays)

    def _finish(self, envs: Index, arrays: EngineArrays) -> None:
        self._write(arrays)
        if self.fills_cpu:
            arrays.obs[envs] = expected_obs(self._steps)[envs]


if __name__ == "__main__":
    CudaCounter.main()
