"""`WorkerVectorEnv`: environments in Python, in worker processes, as a `gymnasium.vector.VectorEnv`."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import cloudpickle

from tandem._native import AUTORESET_MODES, WorkerStep
from tandem.arguments import text
from tandem.client import SharedMemoryClient
from tandem.environments.client_vector import ClientVectorEnv, Obs, StepResults
from tandem.environments.vector_arguments import Mask, Seed
from tandem.errors import EnvFailed, InvalidArgument, StepTimeout
from tandem.spaces.batches import Actions, Observations
from tandem.workers.infos import VectorInfos
from tandem.workers.processes import WorkerProcesses
from tandem.workers.row_fields import arrays_of


_CLOSE_SECS = 5.0  # for environments to close
_PENDING_SECS = 0.5  # the same, after a step that was not received


class WorkerVectorEnv(ClientVectorEnv):
    """Gymnasium environments in worker processes; `make_vec` makes one.

    Results are those of `gymnasium.vector.SyncVectorEnv`, digit for digit; docs/gymnasium.md lists the differences.

    Attributes:
      num_envs: Number of environments.
      single_observation_space: Of one environment.
      observation_space: Of all, as `gymnasium.vector.utils.batch_space` makes it.
      single_action_space: Of one environment.
      action_space: Of all, in the same way.
      autoreset_mode: When an ended episode is followed by the next: one of `gymnasium.vector.AutoresetMode`.
      metadata: Of the first environment, and "autoreset_mode".
      render_mode: Of the first environment.
    """

    _instead = "its workers have one client, in this process; call make_vec with the same arguments in the other process"

    def __init__(
        self, client: SharedMemoryClient, workers: WorkerProcesses, *, copy: bool = True, timeout: float = 10.0
    ) -> None:
        """Takes over the workers and a client that is attached to them.

        Args:
          client: Idle; its `autoreset_mode` is the environments'.
          workers: `close` closes them.
          copy: As for `make_vec`.
          timeout: Seconds that `call`, `get_attr`, `set_attr` and `render` may take.
        """
        self._workers, self._timeout = workers, timeout
        self.render_mode = workers.render_mode
        self.spec = workers.spec
        super().__init__(
            client, copy=copy, engine=workers, spaces=(workers.observation_space, workers.action_space)
        )

    def _metadata(self) -> dict[str, Any]:
        return self._workers.metadata

    def _make_stepper(self, client: SharedMemoryClient) -> WorkerStep:
        def arrays(role: str, space: Any) -> Any:
            return arrays_of(client.fields, role, space, 0, self.num_envs)

        observation_space, action_space = self.single_observation_space, self.single_action_space
        final = Observations(observation_space, self.num_envs, *arrays("final_obs", observation_space))
        return WorkerStep(
            client._native,
            Observations(observation_space, self.num_envs, *arrays("obs", observation_space)),
            Actions(action_space, self.num_envs, *arrays("action", action_space)),
            VectorInfos(self.num_envs, self._workers.info_areas, final.row),
            copy=self._copy,
            autoreset=AUTORESET_MODES[client.autoreset_mode.name],
        )

    def _close_engine(self, pending: bool) -> None:
        # A worker that has not ended its step may never do so.
        self._workers.close(_PENDING_SECS if pending else _CLOSE_SECS)

    def _reset_chosen(self, mask: Mask, seed: Seed, options: Mapping[str, Any] | None) -> None:
        self._workers.reset_options.write(options)
        try:
            self._client.reset(mask, seed=seed)
        except EnvFailed:
            self._ready = True  # the other environments were reset
            raise

    def reset(self, *, seed: Seed = None, options: Mapping[str, Any] | None = None) -> tuple[Obs, dict[str, Any]]:
        """Starts new episodes. A step that an interrupt or a time-out left pending is received first, and dropped.

        Args:
          seed: Environment i starts from seed + i, or from seed[i]; None: each environment's random stream continues.
          options: None, or a mapping, which each environment's `reset` gets without "reset_mask". "reset_mask",
            bool[num_envs]: the environments to reset; the others keep their state. The call removes it from a dict, as
            Gymnasium's SyncVectorEnv does.

        Returns:
          Observations, as `step` returns them, and infos of the environments that were reset.

        Raises:
          InvalidArgument: An invalid seed or mask.
          EnvFailed: An environment raised an exception; the others were reset.
          TandemError: As `SharedMemoryClient.reset`.
        """
        try:
            return super().reset(seed=seed, options=options)
        except StepTimeout as error:
            raise self._with_stacks(error) from None

    def step(self, actions: Any) -> StepResults:
        """Steps every environment once.

        Args:
          actions: An element of `action_space`, or what `gymnasium.vector.utils.iterate` accepts instead.

        Returns:
          Observations, the caller's to keep (with copy=False: the region's own arrays, valid until the next step);
          rewards float64[num_envs]; terminations and truncations bool[num_envs]; infos.

        Raises:
          InvalidAction: Actions of another structure, shape or kind; nothing was sent.
          InvalidArgument: With autoreset disabled: an episode has ended and was not reset; nothing was sent.
          EnvFailed: An environment raised an exception, or returned a value that is not one of its space. The others
            were stepped; this one fails until it is reset.
          PeerGone: A worker has ended. The message names it and its environments.
          StepTimeout: Not all workers answered in time; the message has the stacks of those that did not.
          ResetNeeded: `reset` was not called yet.
          EnvironmentClosed: `close` was called.
          TandemError: As `SharedMemoryClient.step`.
        """
        if not self._ready:
            raise self._not_ready_error("step")
        try:
            return self._stepper.step(actions)
        except StepTimeout as error:
            raise self._with_stacks(error) from None

    def recv(self) -> StepResults:
        """Waits for the results of what was sent; returns and raises as `step`."""
        try:
            return super().recv()
        except StepTimeout as error:
            raise self._with_stacks(error) from None

    def _with_stacks(self, error: StepTimeout) -> StepTimeout:
        """Returns the error with the stacks of the workers that it names."""
        named = sorted({int(number) for number in re.findall(r"worker (\d+) \(", str(error))})
        return StepTimeout(f"{error}{self._workers.stacks(named or None)}")

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]  # as Gymnasium's SyncVectorEnv has it
        """The seed of each environment's random generator; -1: unknown."""
        return self.get_attr("np_random_seed")

    @property
    def np_random(self) -> tuple[Any, ...]:  # type: ignore[override]  # as Gymnasium's SyncVectorEnv has it
        """A copy of each environment's random generator."""
        return self.get_attr("np_random")

    def render(self) -> tuple[Any, ...] | None:
        """Returns what each environment's `render` returns."""
        return self.call("render")

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Calls a method of every environment or of its wrappers; returns the value of another attribute.

        Arguments and results are pickled.

        Raises:
          EnvFailed: An environment raised an exception; the message has the traceback.
          PeerGone: A worker has ended.
          StepTimeout: A worker did not answer in time; the message has its stack.
        """
        self._check_open("call")
        message = ("call", text("name", name), cloudpickle.dumps((args, kwargs)))
        return tuple(self._workers.ask(message, self._timeout))

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Returns a copy of an attribute of every environment, or of its wrappers; errors are those of `call`."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Sets an attribute of every environment, or of its wrappers; errors are those of `call`.

        Args:
          name: Of the attribute.
          values: A list or tuple with a value for each environment; another value is for all.
        """
        self._check_open("set_attr")
        if not isinstance(values, list | tuple):
            values = [values] * self.num_envs
        if len(values) != self.num_envs:
            raise InvalidArgument(
                f"values: expected {self.num_envs} values, one for each environment, found {len(values)}"
            )
        self._workers.ask(("set", text("name", name), cloudpickle.dumps(list(values))), self._timeout)

    def _check_open(self, call: str) -> None:
        if self.closed:
            raise self._closed_error(call)


def functions_of(task: Any, num_envs: int | None) -> Sequence[Any]:
    """Returns a function for each environment: `task` is one function, or a sequence of them.

    Raises:
      InvalidArgument: Something else, none, or another number of them than `num_envs`.
    """
    if callable(task):
        return [task] * (1 if num_envs is None else num_envs)
    functions = list(task)
    if not functions or not all(callable(function) for function in functions):
        raise InvalidArgument("task: expected functions that make environments, one or more, found others or none")
    if num_envs not in (None, len(functions)):
        raise InvalidArgument(f"num_envs: expected {len(functions)}, the number of functions, found {num_envs}; omit it")
    return functions
