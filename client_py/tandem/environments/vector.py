"""`SharedMemoryVectorEnv`: an engine's environments as a `gymnasium.vector.VectorEnv`."""

import contextlib
import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, DTypeLike, NDArray

from tandem import errors
from tandem._native import AUTORESET_MODES, NEXT_OF_ENVIRONMENTS, VectorStep
from tandem.arguments import contract_seed, env_indices, seeds_of, shown
from tandem.client import AutoresetMode, SharedMemoryClient
from tandem.engine.process import EngineProcess
from tandem.environments.description import describe
from tandem.environments.images import separate
from tandem.environments.registration import OTHER_TASK, TASKS
from tandem.environments.vector_arguments import Mask, Seed, as_floats, obs_dtype, reset_mask, seed_of_chosen
from tandem.errors import ClientClosed, EngineFailed, InvalidArgument, TandemError, Unsupported
from tandem.handles import NotPicklable
from tandem.services.contract import SimulationContract

if TYPE_CHECKING:
    from tandem.sb3 import SharedMemoryVecEnv

Obs = NDArray[Any]
StepResults = tuple[Obs, NDArray[np.float64], Mask, Mask, dict[str, Any]]

_UNKNOWN_SEED = -1  # Gymnasium's number


class EnvironmentClosed(ClientClosed, gymnasium.error.ClosedEnvironmentError):
    """The environments were closed. Make new ones."""


class ResetNeeded(TandemError, gymnasium.error.ResetNeeded):
    """A step before the first reset. Call `reset` first."""


class _Sb3Hint(type):
    """Adds a hint to the text of the class, which Stable-Baselines3 prints when it refuses the class."""

    def __str__(cls) -> str:
        """Returns the class's repr and the hint."""
        return f"{cls!r} (Stable-Baselines3 takes envs.as_sb3())"


