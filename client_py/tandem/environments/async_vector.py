"""`AsyncVectorEnv`: Gymnasium's class of this name with Tandem's workers: only the import changes.

from tandem.vector import AsyncVectorEnv  # was: from gymnasium.vector import AsyncVectorEnv

envs = AsyncVectorEnv([lambda: gymnasium.make("CartPole-v1")] * 64)
"""

import contextlib
import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import gymnasium
from gymnasium.vector import AutoresetMode

from tandem import client
from tandem.arguments import integer, one_of, seconds, shown
from tandem.engine.options import WorkerOptions
from tandem.environments.client_vector import EnvIds, GymnasiumVectorEnv, Obs, StepResults
from tandem.environments.python_backend import start_workers
from tandem.environments.vector_arguments import Seed
from tandem.environments.worker_vector import WorkerVectorEnv, call_of_each, functions_of
from tandem.errors import EngineFailed, NoStepPending, PeerGone, StepPending, StepTimeout, TandemError, Unsupported
from tandem.workers.calls import Request

# Gymnasium's own class waits without a limit. A worker's death ends the wait at once.
_TIMEOUT_SECS = 600.0


class CallPending(StepPending, gymnasium.error.AlreadyPendingCallError):
    """A call, `name`, was refused: another was begun and its results were not taken. Call its `..._wait` first."""

    def __init__(self, name: str, pending: str) -> None:
        """Takes the call that is refused, and the one that was begun: "step", "reset" or "call"."""
        text = f"{name}: expected no results to be taken, found those of {pending}_async; call {pending}_wait() first"
        gymnasium.error.AlreadyPendingCallError.__init__(self, text, name)


class NoCallPending(NoStepPending, gymnasium.error.NoAsyncCallError):
    """The results of a call, `name`, that was not begun. Call its `..._async` first."""

    def __init__(self, name: str) -> None:
        """Takes the call."""
        text = f"{name}: expected a call that was begun, found none; begin it by {name.replace('_wait', '_async')}()"
        gymnasium.error.NoAsyncCallError.__init__(self, text, name)


class CallTimeout(StepTimeout, multiprocessing.TimeoutError):
    """The results of a call that was begun did not come in time. It is still pending: call its `..._wait` again."""


