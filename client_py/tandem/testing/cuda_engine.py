"""An engine that writes on a GPU, by the stand-in driver: each value shows the step and the environment."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

import tandem
from tandem._native import CudaArray
from tandem.serving.arrays import CudaArrays, EngineArrays
from tandem.serving.engine import Index
from tandem.testing.standin import StandIn

WIDTH = 5


def expected_obs(steps: NDArray[np.int64]) -> NDArray[np.float32]:
    """Returns float32[num_envs, WIDTH]: the observation of environments after these numbers of steps.

    Steps count modulo 10,000, so that each value is exact.
    """
    values = steps[:, None] % 10_000 * 1000 + np.arange(len(steps))[:, None] * 10 + np.arange(WIDTH)
    return values.astype(np.float32)


class CudaCounter(tandem.Engine):
    """Counts the steps of an episode.

    The first action of an environment ends its episode if it is positive. The second one makes the step raise, after it
    has written.
    """

    observation_space: spaces.Space[Any] = spaces.Box(-np.inf, np.inf, (WIDTH,))
    action_space = spaces.Box(-1, 1, (2,))
    cuda_device = 0
    cuda_image_size: tuple[int, int] | None = (4, 2)
    step_secs = 0.01

    def __init__(
        self,
        num_envs: int,
        *,
        fills_cpu: int = 1,
        own_stream: int = 1,
        step_ms: int = 0,
        fields: int = 0,
        pictures: int = 1,
    ) -> None:
        """With 0 for `own_stream` it writes on the legacy default stream; a step takes `step_ms` or more.

        With 1 for `fields` the observation is a Dict with the row, "row", and the number of steps, "steps". With 0 for
        `pictures` there are no images.
        """
        self.num_envs = num_envs
        if not pictures:
            self.cuda_image_size = None
        if fields:
            row = self.observation_space
            self.observation_space = spaces.Dict({"row": row, "steps": spaces.Box(0, 2**40, (), np.int64)})
        self.fills_cpu = bool(fills_cpu)
        self._step_secs = step_ms / 1e3
        self._own_stream = own_stream
        self._steps = np.zeros(num_envs, np.int64)
        self._gpu: StandIn | None = None
        self._stream = 0
        # Pinned, so that the device copies them later.
        self._pinned: dict[str, NDArray[Any]] = {}

    def _begin_write(self, cuda: CudaArrays) -> None:
        if self._gpu is None:
            self._gpu = StandIn()
            if self._own_stream:
                self._stream = self._gpu.stream(blocking=False)
                cuda.write_on(self._stream)
            self._pinned["obs"] = self._gpu.pinned((self.num_envs, WIDTH), np.float32)
            self._pinned["rewards"] = self._gpu.pinned((self.num_envs,), np.float32)
            self._pinned["images"] = self._gpu.pinned((self.num_envs, 2, 4, 3), np.uint8)
            self._pinned["steps"] = self._gpu.pinned((self.num_envs,), np.int64)
        self._gpu.synchronize(self._stream)  # the last copies have read the pinned arrays

    def _write(self, name: str, array: CudaArray, envs: Index, values: NDArray[Any]) -> None:
        """Copies the rows of these environments to the device, and no other row."""
        assert self._gpu is not None
        pinned = self._pinned[name]
        pinned[envs] = values[envs]
        if isinstance(envs, slice) or len(envs) == self.num_envs:
            self._gpu.write(array.pointer, pinned, self._stream)
            return
        for env in envs.tolist():
            self._gpu.write(array.pointer + env * pinned[0].nbytes, pinned[env : env + 1], self._stream)

    def reset(self, envs: NDArray[np.int64], seeds: Sequence[int | None], arrays: EngineArrays) -> None:
        """Begins to count at the seed, or at 0."""
        for env, seed in zip(envs.tolist(), seeds, strict=True):
            self._steps[env] = seed or 0
        if arrays.cuda is not None:
            self._begin_write(arrays.cuda)
        self._observe(envs, arrays)

    def step(self, envs: Index, arrays: EngineArrays) -> None:
        """Counts."""
        if self._step_secs:
            time.sleep(self._step_secs)
        self._steps[envs] += 1
        arrays.rewards[envs] = self._steps[envs]
        arrays.terminateds[envs] = arrays.actions[envs, 0] > 0
        arrays.truncateds[envs] = False
        if arrays.cuda is not None:
            self._begin_write(arrays.cuda)
            self._write("rewards", arrays.cuda.rewards, envs, self._steps)
        self._observe(envs, arrays)
        if (arrays.actions[envs, 1] > 0).any():
            raise RuntimeError("an action asks for an error")

    def _observe(self, envs: Index, arrays: EngineArrays) -> None:
        obs = expected_obs(self._steps)
        is_dict = isinstance(self.observation_space, spaces.Dict)
        if arrays.cuda is not None:
            self._write("obs", arrays.cuda.obs["row"] if is_dict else arrays.cuda.obs, envs, obs)
            if is_dict:
                self._write("steps", arrays.cuda.obs["steps"], envs, self._steps)
            if arrays.cuda.images is not None:
                shown = np.broadcast_to((self._steps % 251)[:, None, None, None], self._pinned["images"].shape)
                self._write("images", arrays.cuda.images, envs, shown)
        if self.fills_cpu and is_dict:
            arrays.obs["row"][envs], arrays.obs["steps"][envs] = obs[envs], self._steps[envs]
        elif self.fills_cpu:
            arrays.obs[envs] = obs[envs]


if __name__ == "__main__":
    tandem.serve_program(CudaCounter)