class SharedMemoryVectorEnv(NotPicklable, gymnasium.vector.VectorEnv[Obs, ArrayLike, NDArray[Any]], metaclass=_Sb3Hint):
    """A `SharedMemoryClient`'s environments as a Gymnasium vector environment; `make_vec` makes one with its engine.

    Attributes:
      num_envs: Number of environments.
      single_observation_space: Box[obs_size] of the task.
      observation_space: The same for all environments, Box[num_envs, obs_size].
      single_action_space: Box[act_size] or Discrete of the task.
      action_space: The same for all environments: Box[num_envs, act_size] or MultiDiscrete[num_envs].
      autoreset_mode: When an ended episode is followed by the next: one of `gymnasium.vector.AutoresetMode`.
      metadata: Has "autoreset_mode", "render_modes" and "render_fps".

    >>> import tandem
    >>> with tandem.launch_engine("HalfCheetah-v5", num_envs=2) as engine:
    ...     envs = tandem.SharedMemoryVectorEnv(tandem.SharedMemoryClient(engine.name))
    ...     envs.observation_space.shape, envs.action_space.shape
    ...     envs.close()
    ((2, 17), (2, 6))
    """

    _instead = (
        "its engine has one client, in this process; pass the arguments of make_vec and call it in the other process"
    )

    def __init__(
        self,
        client: SharedMemoryClient,
        *,
        copy: bool = True,
        dtype: DTypeLike | None = None,
        render_mode: str | None = None,
        engine: EngineProcess | None = None,
    ) -> None:
        """Takes over a client, and its engine if one is given: `close` closes both.

        Args:
          client: Idle; its `autoreset_mode` is the environments'.
          copy: As for `make_vec`.
          dtype: As for `make_vec`.
          render_mode: None, or "rgb_array" for an engine that draws all environments.
          engine: The engine that the client is attached to.

        Raises:
          InvalidArgument: No client, or an invalid dtype.
          LayoutMismatch: The engine's description of its task is invalid.
          Unsupported: The engine's observations or actions are fields, not float32 rows.
        """
        if not isinstance(client, SharedMemoryClient):
            raise InvalidArgument(f"client: expected a tandem.SharedMemoryClient, found {shown(client)}")
        self._client = client
        self._engine = engine
        self._task = describe(client)
        self._copy = copy
        self._dtype = obs_dtype(self._task.observation_space.dtype, dtype, copy)
        self.num_envs = client.num_envs
        single = self._task.observation_space
        low, high = single.low.astype(self._dtype), single.high.astype(self._dtype)
        self.single_observation_space = spaces.Box(low, high, single.shape, self._dtype.type)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.single_action_space = self._task.action_space
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.render_mode = render_mode
        # The contract of each environment, and the seed that the engine got with it.
        self._contracts: list[tuple[SimulationContract, int | None]] = [(SimulationContract(), None)] * self.num_envs
        self._seeds = [_UNKNOWN_SEED] * self.num_envs
        self._ready = False  # to step: reset, and not closed
        self._attach(client)

    def _attach(self, client: SharedMemoryClient) -> None:
        self._client = client
        client._native.serve_environments()
        self.autoreset_mode = gymnasium.vector.AutoresetMode[client.autoreset_mode.name]
        render_modes = ["rgb_array"] if client.has_frames else []
        self.metadata = {
            "render_modes": render_modes,
            "render_fps": TASKS.get(client.task, OTHER_TASK).render_fps,
            "autoreset_mode": self.autoreset_mode,
        }
        single = self._task.action_space
        self._stepper = VectorStep(
            client._native,
            self._task.infos,
            wide=self._dtype == np.float64,
            copy=self._copy,
            autoreset=AUTORESET_MODES[client.autoreset_mode.name],
            choices=int(single.n) if isinstance(single, spaces.Discrete) else None,
            convert=functools.partial(as_floats, single, self.action_space),
        )

    def __len__(self) -> int:
        """Returns the number of environments."""
        return self.num_envs

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]  # as Gymnasium's SyncVectorEnv has it
        """The seed of each environment's last reset that had one; -1 before."""
        return tuple(self._seeds)

    @property
    def client(self) -> SharedMemoryClient:
        """The client of the engine: `stats()`, `name`, `images`, and the services."""
        return self._client

    def reset(
        self,
        *,
        seed: Seed = None,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[Obs, dict[str, Any]]:
        """Starts new episodes. A step that an interrupt or a time-out left pending is received first, and dropped.

        Args:
          seed: Environment i starts from seed + i, or from seed[i]; None: each environment's random stream continues.
          options: None, or a mapping with any of these. "reset_mask", bool[num_envs]: the environments to reset; the
            others keep their state. The call removes it from a dict, as Gymnasium's SyncVectorEnv does. "contract", a
            `SimulationContract`: how the reset environments differ from the task from now on; see
            `SharedMemoryClient.reset`.

        Returns:
          Observations, as `step` returns them, and infos of the environments that were reset.

        Raises:
          InvalidArgument: An invalid seed, mask or option.
          TandemError: As `SharedMemoryClient.reset`.
        """
        if self.closed:
            raise self._closed_error("reset")
        mask = reset_mask(options, self.num_envs)
        seed = seed_of_chosen(seed, mask)
        if isinstance(options, dict):
            # Gymnasium's own vector environments do this too; wrappers expect it.
            options.pop("reset_mask", None)
        if self._client.pending:
            with contextlib.suppress(EngineFailed):  # the results are dropped
                self._client.recv()
        contract = (options or {}).get("contract")
        # Before it is sent: an interrupt may come at any time.
        self._stepper.expect_reset(mask)
        self._client.reset(mask, seed=seed, contract=contract)
        self._note_reset(contract, mask, seed)
        self._ready = True
        return self._stepper.reset_results()

    def step(self, actions: ArrayLike) -> StepResults:
        """Steps every environment once.

        Args:
          actions: float32[num_envs, act_size], or int[num_envs] for discrete ones. Other floats and integers are
            rounded to float32; lists become arrays.

        Returns:
          Observations float64 or float32[num_envs, obs_size], the caller's to keep (with copy=False: the region's own
          array, valid until the next step); rewards float64[num_envs]; terminations and truncations bool[num_envs];
          infos. Observations and rewards are in the task's units.

        Raises:
          InvalidAction: Actions of another shape or kind, or not finite; nothing was sent.
          InvalidArgument: With autoreset disabled: an episode has ended and was not reset; nothing was sent.
          ResetNeeded: `reset` was not called yet.
          EnvironmentClosed: `close` was called.
          TandemError: As `SharedMemoryClient.step`.
        """
        if not self._ready:
            raise self._not_ready_error("step")
        return self._stepper.step(actions)

    def send(self, actions: ArrayLike) -> None:
        """Starts a step and returns at once; `recv` returns its results.

        Actions and errors are those of `step`, without the errors of waiting.
        """
        if not self._ready:
            raise self._not_ready_error("send")
        self._stepper.send(actions)

    def recv(self) -> StepResults:
        """Waits for the results of what was sent.

        Returns:
          As `step`; of a reset that was interrupted: rewards 0 and no flags.

        Raises:
          NoStepPending: Nothing was sent.
          TandemError: As `SharedMemoryClient.recv`.
        """
        if self.closed:
            raise self._closed_error("recv")
        results = self._stepper.recv()
        self._ready = True  # also where it was a reset that had been interrupted
        return results

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:
        """Draws every environment as it is after the last step or reset; takes milliseconds for each.

        Returns:
          uint8[height, width, 3] for each environment, the caller's to keep: R, G, B, the top row first. Without a
          render mode: None, with a warning, as Gymnasium's own environments.

        Raises:
          Unsupported: The machine cannot draw; the message names the missing packages.
          StepPending: The last step was not received.
          StepTimeout: No image in time; the session continues.
          TandemError: As `SharedMemoryClient.drawn_frame`.
        """
        if self.closed:
            raise self._closed_error("render")
        if self.render_mode is None:
            gymnasium.logger.warn(
                'render() was called without a render mode; make the environments with render_mode="rgb_array"'
            )
            return None
        return separate(*self._client.drawn_frame(), self.num_envs)

    def close_extras(self, **kwargs: Any) -> None:
        """Closes the client, and the engine if the constructor got one; `close` calls this.

        Raises:
          TandemError: As `SharedMemoryClient.close`; nothing was closed.
        """
        self._client.close()
        self._ready = False
        if self._engine is not None:
            self._engine.close()

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Calls a method of every environment; the only one is "render", without arguments.

        Returns:
          As `render`; () without a render mode.

        Raises:
          Unsupported: Another name, or arguments: the environments are not Python objects.
          TandemError: As `render`.
        """
        if name == "render" and not args and not kwargs:
            return self.render() or ()
        raise self._no_objects(f"call({name!r})", "`client` has the services of the engine")

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Returns an attribute of every environment.

        Args:
          name: "render_mode", "spec", "np_random_seed", "observation_space" or "action_space".

        Raises:
          Unsupported: Another name: the environments are not Python objects.
        """
        if name == "np_random_seed":
            return self.np_random_seed
        of_each = {
            "render_mode": self.render_mode,
            "spec": self.spec,
            "observation_space": self.single_observation_space,
            "action_space": self.single_action_space,
        }
        if name not in of_each:
            raise self._no_objects(f"get_attr({name!r})", f"expected one of {[*of_each, 'np_random_seed']}")
        return (of_each[name],) * self.num_envs

    def set_attr(self, name: str, values: object) -> NoReturn:
        """Raises Unsupported: the environments are not Python objects."""
        raise self._no_objects(
            f"set_attr({name!r})",
            "set a task's options in make_vec, such as ctrl_cost_weight=0.1, and change episodes by "
            'reset(options={"contract": tandem.services.SimulationContract(...)})',
        )

    def _no_objects(self, call: str, instead: str) -> Unsupported:
        return Unsupported(
            f"{call}: the environments are in the engine's process and are not Python objects; {instead}"
        )

    def _closed_error(self, call: str) -> EnvironmentClosed:
        return EnvironmentClosed(f"{call}: expected open environments, found that close() was called; make new ones")

    def _not_ready_error(self, call: str) -> TandemError:
        if self.closed or self._client.closed:  # of an interrupted close(), the latter alone
            return self._closed_error(call)
        return ResetNeeded(f"{call}: expected a reset before the first step, found none; call reset() first")

    def as_sb3(self) -> "SharedMemoryVecEnv":
        """Makes a Stable-Baselines3 VecEnv of the environments; imports that package, and so torch.

        Their autoreset mode becomes SAME_STEP, which Stable-Baselines3 expects, and all are reset.

        Returns:
          A `stable_baselines3.common.vec_env.VecEnv`; closing it closes the environments.

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
                "as_sb3: expected Stable-Baselines3, found none; pip install stable-baselines3",
                name=error.name,
            ) from error

        if self._client.autoreset_mode is not AutoresetMode.SAME_STEP:
            self._attach(self._client.replaced(AutoresetMode.SAME_STEP))
        return SharedMemoryVecEnv(self)

    def _note_reset(self, contract: SimulationContract | None, mask: Mask, seed: Seed) -> None:
        """Records the contract and the seeds of the environments that are reset."""
        if contract is None and seed is None:
            return
        indices = env_indices(mask, self.num_envs)
        for index, its_seed in zip(indices, seeds_of(seed, indices) or [None] * len(indices), strict=True):
            if contract is not None:
                self._contracts[index] = contract, contract_seed(its_seed, index)
            if its_seed is not None:
                self._seeds[index] = its_seed
