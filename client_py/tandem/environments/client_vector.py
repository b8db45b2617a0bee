"""`ClientVectorEnv`: what vector environments have in common whose environments are in other processes."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from tandem import errors
from tandem._native import NEXT_OF_ENVIRONMENTS, VectorStep
from tandem.arguments import seconds
from tandem.arguments.arrays import seeds_of
from tandem.client import AutoresetMode, SharedMemoryClient
from tandem.environments.row_infos import chosen_infos
from tandem.environments.sealed_state import expected_states
from tandem.environments.vector_arguments import Mask, Seed, distinct_ids, reset_mask, seed_of_chosen
from tandem.errors import ClientClosed, EngineFailed, InvalidArgument, StepPending, TandemError
from tandem.handles import NotPicklable

if TYPE_CHECKING:
    from tandem.environments.image_step import ImageStep
    from tandem.sb3 import SharedMemoryVecEnv

Obs = Any  # arrays, or dicts and tuples of arrays
EnvIds = Sequence[int] | NDArray[np.integer] | Mask | None
GymnasiumVectorEnv = gymnasium.vector.VectorEnv[Any, Any, NDArray[Any]]
StepResults = tuple[Obs, NDArray[np.float64], Mask, Mask, dict[str, Any]]


class EnvironmentClosed(ClientClosed, gymnasium.error.ClosedEnvironmentError):
    """The environments were closed. Make new ones."""


class ResetNeeded(TandemError, gymnasium.error.ResetNeeded):
    """A step before the first reset. Call `reset` first."""


class Sb3Hint(type):
    """Adds a hint to the text of the class, which Stable-Baselines3 prints when it refuses the class."""

    def __str__(cls) -> str:
        """Returns the class's repr and the hint."""
        return f"{cls!r} (Stable-Baselines3 takes envs.as_sb3())"


