"""Vector environments in Python, and Gymnasium's `AsyncVectorEnv` with Tandem's workers: only the import changes.

from tandem.vector import AsyncVectorEnv  # was: from gymnasium.vector import AsyncVectorEnv

envs = AsyncVectorEnv([lambda: gymnasium.make("CartPole-v1")] * 64)
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
from gymnasium.vector import AutoresetMode

from tandem import client
from tandem.arguments import integer, shown
from tandem.engine.options import EngineOptions
from tandem.environments.client_vector import ClientVectorEnv, Obs, StepResults
from tandem.environments.own_rewards import OwnRewardsVectorEnv
from tandem.environments.python_backend import start_workers
from tandem.environments.transition import Transition
from tandem.environments.vector_arguments import Seed
from tandem.environments.worker_vector import WorkerVectorEnv, functions_of
from tandem.errors import EngineFailed, NoStepPending, StepPending, StepTimeout, Unsupported

__all__ = [
    "AsyncVectorEnv",
    "CallPending",
    "ClientVectorEnv",
    "NoCallPending",
    "OwnRewardsVectorEnv",
    "Transition",
    "WorkerVectorEnv",
]

# Gymnasium's own class waits without a limit. A worker's death ends the wait at once.
_TIMEOUT_SECS = 600.0


class CallPending(StepPending, gymnasium.error.AlreadyPendingCallError):
    """A call was begun and its results were not taken. Call its `..._wait` first.

    Attributes:
      name: The call.
    """

    def __init__(self, name: str) -> None:
        """Takes the call."""
        text = f"{name}: expected no call whose results were not taken, found one; take them first, by its ..._wait()"
        gymnasium.error.AlreadyPendingCallError.__init__(self, text, name)


class NoCallPending(NoStepPending, gymnasium.error.NoAsyncCallError):
    """The results of a call that was not begun. Call its `..._async` first.

    Attributes:
      name: The call.
    """

    def __init__(self, name: str) -> None:
        """Takes the call."""
        text = f"{name}: expected a call that was begun, found none; begin it by {name.replace('_wait', '_async')}()"
        gymnasium.error.NoAsyncCallError.__init__(self, text, name)


class AsyncVectorEnv(WorkerVectorEnv):
    """A `WorkerVectorEnv` with the constructor and the methods of `gymnasium.vector.AsyncVectorEnv`.

    Exceptions of environments are `tandem.EnvFailed` here, with the traceback as text. After one, the other
    environments can still be used.
    """

    def __init__(
        self,
        env_fns: Sequence[Callable[[], gymnasium.Env[Any, Any]]],
        shared_memory: bool = True,
        copy: bool = True,
        context: str | None = None,
        daemon: bool = True,
        worker: Any = None,
        observation_mode: Any = "same",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        max_concurrency: int | None = None,
        *,
        num_workers: int | None = None,
        engine: EngineOptions | None = None,
    ) -> None:
        """Starts the workers.

        Args:
          env_fns: A function for each environment.
          shared_memory: Without effect: observations always are in shared memory.
          copy: False: observations are the region's own arrays, which the next step overwrites.
          context: Without effect: workers are new programs, never forks of this one.
          daemon: Without effect: workers end with this process.
          worker: None.
          observation_mode: "same".
          autoreset_mode: As for `make_vec`.
          max_concurrency: Most environments that are stepped at the same time: the number of workers.
          num_workers: The same; None: as many as cores and environments allow.
          engine: Time-outs and waiting; None: a step may take 600 s.

        Raises:
          Unsupported: Another `worker` or `observation_mode`.
          TandemError: As `make_vec`.
        """
        if worker is not None:
            raise Unsupported(
                f"worker: expected None, found {shown(worker)}: Tandem's workers are processes of its own; put what it "
                "does into a wrapper of the environment"
            )
        if not isinstance(observation_mode, str) or observation_mode != "same":
            raise Unsupported(
                f"observation_mode: expected 'same', found {shown(observation_mode)}: all environments share one region"
            )
        if num_workers is None and max_concurrency is not None:
            num_workers = min(integer("max_concurrency", max_concurrency, 1), len(env_fns))
        options = EngineOptions(timeout=_TIMEOUT_SECS) if engine is None else engine
        mode = autoreset_mode if isinstance(autoreset_mode, AutoresetMode) else AutoresetMode(autoreset_mode)
        self._reset_results: tuple[Obs, dict[str, Any]] | None = None
        self._call_results: tuple[Any, ...] | None = None
        attached, workers = start_workers(
            functions_of(env_fns, None, argument="env_fns"),
            num_workers=num_workers,
            mode=client.AutoresetMode(mode.value),
            options=options,
        )
        super().__init__(attached, workers, copy=copy, timeout=options.timeout)

    def step_async(self, actions: Any) -> None:
        """Starts a step, as `send`."""
        self._refuse_pending("step_async")
        self.send(actions)

    def step_wait(self, timeout: float | None = None) -> StepResults:
        """Returns the results of the step that `step_async` began, as `recv`."""
        if not self._client.pending:
            raise NoCallPending("step_wait")
        return self.recv(timeout)

    def reset_async(self, seed: Seed = None, options: Mapping[str, Any] | None = None) -> None:
        """Resets the environments; `reset_wait` returns the results. It does not return before the reset is done."""
        self._refuse_pending("reset_async")
        self._reset_results = self.reset(seed=seed, options=options)

    def reset_wait(self, timeout: float | None = None) -> tuple[Obs, dict[str, Any]]:
        """Returns the results of `reset_async`."""
        if self._reset_results is None:
            raise NoCallPending("reset_wait")
        results, self._reset_results = self._reset_results, None
        return results

    def call_async(self, name: str, /, *args: Any, **kwargs: Any) -> None:
        """Calls a method of all environments; `call_wait` returns the results. It returns after the calls."""
        self._refuse_pending("call_async")
        self._call_results = self.call(name, *args, **kwargs)

    def call_wait(self, timeout: float | None = None) -> tuple[Any, ...]:
        """Returns the results of `call_async`."""
        if self._call_results is None:
            raise NoCallPending("call_wait")
        results, self._call_results = self._call_results, None
        return results

    def close_extras(self, timeout: float | None = None, terminate: bool = False, **kwargs: Any) -> None:
        """Closes client and workers.

        Args:
          timeout: Seconds that a pending step may take; None: half a second.
          terminate: Whether workers are killed at once.
          kwargs: Not used.
        """
        if self._client.pending and timeout is not None and not terminate:
            try:
                self.recv(timeout)
            except EngineFailed:  # its results are dropped
                pass
            except StepTimeout:
                gymnasium.logger.warn(f"a step did not end within {timeout} s; its workers are killed")
        if terminate:
            self._workers.close(0.0)
        super().close_extras()

    def _refuse_pending(self, call: str) -> None:
        if self._client.pending or self._reset_results is not None or self._call_results is not None:
            raise CallPending(call)
