"""Vector environments for Tianshou. Importing this imports tianshou, and so torch.

VectorEnv         any environments of `make_vec`: VectorEnv(tandem.make_vec("Ant-v5", 64, autoreset_mode="Disabled"))
SubprocVectorEnv  Tianshou's class of this name, with Tandem's workers: only the import changes
"""

import copy
import time
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import iterate
from numpy.typing import NDArray
from tianshou.env import BaseVectorEnv
from tianshou.env.worker import EnvWorker

from tandem.arguments.arrays import seeds_of
from tandem.engine.options import WorkerOptions
from tandem.environments.async_vector import AsyncVectorEnv
from tandem.environments.row_infos import infos_of_each
from tandem.environments.vector import SharedMemoryVectorEnv
from tandem.environments.worker_vector import WorkerVectorEnv
from tandem.errors import InvalidArgument, NoStepPending, StepTimeout, Unsupported

__all__ = ["SubprocVectorEnv", "VectorEnv"]

Envs = SharedMemoryVectorEnv | WorkerVectorEnv
EnvIds = int | Sequence[int] | NDArray[np.integer] | None


class VectorEnv(BaseVectorEnv):
    """Environments of `tandem.make_vec`, of a task in C++ or in Python, as a vector environment of Tianshou.

    An ended environment must be reset before its next step, as Tianshou's collectors do. `close` closes `envs`.
    """

    def __init__(self, envs: Envs, *, wait_num: int | None = None, timeout: float | None = None) -> None:
        """Takes the environments over; closes them if it raises an exception.

        Args:
          envs: Made with `autoreset_mode="Disabled"`.
          wait_num: As for `SubprocVectorEnv`; only of environments in Python with a worker for each.
          timeout: The same.

        Raises:
          InvalidArgument: `envs` has another autoreset mode.
        """
        if envs.autoreset_mode is not AutoresetMode.DISABLED:
            mode = envs.autoreset_mode.value
            envs.close()
            raise InvalidArgument(f'envs: expected autoreset_mode="Disabled", since Tianshou resets, found "{mode}"')
        self._envs = envs
        self.waiting_id: list[int] = []  # in a step
        self.ready_id: list[int] = []
        rows = iter(range(envs.num_envs))
        try:
            # The base class only counts the functions.
            super().__init__([_no_env] * envs.num_envs, lambda _: _Row(envs, next(rows)), wait_num, timeout)
        except BaseException:
            envs.close()
            raise

    def reset(self, env_id: EnvIds = None, **kwargs: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Resets all environments, or some.

        Args:
          env_id: Of the environments; None: all.
          kwargs: `seed`, of each of these environments: one number; and `options`.

        Returns:
          Observations of these environments, and an object array of their infos.

        Raises:
          TandemError: As `WorkerVectorEnv.reset`.
        """
        self._assert_is_not_closed()
        ids = [int(each) for each in self._wrap_id(env_id)]
        if self.is_async:
            self._assert_id(ids)
        seed = kwargs.get("seed")
        obs, infos = self._envs.reset(
            seed=None if seed is None else [seed] * len(ids), options=kwargs.get("options"), env_ids=ids
        )
        return self._obs_of_each(obs), _array_of(infos_of_each(infos, len(ids)))

    def step(self, action: Any, id: EnvIds = None) -> tuple[NDArray[Any], ...]:
        """Steps all environments, or those of `id`, by an action for each; None with `wait_num` or `timeout`: waits.

        Returns observations, rewards float64[n], terminations bool[n], truncations bool[n], and an object array of
        infos, of these environments; with `wait_num` or `timeout` of those that are ready. Each info has "env_id".

        Raises:
          InvalidArgument: `action` is None without `wait_num` and `timeout`.
          NoStepPending: `action` is None, and no environment is in a step.
          EnvFailed: As `WorkerVectorEnv.step`. With `wait_num` or `timeout`, step(None) then returns the results. The
            info of an environment that failed has "env_failed"; it is truncated, and must be reset.
          TandemError: As `WorkerVectorEnv.step`.
        """
        self._assert_is_not_closed()
        ids = [int(each) for each in self._wrap_id(id)]
        if self.is_async:
            try:
                return self._step_ready(action, ids)
            finally:
                self._note_lanes()
        if action is None:
            raise InvalidArgument("action: expected actions, found None; None needs wait_num or timeout")
        return self._results(ids, *self._envs.step(action, env_ids=ids))

    def _step_ready(self, action: Any, ids: list[int]) -> tuple[NDArray[Any], ...]:
        assert isinstance(self._envs, WorkerVectorEnv)
        lanes = self._envs.lanes
        if action is not None:
            self._assert_id(ids)
            lanes.send(ids, ids, action)
        if not lanes.busy:
            raise NoStepPending("step: expected environments in a step, found none; call step(action, id)")
        wanted = min(self.wait_num, len(lanes.busy))
        limit = time.monotonic() + lanes.timeout
        end = limit if self.timeout is None else time.monotonic() + self.timeout
        while len(lanes.ready) < wanted:
            try:
                lanes.await_more(1, max(end - time.monotonic(), 0.0))
            except StepTimeout:
                if lanes.ready and self.timeout is not None:
                    break
                if time.monotonic() >= limit:
                    raise
                end = limit  # until one is ready
                if not lanes.ready:
                    wanted = 1
        found = lanes.ready
        return self._results(found, *lanes.results(found))

    def _note_lanes(self) -> None:
        """Notes which environments are in a step, for Tianshou's checks."""
        if isinstance(self._envs, WorkerVectorEnv):
            self.waiting_id = sorted(self._envs.lanes.busy)
            self.ready_id = [each for each in range(self.env_num) if each not in self.waiting_id]

    def _results(
        self, ids: list[int], obs: Any, rewards: Any, terminations: Any, truncations: Any, infos: dict[str, Any]
    ) -> tuple[NDArray[Any], ...]:
        of_each = infos_of_each(infos, len(ids))
        for env_id, info in zip(ids, of_each, strict=True):
            info["env_id"] = env_id
        return self._obs_of_each(obs), rewards, terminations, truncations, _array_of(of_each)

    def _obs_of_each(self, obs: Any) -> NDArray[Any]:
        """Returns an array with an observation for each environment, of dtype object where they are no arrays."""
        if isinstance(obs, np.ndarray):
            return obs
        return _array_of(list(iterate(self._envs.observation_space, obs)))

    def seed(self, seed: int | list[int] | None = None) -> list[list[int] | None]:
        """Resets all environments from seeds, and seeds their action spaces. Steps whose results are due are dropped.

        Environment i has seed + i, or seed[i]; None: random ones. Returns a list of each environment's seed.
        """
        self._assert_is_not_closed()
        try:
            self._envs.reset(seed=seed)
        finally:
            self._note_lanes()
        seeds = seeds_of(seed, list(range(self.env_num))) or [None] * self.env_num
        for worker, each in zip(self.workers, seeds, strict=True):
            worker.seed(each)
        return [None if each is None else [each] for each in seeds]


class SubprocVectorEnv(VectorEnv):
    """Tianshou's `SubprocVectorEnv` with Tandem's workers: several environments in each process.

    An exception of an environment is `tandem.EnvFailed` with the traceback; a process that dies is `tandem.PeerGone`.
    With `wait_num` or `timeout` each environment has a process of its own.
    """

    def __init__(
        self,
        env_fns: Sequence[Callable[[], gymnasium.Env[Any, Any]]],
        wait_num: int | None = None,
        timeout: float | None = None,
        share_memory: bool = True,
        context: str | None = None,
        *,
        num_workers: int | None = None,
        engine: WorkerOptions | None = None,
    ) -> None:
        """Starts the workers.

        Args:
          env_fns: A function for each environment.
          wait_num: `step` returns when so many environments are ready; None: all that were stepped.
          timeout: Seconds after which `step` returns those that are ready, if any is.
          share_memory: Without effect: observations always are in shared memory.
          context: Without effect: workers are new programs, never forks of this one.
          num_workers: Worker processes; None: as many as cores and environments allow.
          engine: Time-outs and waiting; None: a step may take 600 s, as for `tandem.vector.AsyncVectorEnv`.

        Raises:
          InvalidArgument: `num_workers` is not the number of environments, with `wait_num` or `timeout`.
          TandemError: As `tandem.make_vec`.
        """
        functions = list(env_fns)
        if timeout is not None or wait_num not in (None, len(functions)):
            if num_workers not in (None, len(functions)):
                raise InvalidArgument(
                    f"num_workers: expected {len(functions)}, one for each environment, as wait_num or timeout is set, "
                    f"found {num_workers}; omit it"
                )
            num_workers = len(functions)
        envs = AsyncVectorEnv(functions, autoreset_mode=AutoresetMode.DISABLED, num_workers=num_workers, engine=engine)
        super().__init__(envs, wait_num=wait_num, timeout=timeout)


def _no_env() -> Any:
    raise AssertionError  # the environments are in other processes


class _Row(EnvWorker):
    """One of the environments, for what Tianshou's base class does with each of them."""

    def __init__(self, envs: Envs, env_id: int) -> None:
        self._envs, self._env_id = envs, env_id
        self._spaces = {
            "observation_space": copy.deepcopy(envs.single_observation_space),
            "action_space": copy.deepcopy(envs.single_action_space),
        }
        super().__init__(None)  # there is no environment in this process

    def get_env_attr(self, key: str) -> Any:
        if key in self._spaces:
            return self._spaces[key]
        if not isinstance(self._envs, WorkerVectorEnv):
            return self._envs.get_attr(key)[self._env_id]  # a few names; raises Unsupported for others
        return self._envs.call_chosen([self._env_id], key)[0]

    def set_env_attr(self, key: str, value: Any) -> None:
        if not isinstance(self._envs, WorkerVectorEnv):
            self._envs.set_attr(key, value)  # raises Unsupported
        else:
            self._envs.set_chosen([self._env_id], key, value)

    def send(self, action: NDArray[Any] | None) -> None:
        raise Unsupported("send: expected a step of the vector environment, found one of a row; call step(action, id)")

    def reset(self, **kwargs: Any) -> Any:
        raise Unsupported("reset: expected one of the vector environment, found one of a row; call reset(env_id)")

    def render(self, **kwargs: Any) -> Any:
        if not isinstance(self._envs, WorkerVectorEnv):
            return (self._envs.render() or [None] * self._envs.num_envs)[self._env_id]
        return self._envs.call_chosen([self._env_id], "render", **kwargs)[0]

    def close_env(self) -> None:
        self._envs.close()


def _array_of(values: list[Any]) -> NDArray[Any]:
    array = np.empty(len(values), object)
    array[:] = values
    return array