class ClientVectorEnv(NotPicklable, GymnasiumVectorEnv, metaclass=Sb3Hint):
    """A Gymnasium vector environment over a `SharedMemoryClient`, and what serves the client's region.

    Each derived class names Gymnasium's class as a base, too: skrl looks for it among the direct bases. Attributes are
    those of Gymnasium's class; `metadata` has "autoreset_mode", "render_modes" and "render_fps".
    """

    # The options of a reset besides "reset_mask"; None: any.
    _reset_options: tuple[str, ...] | None = None

    def __init__(self, client: SharedMemoryClient, *, copy: bool, engine: Any, spaces: tuple[Any, Any]) -> None:
        """Takes over an idle client, whose `autoreset_mode` is the environments', and its server; `close` closes both.

        `engine` is an EngineProcess, or WorkerProcesses; None: `close` closes the client alone. `spaces` are
        observation space and action space of one environment.
        """
        self._engine, self._copy = engine, copy
        self.num_envs = client.num_envs
        self.single_observation_space, self.single_action_space = spaces
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._ready = False  # to step: reset, and not closed
        # The environments whose step was sent and not received; None: all.
        self._chosen: list[int] | None = None
        self._attach(client)

    def _attach(self, client: SharedMemoryClient) -> None:
        self._client = client
        client._native.serve_environments()
        self.autoreset_mode = gymnasium.vector.AutoresetMode[self._autoreset_of(client).name]
        self.metadata = {**self._metadata(), "autoreset_mode": self.autoreset_mode}
        self._stepper: VectorStep | ImageStep = self._make_stepper(client)

    def _autoreset_of(self, client: SharedMemoryClient) -> AutoresetMode:
        return client.autoreset_mode

    def _change_autoreset(self, mode: AutoresetMode) -> None:
        """Changes the autoreset mode; all environments are reset."""
        self._attach(self._client.replaced(mode))

    def _metadata(self) -> dict[str, Any]:
        raise NotImplementedError

    def _make_stepper(self, client: SharedMemoryClient) -> VectorStep:
        raise NotImplementedError

    def _reset_chosen(self, mask: Mask, seed: Seed, options: Mapping[str, Any] | None) -> None:
        """Resets the chosen environments; `options` are the caller's without "reset_mask"."""
        raise NotImplementedError

    def _write_actions(self, env_ids: list[int], actions: Any) -> None:
        """Writes the actions of some environments into the region."""
        raise NotImplementedError

    def _observations_of(self, env_ids: list[int], obs: Obs) -> Obs:
        """Returns the observations of some environments; `obs` are those of all."""
        return obs[np.asarray(env_ids)]

    def __len__(self) -> int:
        """Returns the number of environments."""
        return self.num_envs

    @property
    def client(self) -> SharedMemoryClient:
        """The client of the engine: `stats()`, `name`, `images`, and the services."""
        return self._client

    def reset(
        self, *, seed: Seed = None, options: Mapping[str, Any] | None = None, env_ids: EnvIds = None
    ) -> tuple[Obs, dict[str, Any]]:
        """Starts new episodes. A step that an interrupt or a time-out left pending is received first, and dropped.

        Args:
          seed: Environment i starts from seed + i, or from seed[i]; None: each environment's random stream continues.
          options: None, or a mapping. "reset_mask", bool[num_envs]: the environments to reset; the others keep their
            state. The call removes it from a dict, as Gymnasium's SyncVectorEnv does.
          env_ids: Indices of the environments to reset, int[n]; a sequence of seeds then has n. Not with "reset_mask".

        Returns:
          Observations, as `step` returns them, and infos of the environments that were reset. With `env_ids` both are
          of these environments alone, in their order.

        Raises:
          InvalidArgument: An invalid seed, mask, index or option.
          TandemError: As `SharedMemoryClient.reset`.
        """
        mask, seed, ids = self._expect_reset("reset", seed, options, env_ids)
        obs, infos = self._reset_expected(mask, seed, options)
        return (obs, infos) if ids is None else (self._observations_of(ids, obs), chosen_infos(infos, ids))

    def _reset_expected(self, mask: Mask, seed: Seed, options: Any) -> tuple[Obs, dict[str, Any]]:
        """Resets what `_expect_reset` returned; returns observations and infos of all environments."""
        try:
            self._reset_chosen(mask, seed, options)
        finally:
            if not self._client.pending:
                self._chosen = None
        self._ready = True
        results: tuple[Obs, dict[str, Any]] = self._stepper.reset_results()
        return results

    def _expect_reset(
        self, call: str, seed: Seed, options: Mapping[str, Any] | None, env_ids: EnvIds
    ) -> tuple[Mask, Seed, list[int] | None]:
        """Checks the arguments of a reset, and receives what is pending; the reset may be sent now.

        Returns the environments to reset, their seeds, and their indices if the caller gave some.
        """
        if self.closed:
            raise self._closed_error(call)
        mask = reset_mask(options, self.num_envs, self._reset_options)
        ids = None
        if env_ids is None:
            seed = seed_of_chosen(seed, mask)
        else:
            if options is not None and "reset_mask" in options:
                raise InvalidArgument("env_ids: expected None with options['reset_mask'], found both; nothing was sent")
            ids = distinct_ids(env_ids, self.num_envs)
            seeds = dict(zip(ids, seeds_of(seed, ids), strict=False))
            mask = np.isin(np.arange(self.num_envs), ids)
            seed = [seeds[index] for index in sorted(seeds)] or None
        if isinstance(options, dict):
            # Gymnasium's own vector environments do this too; wrappers expect it.
            options.pop("reset_mask", None)
        self._drop_pending()
        # Before it is sent: an interrupt may come at any time.
        self._stepper.expect_reset(mask)
        self._chosen = ids
        return mask, seed, ids

    def _drop_pending(self) -> None:
        if self._client.pending:
            with contextlib.suppress(EngineFailed):
                self._client.recv()

    def step(self, actions: Any, env_ids: EnvIds = None) -> StepResults:
        """Steps every environment once, or some.

        Args:
          actions: An element of `action_space`, or lists of the same structure; with `env_ids` one for each of these.
          env_ids: Indices of the environments to step, int[n], or a mask bool[num_envs]; None: all. The others are
            neither stepped nor reset.

        Returns:
          Observations, the caller's to keep (with copy=False: the region's own arrays, valid until the next step);
          rewards float64[num_envs]; terminations and truncations bool[num_envs]; infos. With `env_ids` all are of these
          environments alone, in their order.

        Raises:
          InvalidAction: Actions of another shape or kind; nothing was sent.
          InvalidArgument: Invalid indices; or with autoreset disabled: an episode has ended and was not reset. Nothing
            was sent.
          ResetNeeded: `reset` was not called yet.
          EnvironmentClosed: `close` was called.
          TandemError: As `SharedMemoryClient.step`.
        """
        if not self._ready:
            raise self._not_ready_error("step")
        if env_ids is None:
            return self._stepper.step(actions)
        self.send(actions, env_ids)
        return self.recv()

    def send(self, actions: Any, env_ids: EnvIds = None) -> None:
        """Starts a step and returns at once; `recv` returns its results.

        Arguments and errors are those of `step`, without the errors of waiting.
        """
        if not self._ready:
            raise self._not_ready_error("send")
        if env_ids is None:
            self._stepper.send(actions)
            return
        ids = distinct_ids(env_ids, self.num_envs)
        if not self._client.pending and not self._client.closed:  # else the next call refuses
            self._write_actions(ids, actions)
        self._stepper.send_chosen(ids)
        self._chosen = ids

    def recv(self, timeout: float | None = None) -> StepResults:
        """Waits for the results of what was sent.

        Args:
          timeout: Seconds; 0 polls once, `math.inf` waits without limit, None takes the client's own.

        Returns:
          As `step`; of a reset that was interrupted: rewards 0 and no flags.

        Raises:
          NoStepPending: Nothing was sent.
          TandemError: As `SharedMemoryClient.recv`.
        """
        if self.closed:
            raise self._closed_error("recv")
        ids = self._chosen
        try:
            results = self._stepper.recv(None if timeout is None else seconds("timeout", timeout))
        finally:
            if not self._client.pending:
                self._chosen = None
        self._ready = True  # also where it was a reset that had been interrupted
        return results if ids is None else self._only(ids, *results)

    def _only(self, ids: list[int], obs: Obs, *others: Any) -> StepResults:
        """Returns the results of some environments; the arguments are those of all."""
        rewards, terminations, truncations, infos = others
        index = np.asarray(ids)
        chosen = rewards[index], terminations[index], truncations[index], chosen_infos(infos, ids)
        return self._observations_of(ids, obs), *chosen

    def save_state(self, env_ids: EnvIds = None) -> list[bytes]:
        """Returns the state of each environment: all that decides its future.

        `load_state` continues from it: in the same or other rows, here or in another process with equal environments.
        `env_ids` as for `step`. A state of an environment in Python contains pickles: load only your own.

        Raises:
          Unsupported: One cannot be saved; the text has the reason, such as an attribute and its type.
          EnvFailed: An environment's own `get_state` raised an exception.
          StepPending: The last step was not received.
          TandemError: As `SharedMemoryClient.step`.
        """
        return self._saved_states(self._expect_states("save_state", env_ids))

    def load_state(self, states: Sequence[bytes], env_ids: EnvIds = None) -> tuple[Obs, dict[str, Any]]:
        """Puts states of `save_state` in place, one for each environment, and returns results as `reset` does.

        They are the observation and infos that the environment had returned last. It counts as a reset: it drops a
        pending step, and ends a failure. If a state is refused, no environment changes; after EngineFailed, reset the
        environments. An episode that had ended continues with its reset, in the next step with NEXT_STEP, and at once
        with SAME_STEP.

        Raises:
          InvalidArgument: Another number of states, or damaged bytes.
          LayoutMismatch: A state of other environments or of a newer Tandem.
          TandemError: As `save_state` and `reset`.
        """
        if not self._steps_in_parts:
            self._drop_pending()
        ids = self._expect_states("load_state", env_ids)
        expected_states(states, len(ids))
        self._stage_states(states, ids)
        try:
            return self.reset(env_ids=None if env_ids is None else ids)
        except BaseException:
            with contextlib.suppress(TandemError):
                self._discard_states(ids)
            raise

    def _saved_states(self, ids: list[int]) -> list[bytes]:
        raise NotImplementedError

    def _stage_states(self, states: Sequence[bytes], ids: list[int]) -> None:
        """Gives environments the states that their next reset puts in place; after an exception none has one."""
        raise NotImplementedError

    def _discard_states(self, ids: list[int]) -> None:
        """Drops states that no reset has put in place."""
        raise NotImplementedError

    def _expect_states(self, call: str, env_ids: EnvIds) -> list[int]:
        if self.closed:
            raise self._closed_error(call)
        if self._client.pending or self._steps_in_parts:
            raise StepPending(f"{call}: expected results that were received, found a pending step; call recv() first")
        return list(range(self.num_envs)) if env_ids is None else distinct_ids(env_ids, self.num_envs)

    @property
    def _steps_in_parts(self) -> bool:
        """Whether steps of halves or batches have begun."""
        return False

    def close_extras(self, **kwargs: Any) -> None:
        """Closes the client, and the engine if the constructor got one; `close` calls this.

        Raises:
          TandemError: As `SharedMemoryClient.close`; nothing was closed.
        """
        pending = self._client.pending
        self._client.close()
        self._ready = False
        if self._engine is not None:
            self._close_engine(pending)

    def _close_engine(self, pending: bool) -> None:
        """Closes the engine; `pending`: a step or reset was not received."""
        self._engine.close()

    def as_sb3(self) -> "SharedMemoryVecEnv":
        """Makes a Stable-Baselines3 VecEnv of the environments, which it closes; imports that package, and so torch.

        Their autoreset mode becomes SAME_STEP, which Stable-Baselines3 expects, and all are reset.

        Raises:
          ModuleNotFoundError: Stable-Baselines3 is not installed.
          InvalidArgument: The environments were made with copy=False.
          EnvironmentClosed: `close` was called.
          PeerGone: The engine has ended.
        """
        if self.closed:
            raise self._closed_error("as_sb3")
        if self._engine is not None and self._engine.poll() is not None:  # a new client would wait for it
            text = f"as_sb3: expected a running engine, found that it has ended; {NEXT_OF_ENVIRONMENTS}"
            raise errors.from_native("PeerGone", text, self._client.name)
        if not self._copy:
            raise InvalidArgument(
                "as_sb3: expected environments whose observations are copies, found copy=False; Stable-Baselines3 "
                "keeps observations across steps. Omit copy=False"
            )
        try:
            from tandem.sb3 import SharedMemoryVecEnv
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "as_sb3: expected Stable-Baselines3, found none; pip install stable-baselines3", name=error.name
            ) from error

        if self.autoreset_mode.name != AutoresetMode.SAME_STEP.name:
            self._change_autoreset(AutoresetMode.SAME_STEP)
        return SharedMemoryVecEnv(self)

    def _closed_error(self, call: str) -> EnvironmentClosed:
        return EnvironmentClosed(f"{call}: expected open environments, found that close() was called; make new ones")

    def _not_ready_error(self, call: str) -> TandemError:
        if self.closed or self._client.closed:  # of an interrupted close(), the latter alone
            return self._closed_error(call)
        if self._client.pending:
            return StepPending(f"{call}: expected a reset that has ended, found one that is pending; call recv() first")
        return ResetNeeded(f"{call}: expected a reset before the first step, found none; call reset() first")