class AsyncVectorEnv(WorkerVectorEnv, GymnasiumVectorEnv):
    """A `WorkerVectorEnv` with the constructor and the methods of `gymnasium.vector.AsyncVectorEnv`.

    Exceptions of environments are `tandem.EnvFailed` here, with the traceback as text. After one, the other
    environments can still be used. Each `..._async` starts something and returns at once; until its `..._wait`, other
    calls are refused by CallPending. Only `close` is legal, and `reset` after `step_async` or `reset_async`, whose
    results are then dropped.
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
        engine: WorkerOptions | None = None,
    ) -> None:
        """Starts the workers. Arguments are those of Gymnasium's class; errors also those of `make_vec`.

        Without effect: `shared_memory`, as observations always are there; `context` and `daemon`, as workers are new
        programs, never forks of this one, and end with this process. With copy=False observations are the region's own
        arrays, which the next step overwrites. `max_concurrency` and `num_workers` are the number of workers; None: as
        many as cores and environments allow. `engine` has time-outs and waiting; None: a step may take 600 s.

        Raises:
          InvalidArgument: An unknown `observation_mode`.
          Unsupported: A `worker`, or an `observation_mode` for different spaces.
        """
        if worker is not None:
            raise Unsupported(
                f"worker: expected None, found {shown(worker)}: Tandem's workers are processes of its own; put what it "
                "does into a wrapper of the environment"
            )
        if isinstance(observation_mode, str):
            one_of("observation_mode", observation_mode, ("same", "different"))
        if not isinstance(observation_mode, str) or observation_mode != "same":
            raise Unsupported(
                f"observation_mode: expected 'same', found {shown(observation_mode)}: all environments share one region"
            )
        if num_workers is None and max_concurrency is not None:
            num_workers = min(integer("max_concurrency", max_concurrency, 1), len(env_fns))
        options = WorkerOptions(timeout=_TIMEOUT_SECS) if engine is None else engine
        mode = autoreset_mode if isinstance(autoreset_mode, AutoresetMode) else AutoresetMode(autoreset_mode)
        # What was begun by an `..._async` and not awaited: "step", "reset" or "call".
        self._awaited: str | None = None
        self._was_ready = False  # `_ready` before it
        self._request: Request | None = None
        attached, workers = start_workers(
            functions_of(env_fns, None, argument="env_fns"),
            num_workers=num_workers,
            mode=client.AutoresetMode(mode.value),
            options=options,
        )
        super().__init__(attached, workers, copy=copy)

    def step_async(self, actions: Any) -> None:
        """Starts a step and returns at once; errors are those of `send`, and CallPending."""
        self._refuse_pending("step_async")
        self.send(actions)
        self._begin("step")

    def step_wait(self, timeout: float | None = None) -> StepResults:
        """Returns the results of the step that `step_async` began, as `recv`.

        Args:
          timeout: Seconds; None: as the constructor's `engine` says.

        Raises:
          NoCallPending: None was begun.
          CallTimeout: It did not end in time; it is still pending.
          TandemError: As `recv`.
        """
        self._expect("step")
        with _in_time():
            return self.recv(timeout)

    def reset_async(self, seed: Seed = None, options: Mapping[str, Any] | None = None) -> None:
        """Starts a reset and returns at once; errors are those of `reset` before it waits, and CallPending."""
        self._refuse_pending("reset_async")
        self._send_reset(*self._expect_reset("reset_async", seed, options, None)[:2], options)
        self._begin("reset")

    def reset_wait(self, timeout: float | None = None) -> tuple[Obs, dict[str, Any]]:
        """Returns the results of the reset that `reset_async` began; arguments and errors are those of `step_wait`."""
        self._expect("reset")
        with _in_time():
            obs, _, _, _, infos = self.recv(timeout)
        return obs, infos

    def recv(self, timeout: float | None = None, *, half: int | None = None) -> StepResults:
        """As `WorkerVectorEnv.recv`."""
        try:
            return super().recv(timeout, half=half)
        finally:
            if self._awaited in ("step", "reset") and not self._client.pending:
                self._end()

    def reset(
        self, *, seed: Seed = None, options: Mapping[str, Any] | None = None, env_ids: EnvIds = None
    ) -> tuple[Obs, dict[str, Any]]:
        """As `WorkerVectorEnv.reset`; CallPending: the results of `call_async` were not taken."""
        self._refuse_call("reset")
        try:
            return super().reset(seed=seed, options=options, env_ids=env_ids)
        finally:
            if not self._client.pending:
                self._awaited = None

    def call_async(self, name: str, /, *args: Any, **kwargs: Any) -> None:
        """Calls a method of all environments, and returns at once; errors are those of `call`, and CallPending."""
        self._refuse_pending("call_async")
        self._request = self._workers.calls.request(*call_of_each(name, args, kwargs))
        self._begin("call")

    def call_wait(self, timeout: float | None = None) -> tuple[Any, ...]:
        """Returns the results of `call_async`; arguments and errors are those of `step_wait` and `call`."""
        self._expect("call")
        limit = None if timeout is None else seconds("timeout", timeout)
        assert self._request is not None
        try:
            with _in_time():
                results = self._workers.calls.results(self._request, limit)
        except (EngineFailed, PeerGone):
            self._end()
            raise
        self._end()
        return tuple(results)

    def close_extras(self, timeout: float | None = None, terminate: bool = False, **kwargs: Any) -> None:
        """Closes client and workers.

        `timeout`: seconds that a pending step may take, None: half a second. `terminate`: workers are killed at once.
        """
        if self._awaited is not None:
            gymnasium.logger.warn(f"close: {self._awaited}_async was called without {self._awaited}_wait")
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

    def _apply(self, what: str, function: Callable[[Any, int], Any], env_ids: EnvIds) -> tuple[Any, ...]:
        self._refuse_call(what)
        return super()._apply(what, function, env_ids)

    def _not_ready_error(self, call: str) -> TandemError:
        if self._awaited is None or self.closed:
            return super()._not_ready_error(call)
        return CallPending(call, self._awaited)

    def _refuse_pending(self, call: str) -> None:
        if self.closed:
            raise self._closed_error(call)
        if self._awaited is not None or self._client.pending:
            raise CallPending(call, self._awaited or "step")

    def _refuse_call(self, call: str) -> None:
        if self._awaited == "call" and not self.closed:
            raise CallPending(call, "call")

    def _expect(self, kind: str) -> None:
        if self.closed:
            raise self._closed_error(f"{kind}_wait")
        if self._awaited != kind:
            raise NoCallPending(f"{kind}_wait")

    def _begin(self, kind: str) -> None:
        self._awaited, self._was_ready = kind, self._ready or kind == "reset"
        self._ready = False  # so that step() and send() ask `_not_ready_error`

    def _end(self) -> None:
        self._awaited, self._ready = None, self._was_ready


@contextlib.contextmanager
def _in_time() -> Iterator[None]:
    try:
        yield
    except StepTimeout as error:
        raise CallTimeout(str(error)) from None
