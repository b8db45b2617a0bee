"""`WorkerVectorEnv`: environments in Python, in worker processes, as a `gymnasium.vector.VectorEnv`.

Length: one class, with the contract of each method.
"""

import functools
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from cloudpickle import cloudpickle
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import iterate
from numpy.typing import NDArray

from tandem import errors
from tandem._native import AUTORESET_MODES, NativeClient, VectorStep
from tandem.arguments import shown, text
from tandem.arguments.arrays import env_indices, seeds_of
from tandem.client import SharedMemoryClient
from tandem.environments.client_vector import ClientVectorEnv, EnvIds, GymnasiumVectorEnv, Obs, StepResults
from tandem.environments.lanes import RAISED, Batches, Halves, Lanes
from tandem.environments.row_infos import chosen_infos
from tandem.environments.sealed_state import PYTHON, batches, sealed, unsealed
from tandem.environments.vector_arguments import Mask, Seed, distinct_ids
from tandem.errors import EnvFailed, InvalidArgument, PeerGone, StepTimeout, TandemError, Unsupported
from tandem.spaces.batches import Actions, Observations
from tandem.workers import env_states
from tandem.workers.env_states import Saved
from tandem.workers.infos import VectorInfos
from tandem.workers.pickled import modules_of, pickled
from tandem.workers.processes import WorkerProcesses
from tandem.workers.row_fields import arrays_of
from tandem.workers.worker import OptionsOfWorkers
from tandem.workers.worker_pool import WorkerPool

if TYPE_CHECKING:
    from tandem.sb3 import SharedMemoryVecEnv

_CLOSE_SECS = 5.0  # for environments to close
_MOST_STACKS = 3  # in the message of a time-out
_PENDING_SECS = 0.5  # the same, after a step or call whose results were not received


