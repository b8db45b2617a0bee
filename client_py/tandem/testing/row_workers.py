"""`RowWorkers`: a vector environment whose workers are objects of this process, each with an EnvRows over some rows."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from tandem import _native
from tandem.spaces.batch_parts import Objects
from tandem.spaces.batches import Actions, Observations
from tandem.spaces.fields import layout
from tandem.workers.env_failures import failure
from tandem.workers.infos import InfoArea, VectorInfos
from tandem.workers.row_arrays import RowArrays

Env = gymnasium.Env[Any, Any]
Failure = tuple[int, BaseException, str]

STEP, RESET_ONLY = 0, 1
RESET, SEEDED, SKIP = 1, 2, 4


class Stop(BaseException):
    """What a worker's signal handler raises."""


class RowWorkers:
    """Does what a trainer and its worker processes do, without processes: their arrays are the same.

    Attributes:
      arrays: Results and flags of all environments.
      observations, final_observations, actions: Of all environments.
      current: uint32[num_workers], the environment in work.
      workers: The EnvRows.
      failures: Of the last exchange: (environment, exception, text).
    """

    def __init__(
        self,
        envs: Sequence[Env],
        autoreset_mode: AutoresetMode = AutoresetMode.NEXT_STEP,
        num_workers: int = 2,
        info_bytes: int = 2**17,
        info_areas: Sequence[NDArray[np.uint8]] | None = None,
    ) -> None:
        """Takes the environments and makes the arrays; `info_areas` are those of earlier workers."""
        self.envs = list(envs)
        self.autoreset_mode = autoreset_mode
        num_envs = self.num_envs = len(self.envs)
        observation_space, action_space = self.envs[0].observation_space, self.envs[0].action_space
        obs, obs_objects = _arrays(observation_space, num_envs)
        final, final_objects = _arrays(observation_space, num_envs)
        act, act_objects = _arrays(action_space, num_envs)
        self.arrays = RowArrays.zeros(num_envs)
        self.observations = Observations(observation_space, num_envs, obs, obs_objects)
        self.final_observations = Observations(observation_space, num_envs, final, final_objects)
        self.actions = Actions(action_space, num_envs, act, act_objects)
        self.current = np.zeros(num_workers, np.uint32)
        self.workers = []
        self.failures: list[Failure] = []
        areas = []
        bounds = np.linspace(0, num_envs, num_workers + 1).astype(int)
        for worker, (first, end) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
            rows = slice(first, end)
            area = np.full(info_bytes, 0xA5, np.uint8) if info_areas is None else info_areas[worker]
            areas.append(InfoArea(first, end - first, area))
            self.workers.append(
                _native.EnvRows(
                    self.envs[rows],
                    self.arrays.rows(first, end - first),
                    observations=Observations(observation_space, *_rows(obs, obs_objects, rows), first_env=first),
                    final_observations=Observations(
                        observation_space, *_rows(final, final_objects, rows), first_env=first
                    ),
                    actions=Actions(action_space, *_rows(act, act_objects, rows), first_env=first),
                    info_area=area,
                    current=self.current[worker : worker + 1],
                    stop=Stop,
                    failure=failure,
                    first_env=first,
                )
            )
        self.first_envs = bounds[:-1].tolist()
        self.areas = areas
        self.infos = VectorInfos(num_envs, areas, self.final_observations.row)

    def run(self, kind: int, options: Any = None) -> list[Failure]:
        """Executes an exchange in all workers, the last one first, and clears the flags."""
        failures = []
        for first, worker in reversed(list(zip(self.first_envs, self.workers, strict=True))):
            mode = _native.AUTORESET_MODES[self.autoreset_mode.name]
            failures += [(first + row, *other) for row, *other in worker.run(kind, mode, options)]
        self.failures = sorted(failures, key=lambda failure: failure[0])
        self.arrays.resets[:] = 0
        return self.failures

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets as `SyncVectorEnv.reset`."""
        everywhere = np.ones(self.num_envs, bool)
        mask = everywhere if options is None else options.pop("reset_mask", everywhere)
        self.arrays.resets[mask] = RESET if seed is None else RESET | SEEDED
        if seed is not None:
            self.arrays.reset_seeds[:] = np.arange(seed, seed + self.num_envs)
        self.run(RESET_ONLY, options)
        self._raise_failures()
        return self.observations.batch(), self.infos.read()

    def step(
        self, actions: Any
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Steps as `SyncVectorEnv.step`."""
        self.actions.write(actions)
        self.run(STEP)
        self._raise_failures()
        terminations, truncations = self.arrays.terminateds.astype(bool), self.arrays.truncateds.astype(bool)
        return self.observations.batch(), self.arrays.reward.copy(), terminations, truncations, self.infos.read()

    def _raise_failures(self) -> None:
        if self.failures:
            raise self.failures[0][1]


def started(*envs: Env, mode: AutoresetMode = AutoresetMode.NEXT_STEP) -> RowWorkers:
    """Returns two workers with these environments, after a reset with the seeds 7, 8, ..."""
    workers = RowWorkers(envs, mode)
    workers.reset(seed=7)
    return workers


def _arrays(space: gymnasium.Space[Any], num_envs: int) -> tuple[dict[str, NDArray[Any]], dict[str, Objects]]:
    leaves, pickled = layout(space)
    arrays = {leaf.path: np.zeros((num_envs, *leaf.shape), leaf.dtype) for leaf in leaves}
    return arrays, {path: [None] * num_envs for path in pickled}


class _Slice:
    """Some of the objects."""

    def __init__(self, objects: Objects, first: int) -> None:
        self._objects, self._first = objects, first

    def __getitem__(self, index: int, /) -> Any:
        return self._objects[self._first + index]

    def __setitem__(self, index: int, value: Any, /) -> None:
        self._objects[self._first + index] = value


def _rows(
    arrays: dict[str, NDArray[Any]], objects: dict[str, Objects], rows: slice
) -> tuple[int, dict[str, NDArray[Any]], dict[str, Objects]]:
    """Returns the arguments of Observations and Actions for some rows."""
    return (
        rows.stop - rows.start,
        {path: array[rows] for path, array in arrays.items()},
        {path: _Slice(each, rows.start) for path, each in objects.items()},
    )
