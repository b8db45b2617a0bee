"""`SharedMemoryVectorEnv`: an engine's environments as a `gymnasium.vector.VectorEnv`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, DTypeLike, NDArray

from tandem.arguments import contract_seed, described, env_indices, seeds_of
from tandem.client import AutoresetMode, SharedMemoryClient
from tandem.description import describe
from tandem.engine_process import EngineProcess
from tandem.errors import EngineFailed, InvalidAction, InvalidArgument
from tandem.infos import Mask, add_final, collect
from tandem.pictures import separate
from tandem.services.contract import SimulationContract

if TYPE_CHECKING:
    from tandem.sb3 import SharedMemoryVecEnv

Obs = NDArray[Any]
StepResults = tuple[Obs, NDArray[np.float64], Mask, Mask, dict[str, Any]]


class SharedMemoryVectorEnv(gymnasium.vector.VectorEnv[Obs, ArrayLike, NDArray[Any]]):
    """The environments of a `SharedMemoryClient`, as Gymnasium wants them; `make_vec` makes one with its engine.

    Attributes:
      num_envs: Number of environments.
      single_observation_space: Box[obs_size] of the task.
      observation_space: The same for all environments, Box[num_envs, obs_size].
      single_action_space: Box[act_size] or Discrete of the task.
      action_space: The same for all environments: Box[num_envs, act_size] or MultiDiscrete[num_envs].
      metadata: Has "autoreset_mode".

    >>> import tandem
    >>> with tandem.launch_engine("HalfCheetah-v5", num_envs=2) as engine:
    ...     envs = tandem.SharedMemoryVectorEnv(tandem.SharedMemoryClient(engine.name))
    ...     envs.observation_space.shape, envs.action_space.shape
    ...     envs.close()
    ((2, 17), (2, 6))
    """

    def __init__(
        self,
        client: SharedMemoryClient,
        *,
        copy: bool = True,
        dtype: DTypeLike | None = None,
        render_mode: str | None = None,
        engine: EngineProcess | None = None,
    ) -> None:
        """Takes over a client, and with it an engine if one is given: `close` closes both.

        Args:
          client: Idle; its `autoreset_mode` is the environments'.
          copy: As for `make_vec`.
          dtype: As for `make_vec`.
          render_mode: None, or "rgb_array" for an engine that draws all environments.
          engine: The one that the client is attached to.

        Raises:
          InvalidArgument: A dtype that cannot be.
          LayoutMismatch: The engine's description of its task makes no sense.
        """
        self._client = client
        self._engine = engine
        self._task = describe(client)
        self._copy = copy
        self._dtype = _obs_dtype(self._task.observation_space.dtype, dtype, copy)
        self.num_envs = client.num_envs
        single = self._task.observation_space
        low, high = single.low.astype(self._dtype), single.high.astype(self._dtype)
        self.single_observation_space = spaces.Box(low, high, single.shape, self._dtype.type)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.single_action_space = self._task.action_space
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.render_mode = render_mode
        # Each environment's, and the seed that the engine was told with it.
        self._contracts: list[tuple[SimulationContract, int | None]] = [(SimulationContract(), None)] * self.num_envs
        self._attach(client)

    def _attach(self, client: SharedMemoryClient) -> None:
        self._client = client
        mode = gymnasium.vector.AutoresetMode[client.autoreset_mode.name]
        render_modes = ["rgb_array"] if client.has_frames else []
        self.metadata = {"render_modes": render_modes, "autoreset_mode": mode}
        # Of the last exchange, also while it is pending: who is reset rather than stepped; whether nobody is stepped.
        self._resetting: Mask = np.ones(self.num_envs, np.bool_)
        self._resets_only = True

    @property
    def client(self) -> SharedMemoryClient:
        """What speaks to the engine: its `stats()`, its name, its region, and its services beside the steps."""
        return self._client

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[Obs, dict[str, Any]]:
        """Starts new episodes. What is pending after an interrupt or a time-out is received first, and dropped.

        Args:
          seed: Environment i starts from seed + i, or from seed[i]; None: each environment's random numbers go on.
          options: None, or a mapping with any of these. "reset_mask", bool[num_envs]: who is reset; the others keep
            their state; taken out of a dict, as by Gymnasium's SyncVectorEnv. "contract", a `SimulationContract`: how
            those that are reset differ from the task's own from now on, as by `SharedMemoryClient.reset`.

        Returns:
          Observations, as `step` returns them, and infos of those that were reset.

        Raises:
          InvalidArgument: A seed, mask or option that cannot be.
          TandemError: As `SharedMemoryClient.reset`.
        """
        mask = self._reset_mask(options)
        seed = self._seed_of_chosen(seed, mask)
        if isinstance(options, dict):
            # As Gymnasium's own vector environments do; wrappers that look for the mask afterwards are used to that.
            options.pop("reset_mask", None)
        if self._client.pending:
            try:
                self._client.recv()
            except EngineFailed:
                pass  # of what is dropped
        self._resetting, self._resets_only = mask, True
        contract = (options or {}).get("contract")
        self._client.reset(mask, seed=seed, contract=contract)
        self._note_contract(contract, mask, seed)
        return self._observe(), collect(self._task.infos, self._client.infos, np.zeros_like(mask), mask)

    def step(self, actions: ArrayLike) -> StepResults:
        """Steps every environment once.

        Args:
          actions: float32[num_envs, act_size], or int[num_envs] for discrete ones. Other floats and integers are
            rounded to float32; lists become arrays.

        Returns:
          Observations (dtype and lifetime: see `make_vec`), rewards float64[num_envs], terminations and truncations
          bool[num_envs], infos.

        Raises:
          InvalidAction: Actions of another shape or kind, or not finite; nothing was sent.
          InvalidArgument: With autoreset disabled: an episode has ended and was not reset; nothing was sent.
          TandemError: As `SharedMemoryClient.step`.
        """
        self.send(actions)
        return self.recv()

    def send(self, actions: ArrayLike) -> None:
        """Starts a step and returns at once; `recv` brings its results.

        Args:
          actions: As for `step`.

        Raises:
          TandemError: As `step`, but for what happens while waiting.
        """
        floats = self._as_floats(actions)
        client = self._client
        if not client.pending and not client.closed:
            resetting = np.zeros(self.num_envs, np.bool_)
            if client.autoreset_mode is AutoresetMode.NEXT_STEP:
                resetting = self._ended()
            elif client.autoreset_mode is AutoresetMode.DISABLED and (ended := self._ended()).any():
                raise InvalidArgument(
                    "expected no ended episode at a step with autoreset disabled, found environments "
                    f"{np.flatnonzero(ended)[:10].tolist()}; reset(options={{'reset_mask': mask}}) starts their next"
                )
            # Before it is sent: an interrupt may come at any time.
            self._resetting, self._resets_only = resetting, False
        client.send(floats)

    def recv(self) -> StepResults:
        """Waits for the results of what was sent.

        Returns:
          As `step`; of a reset that was interrupted, with rewards 0 and no flags.

        Raises:
          NoStepPending: Nothing was sent.
          TandemError: As `SharedMemoryClient.recv`.
        """
        client = self._client
        client.recv()
        if self._resets_only:
            nobody = np.zeros(self.num_envs, np.bool_)
            infos = collect(self._task.infos, client.infos, nobody, self._resetting)
            return self._observe(), np.zeros(self.num_envs), nobody, nobody.copy(), infos
        terminations = client.terminateds.astype(np.bool_)
        truncations = client.truncateds.astype(np.bool_)
        if client.autoreset_mode is not AutoresetMode.SAME_STEP:
            infos = collect(self._task.infos, client.infos, ~self._resetting, self._resetting)
        else:
            ended = terminations | truncations
            reset = ended | self._resetting
            infos = collect(self._task.infos, client.infos, ~reset, reset)
            if ended.any():
                final_obs = client.final_obs.astype(self._dtype, copy=False)
                add_final(infos, ended, final_obs, self._task.infos, client.final_infos)
        return self._observe(), client.rewards.astype(np.float64), terminations, truncations, infos

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:
        """Draws every environment as it is after the last step or reset, which takes milliseconds each.

        Returns:
          uint8[height, width, 3] for each environment, the caller's to keep: R, G, B, the top row first. Without a
          render mode: None, with a warning, as by Gymnasium's own environments.

        Raises:
          Unsupported: The machine lacks what draws; the message names the packages.
          StepPending: The last step was not received.
          StepTimeout: No picture in time; nothing was lost.
          TandemError: As `SharedMemoryClient.drawn_frame`.
        """
        if self.render_mode is None:
            gymnasium.logger.warn(
                'render() was called without a render mode; make the environments with render_mode="rgb_array"'
            )
            return None
        return separate(*self._client.drawn_frame(), self.num_envs)

    def close_extras(self, **kwargs: Any) -> None:
        """Leaves the engine, and ends it if it is ours; `close` calls this.

        Args:
          kwargs: Ignored, as by Gymnasium's own.
        """
        try:
            self._client.close()
        finally:
            if self._engine is not None:
                self._engine.close()

    def __reduce__(self) -> NoReturn:
        """Refuses.

        Raises:
          TypeError: Always.
        """
        raise TypeError(
            "a SharedMemoryVectorEnv can be neither pickled nor copied: it holds this process's place at the engine; "
            "pass the arguments of make_vec and call it in the other process"
        )

    def as_sb3(self) -> "SharedMemoryVecEnv":
        """Hands the environments to Stable-Baselines3; needs that package, which imports torch.

        They change to SAME_STEP autoreset, which is how Stable-Baselines3 works, and are all reset.

        Returns:
          A `stable_baselines3.common.vec_env.VecEnv`; closing it closes the environments.

        Raises:
          ModuleNotFoundError: There is no Stable-Baselines3.
          InvalidArgument: They were made with copy=False: Stable-Baselines3 keeps observations across steps.
        """
        if not self._copy:
            raise InvalidArgument(
                "as_sb3: expected environments whose observations are copies, found copy=False; Stable-Baselines3 "
                "keeps observations across steps. Leave copy=False out"
            )
        try:
            from tandem.sb3 import SharedMemoryVecEnv
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "as_sb3: expected Stable-Baselines3, found none; pip install stable-baselines3", name=error.name
            ) from error

        if self._client.autoreset_mode is not AutoresetMode.SAME_STEP:
            self._attach(self._client.replaced(AutoresetMode.SAME_STEP))
        return SharedMemoryVecEnv(self)

    def _ended(self) -> Mask:
        """Tells whose episode has ended and was not followed by another."""
        ended: Mask = self._client.dones != 0
        return ended

    def _observe(self) -> Obs:
        return self._client.obs.astype(self._dtype) if self._copy else self._client.obs

    def _seed_of_chosen(self, seed: int | Sequence[int | None] | None, mask: Mask) -> int | Sequence[int | None] | None:
        if isinstance(seed, np.ndarray) and seed.ndim == 0:
            return seed.item()
        if not isinstance(seed, Sequence | np.ndarray):
            return seed
        if len(seed) != self.num_envs:
            raise InvalidArgument(f"seed: expected {self.num_envs} seeds, found {len(seed)}; nothing was sent")
        return [each for each, chosen in zip(seed, mask, strict=True) if chosen]

    def _note_contract(
        self, contract: SimulationContract | None, mask: Mask, seed: int | Sequence[int | None] | None
    ) -> None:
        if contract is None:
            return
        indices = env_indices(mask, self.num_envs)
        for index, its in zip(indices, seeds_of(seed, indices) or [None] * len(indices), strict=True):
            self._contracts[index] = contract, contract_seed(its, index)

    def _reset_mask(self, options: Mapping[str, Any] | None) -> Mask:
        if not isinstance(options, Mapping | None):
            raise InvalidArgument(f"options: expected None or a dict, found {options!r}; nothing was sent")
        if unknown := sorted(set(options or ()) - {"reset_mask", "contract"}, key=str):
            raise InvalidArgument(
                f"options: expected nothing but 'reset_mask' and 'contract', found {unknown}; nothing was sent"
            )
        if not options or "reset_mask" not in options:
            return np.ones(self.num_envs, np.bool_)
        mask: Any = options["reset_mask"]
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (self.num_envs,):
            raise InvalidArgument(
                f"reset_mask: expected a NumPy array bool[{self.num_envs}], found {described(mask)}; nothing was sent"
            )
        if not mask.any():
            raise InvalidArgument("reset_mask: expected at least one True, found none; nothing was sent")
        return np.array(mask, dtype=np.bool_)

    def _as_floats(self, actions: ArrayLike) -> NDArray[np.float32]:
        space = self.single_action_space
        try:
            given = np.asarray(actions)
        except ValueError as error:
            raise InvalidAction(f"actions: expected {self.action_space}, found {error}; nothing was sent") from error
        discrete = isinstance(space, spaces.Discrete)
        if given.shape != self.action_space.shape or given.dtype.kind not in ("iu" if discrete else "iuf"):
            raise InvalidAction(
                f"actions: expected {self.action_space.dtype}{list(self.action_space.shape or ())}, found "
                f"{described(given)}; nothing was sent"
            )
        if isinstance(space, spaces.Discrete):
            wrong = (given < 0) | (given >= space.n)
            if wrong.any():
                index = int(np.argmax(wrong))
                raise InvalidAction(
                    f"actions: expected 0 .. {space.n - 1}, found {given[index]} for environment {index}; nothing was "
                    "sent"
                )
            return given.reshape(-1, 1).astype(np.float32)
        with np.errstate(over="ignore"):  # an infinity, which is refused
            return np.ascontiguousarray(given, dtype=np.float32)


def _obs_dtype(of_task: np.dtype[Any], asked: DTypeLike | None, copy: bool) -> np.dtype[Any]:
    float32 = np.dtype(np.float32)
    if asked is None:
        return of_task if copy else float32
    try:
        dtype = np.dtype(asked)
    except TypeError:
        dtype = np.dtype(object)
    if dtype not in (float32, np.dtype(np.float64)):
        raise InvalidArgument(f"dtype: expected float32 or float64, found {asked!r}")
    if not copy and dtype != float32:
        raise InvalidArgument(f"dtype: expected float32 with copy=False, as the region's own array is, found {dtype}")
    return dtype