class WorkerVectorEnv(ClientVectorEnv, GymnasiumVectorEnv):
    """Gymnasium environments in worker processes; `make_vec` makes one.

    Results are those of `gymnasium.vector.SyncVectorEnv`, digit for digit; docs/differences.md lists the differences.
    The spaces of all are made by `gymnasium.vector.utils.batch_space`; `metadata` and `render_mode` are the first
    environment's.
    """

    _instead = (
        "its workers have one client, in this process; call make_vec with the same arguments in the other process"
    )

    def __init__(
        self, client: SharedMemoryClient, workers: WorkerProcesses, *, copy: bool = True, batch_size: int | None = None
    ) -> None:
        """Takes over the workers and an idle client that is attached to them; closes both if it raises an exception.

        `copy` and `batch_size` are those of `make_vec`'s options.
        """
        self._workers, self._batch_size = workers, batch_size
        self._marks: tuple[tuple[int, str], ...] | None = None
        self.render_mode = workers.render_mode
        self.spec = workers.spec
        spaces = workers.observation_space, workers.action_space
        try:
            super().__init__(client, copy=copy, engine=workers, spaces=spaces)
        except BaseException:
            client.close()
            workers.close()
            raise

    def _attach(self, client: SharedMemoryClient) -> None:
        super()._attach(client)
        self._workers.calls.wake_supervisor = client._native.wake_engine
        its = client._native, self._workers.pool, self._workers.failures  # not the workers, whose end closes them
        errors.details[client.name] = functools.partial(_add_facts, *its)
        self._ready = False  # also after as_sb3: a new client's environments await their reset

    def as_sb3(self) -> "SharedMemoryVecEnv":
        """As `ClientVectorEnv.as_sb3`; InvalidArgument also if there is a batch size."""
        if self._batch_size is not None:
            raise InvalidArgument(
                "as_sb3: expected environments without a batch size, as Stable-Baselines3 steps all of them, found "
                f"batch_size={self._batch_size}"
            )
        return super().as_sb3()

    def _metadata(self) -> dict[str, Any]:
        return self._workers.metadata

    def _make_stepper(self, client: SharedMemoryClient) -> VectorStep:
        def arrays(role: str, space: Any) -> Any:
            return arrays_of(client.fields, role, space, 0, self.num_envs)

        observation_space, action_space = self.single_observation_space, self.single_action_space
        self._observations = Observations(observation_space, self.num_envs, *arrays("obs", observation_space))
        self._actions = self._actions_in(*arrays("action", action_space))
        final = Observations(observation_space, self.num_envs, *arrays("final_obs", observation_space))
        self._infos = VectorInfos(self.num_envs, self._workers.info_areas, final.row)
        self._lanes = Lanes(client, self._observations, self._actions, self._infos)
        self.__dict__.pop("_halves", None)  # of the client before
        self._batches = None if self._batch_size is None else Batches(self._lanes, self._batch_size)
        return VectorStep(
            client._native,
            self._observations,
            None,
            self._actions,
            self._infos,
            copy=self._copy,
            autoreset=AUTORESET_MODES[client.autoreset_mode.name],
        )

    def _actions_in(self, arrays: Any, objects: Any) -> Actions:
        """Returns the actions that `step` takes, in these arrays of the region."""
        return Actions(self.single_action_space, self.num_envs, arrays, objects)

    def _close_engine(self, pending: bool) -> None:
        # A worker that has not ended its step or call may never do so.
        self._workers.close(_PENDING_SECS if pending or self._workers.calls.is_asked else _CLOSE_SECS)
        self._infos.close()

    def _last_observations(self) -> Obs:
        if self.closed:
            raise self._closed_error("reset")
        return self._observations.batch()

    def _write_actions(self, env_ids: list[int], actions: Any) -> None:
        self._actions.write_rows(env_ids, actions)

    def _observations_of(self, env_ids: list[int], obs: Obs) -> Obs:
        return self._observations.rows(env_ids)

    def _reset_chosen(self, mask: Mask, seed: Seed, options: Mapping[str, Any] | None) -> None:
        self._send_reset(mask, seed, options)
        try:
            self._client.recv()
        except EnvFailed:
            self._ready = True  # the other environments were reset
            raise

    def _send_reset(self, mask: Mask, seed: Seed, options: Any) -> None:
        if not mask.all():  # it returns the rows of all environments
            self._lanes.expect_taken("reset", self._lanes.busy)
        self._lanes.drop()
        self._workers.set_reset_options(options)
        indices = env_indices(mask, self.num_envs)
        self._client._native.send_reset(indices, seeds_of(seed, indices))

    def reset(
        self, *, seed: Seed = None, options: Mapping[str, Any] | None = None, env_ids: EnvIds = None
    ) -> tuple[Obs, dict[str, Any]]:
        """Starts new episodes. Arguments and results are those of `ClientVectorEnv.reset`.

        Each environment's `reset` gets `options` without "reset_mask". Steps of halves and of batches are dropped only
        if all environments are reset; with `env_ids` they go on. infos["env_failed"] marks other environments whose
        rows are invalid, since they have raised an exception and await their reset.

        Raises:
          StepPending: In halves or batches: results of these environments were not received, and `recv` did not raise
            EnvFailed for them. With "reset_mask": results of any environment were not received.
          EnvFailed: An environment raised an exception; the others were reset.
          TandemError: As `ClientVectorEnv.reset`.
        """
        try:
            if env_ids is None or self.closed or not self._lanes.busy:
                return super().reset(seed=seed, options=options, env_ids=env_ids)
            _, seed, ids = self._expect_reset("reset", seed, options, env_ids)
            self._chosen = None
            assert ids is not None
            self._workers.set_reset_options(options)
            chosen = sorted(ids)
            infos = self._lanes.reset(chosen, seeds_of(seed, chosen))
            return self._observations.rows(ids), chosen_infos(infos, ids)
        except StepTimeout as error:
            raise self._with_stacks(error) from None

    def reset_each(
        self, options: Sequence[Mapping[str, Any] | None], *, seed: Seed = None
    ) -> tuple[Obs, list[tuple[list[int], dict[str, Any]]]]:
        """Resets all environments, each with options of its own.

        One environment of each worker is reset at a time.

        Args:
          options: What each environment's `reset` gets.
          seed: As for `reset`.

        Returns:
          Observations of all environments, and a list of parts: the environments that were reset together, and their
          infos, as `reset` returns them.

        Raises:
          TandemError: As `reset`.
        """
        if len(options) != self.num_envs:
            raise InvalidArgument(f"options: expected {self.num_envs}, one for each environment, found {len(options)}")
        seeds = seeds_of(seed, list(range(self.num_envs)))
        rows = self._client._native.worker_rows
        obs: Obs = None
        parts: list[tuple[list[int], dict[str, Any]]] = []
        failed: EnvFailed | None = None
        try:
            for turn in range(max(count for _, count in rows)):
                ids = [first + turn for first, count in rows if turn < count]
                its = OptionsOfWorkers([options[first + turn] if turn < count else None for first, count in rows])
                its_seeds = [seeds[index] for index in ids if seeds] or None
                mask, chosen_seeds, _ = self._expect_reset("reset", its_seeds, None, ids)
                self._lanes.drop()
                try:
                    obs, infos = self._reset_expected(mask, chosen_seeds, its)
                except EnvFailed as error:
                    failed = failed or error  # the others are reset nevertheless
                else:
                    parts.append((ids, infos))
        except StepTimeout as error:
            raise self._with_stacks(error) from None
        if failed is not None:
            raise failed
        return obs, parts

    def step(self, actions: Any, env_ids: EnvIds = None) -> StepResults:
        """Steps every environment once, or some. Arguments and results are those of `ClientVectorEnv.step`.

        `actions` may also be what `gymnasium.vector.utils.iterate` accepts. With `env_ids` all results are copies.

        Raises:
          EnvFailed: An environment raised an exception, or returned a value that is not one of its space. The others
            were stepped; this one fails until it is reset.
          PeerGone: A worker has ended. The message names it and its environments.
          StepTimeout: Not all workers answered in time; the message has the stacks of those that did not.
          TandemError: As `ClientVectorEnv.step`.
        """
        if not self._ready:
            raise self._not_ready_error("step")
        try:
            if env_ids is None and self._batches is None:
                return self._stepper.step(actions)
            self.send(actions, env_ids)
            return self.recv()
        except StepTimeout as error:
            raise self._with_stacks(error) from None

    def send(self, actions: Any, env_ids: EnvIds = None, *, half: int | None = None) -> None:
        """Starts a step and returns at once; `recv` returns its results.

        Args:
          actions: As for `step`; with `half` one for each environment of this half.
          env_ids: As for `step`. With WorkerOptions.batch_size: all environments of some workers, such as those that
            `recv` has returned.
          half: 0 or 1: steps one half of the environments, `half_ids(half)`. The other half may be in a step
            meanwhile.

        Raises:
          TandemError: As `step`, without the errors of waiting.
        """
        if half is None and self._batches is None:
            super().send(actions, env_ids)
            return
        if not self._ready:
            raise self._not_ready_error("send")
        if half is not None:
            self._halves.send(half, actions)
        elif self._batches is not None:
            ids = list(range(self.num_envs)) if env_ids is None else distinct_ids(env_ids, self.num_envs)
            self._batches.send(ids, actions)

    def recv(self, timeout: float | None = None, *, half: int | None = None) -> StepResults:
        """Waits for what was sent, as `ClientVectorEnv.recv`; with `half`: of this half, which must have been sent.

        With WorkerOptions.batch_size: of the workers that are ready first, `batch_size` environments together;
        infos["env_id"] has their indices, int64[batch_size].

        Raises:
          EnvFailed: As `step`. Of a half or batch, the next call returns the results. In infos, "env_failed" marks the
            environments that failed; they are truncated, with reward 0 and the observation of their reset, if there was
            one meanwhile.
          TandemError: As `step`.
        """
        try:
            if half is None and self._batches is None:
                return super().recv(timeout)
            if self.closed:
                raise self._closed_error("recv")
            if half is not None:
                return self._halves.recv(half, timeout)
            assert self._batches is not None
            return self._batches.recv(timeout)
        except StepTimeout as error:
            raise self._with_stacks(error) from None

    @property
    def lanes(self) -> Lanes:
        """Steps of single workers, for other packages' vector environments."""
        return self._lanes

    def half_ids(self, half: int) -> list[int]:
        """Returns the environments of a half, 0 or 1: those of the first workers, or of the others."""
        return self._halves.env_ids(half)

    @functools.cached_property
    def _halves(self) -> Halves:
        return Halves(self._lanes)

    def _with_stacks(self, error: StepTimeout) -> StepTimeout:
        error.args = (f"{error}{self._workers.stacks(error.workers[:_MOST_STACKS] or None)}",)
        return error

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]  # as Gymnasium's SyncVectorEnv has it
        """The seed of each environment's random generator; -1: unknown."""
        return self.get_attr("np_random_seed")

    @property  # type: ignore[misc]  # read-only, as in Gymnasium's SyncVectorEnv
    def np_random(self) -> tuple[Any, ...]:  # type: ignore[override]
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
          StepTimeout: A worker did not answer within WorkerOptions.call_timeout; the message has its stack. It goes on,
            its answer is dropped, and the next step waits for its end.
        """
        return self.call_chosen(None, name, *args, **kwargs)

    def call_chosen(self, env_ids: EnvIds, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Does as `call`, for some environments: int[n], or a mask bool[num_envs]; None: for all."""
        return self._apply(*call_of_each(name, args, kwargs), env_ids)

    def is_wrapped(self, wrapper: type | tuple[type, ...], env_ids: EnvIds = None) -> tuple[bool, ...]:
        """Returns whether each environment, or each of `env_ids`, has a wrapper of this class; imports nothing.

        `wrapper` may be a tuple of classes. InvalidArgument: one cannot be pickled.
        """
        try:
            classes = [
                (cloudpickle._DYNAMIC_CLASS_TRACKER_BY_CLASS.get(each), pickled(each))
                for each in (wrapper if isinstance(wrapper, tuple) else (wrapper,))
            ]
        except Exception as error:  # of any object's __reduce__
            found = f"{shown(wrapper)}: {error}"
            raise InvalidArgument(f"is_wrapped: expected classes that can be pickled, found {found}") from error
        return self._apply("is_wrapped", functools.partial(_is_wrapped, classes), env_ids)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Returns a copy of an attribute of every environment, or of its wrappers; errors are those of `call`."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Sets an attribute of every environment, or of its wrappers; errors are those of `call`.

        `values` is a list or tuple with a value for each environment; another value is for all.
        """
        if not isinstance(values, list | tuple):
            values = [values] * self.num_envs
        if len(values) != self.num_envs:
            raise InvalidArgument(
                f"values: expected {self.num_envs} values, one for each environment, found {len(values)}"
            )
        function = functools.partial(_set, text("name", name), list(values))
        self._apply(f"set_attr({name!r})", function, None)

    def set_chosen(self, env_ids: EnvIds, name: str, value: Any) -> None:
        """Sets an attribute of some environments, int[n] or a mask bool[num_envs], to one value."""
        function = functools.partial(_set, text("name", name), [value] * self.num_envs)
        self._apply(f"set_attr({name!r})", function, env_ids)

    def _saved_states(self, ids: list[int]) -> list[bytes]:
        if not self._ready:
            raise self._not_ready_error("save_state")
        if failed := [i for i in ids if self._client.fields["status", ""][i] == RAISED]:
            raise Unsupported(f"save_state: expected environments that work, found that {failed} await a reset")
        infos, ended = self._infos.rows(), self._client.dones != 0
        if self.autoreset_mode.name == AutoresetMode.SAME_STEP.name:
            ended[:] = False
        each = list(iterate(self.observation_space, self._last_observations()))
        saved = {i: Saved(each[i], infos.get(i, {}), bool(ended[i])) for i in ids}
        states = self._apply("save_state", functools.partial(_save_state, saved), ids)
        if refusal := next((state for state in states if isinstance(state, str)), None):
            raise Unsupported(refusal)
        marks = self._fingerprints()
        return [sealed(PYTHON, marks[i][0], state) for i, state in zip(ids, states, strict=True)]

    def _stage_states(self, states: Sequence[bytes], ids: list[int]) -> None:
        marks = self._fingerprints()
        payloads = [
            unsealed(f"states[{at}]", state, PYTHON, *marks[env_id])
            for at, (env_id, state) in enumerate(zip(ids, states, strict=True))
        ]
        resets = self.autoreset_mode.name == AutoresetMode.SAME_STEP.name
        try:
            for part in batches(payloads):  # each worker reads all of one
                chosen = dict(zip(ids[part], payloads[part], strict=True))
                self._apply("load_state", functools.partial(_stage_state, chosen), ids[part])
            self._apply("load_state", functools.partial(env_states.commit, resets), ids)
        except BaseException:
            self._discard_states(ids)
            raise

    def _discard_states(self, ids: list[int]) -> None:
        self._apply("load_state", env_states.discard, ids)

    @property
    def _steps_in_parts(self) -> bool:
        return bool(self._lanes.busy)

    def _fingerprints(self) -> tuple[tuple[int, str], ...]:
        """Returns that of each environment: their spaces are equal, their classes need not be."""
        if self._marks is None:
            self._marks = self._apply("load_state", _fingerprint_of, None)
        return self._marks

    def _apply(self, what: str, function: Callable[[Any, int], Any], env_ids: EnvIds) -> tuple[Any, ...]:
        if self.closed:
            raise self._closed_error(what)
        if env_ids is None:
            return tuple(self._workers.calls.apply(what, function))
        ids = distinct_ids(env_ids, self.num_envs)
        results = self._workers.calls.apply(what, function, ids)
        of_each = dict(zip(sorted(ids), results, strict=True))
        return tuple(of_each[env_id] for env_id in ids)


def _add_facts(native: NativeClient, pool: WorkerPool, failures: NDArray[np.int64], error: TandemError) -> None:
    if isinstance(error, EnvFailed) and native.last_failure is not None:
        error.worker, error.env_id = native.last_failure
        error.episode, step = failures[error.env_id].tolist()
        error.step = None if step < 0 else step
    elif isinstance(error, PeerGone):
        pool.name_worker(error)
    elif isinstance(error, StepTimeout):
        error.workers = tuple(native.awaited_workers)


def call_of_each(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, Callable[[Any, int], Any]]:
    """Returns a call's text for messages, and the function(env, env_id) that makes it."""
    return f"call({name!r})", functools.partial(_call, text("name", name), args, kwargs)


# In the workers; pickled by their names.
def _call(name: str, args: Any, kwargs: Any, env: Any, env_id: int) -> Any:
    attribute = env.get_wrapper_attr(name)
    return attribute(*args, **kwargs) if callable(attribute) else attribute


def _save_state(saved: dict[int, Saved], env: Any, env_id: int) -> bytes | str:
    try:
        return env_states.pickled(env, env_id, saved[env_id])
    except Unsupported as error:
        return str(error)  # another exception of an environment is EnvFailed


def _stage_state(payloads: dict[int, bytes], env: Any, env_id: int) -> None:
    env_states.stage(env, env_id, payloads[env_id])


def _fingerprint_of(env: Any, env_id: int) -> tuple[int, str]:
    del env_id
    return env_states.fingerprint_of(env)


def _set(name: str, values: list[Any], env: Any, env_id: int) -> None:
    env.set_wrapper_attr(name, values[env_id])


def _is_wrapped(classes: list[tuple[str | None, bytes]], env: Any, env_id: int) -> bool:
    wrappers: tuple[type, ...] = ()
    for key, data in classes:
        # The class that cloudpickle has made here, or one of modules that are loaded; of another there is no object.
        its = cloudpickle._DYNAMIC_CLASS_TRACKER_BY_ID.get(key)
        if its is not None or modules_of(data) <= sys.modules.keys():
            wrappers += (its or pickle.loads(data),)
    while not isinstance(env, wrappers):
        if not isinstance(env, gymnasium.Wrapper):
            return False
        env = env.env
    return True


def functions_of(task: Any, num_envs: int | None, *, argument: str = "task") -> Sequence[Any]:
    """Returns a function for each environment: `task` is one function, or a sequence of them.

    `argument` is the caller's name of `task`, for errors.

    Raises:
      InvalidArgument: Something else, none, or another number of them than `num_envs`.
    """
    if callable(task):
        return [task] * (1 if num_envs is None else num_envs)
    functions = list(task) if isinstance(task, Sequence) else [task]
    if not functions or not all(callable(function) for function in functions):
        name = "a task's name, " if argument == "task" else ""
        raise InvalidArgument(
            f"{argument}: expected {name}a function that makes an environment, or a sequence of such functions, found "
            f"{shown(task)}"
        )
    if num_envs not in (None, len(functions)):
        raise InvalidArgument(
            f"num_envs: expected {len(functions)}, the number of functions, found {num_envs}; omit it"
        )
    return functions
