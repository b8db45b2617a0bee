"""`SharedMemoryClient`: a trainer's end of a region that it shares with a simulation engine."""

import enum
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from tandem._native import AUTORESET_MODES, NativeClient, StepMethod, default_region_name
from tandem.arguments import contract_seed, env_indices, seconds, seeds_of, text
from tandem.errors import ForkedChild, InvalidArgument
from tandem.services.contract import SimulationContract, UnusedContractFields
from tandem.services.of_client import ClientServices

Results = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.uint8]]


class AutoresetMode(enum.Enum):
    """When an ended episode is followed by the next; names and values are those of Gymnasium's enum.

    Attributes:
      NEXT_STEP: The step after the one that ended it resets the environment, whatever its action; the reward is 0.
      SAME_STEP: The step that ended it also resets it: `obs` shows the new episode, `final_obs` the last of the old.
      DISABLED: Environments are reset by `reset` and by `resets` only; ended episodes go on until then.
    """

    NEXT_STEP = "NextStep"
    SAME_STEP = "SameStep"
    DISABLED = "Disabled"


@dataclass(frozen=True)
class ClientStats:
    """Where a client's time went since it attached.

    Times of single steps are counted in buckets: quantiles are exact to a quarter.

    Attributes:
      exchanges: Steps and resets received.
      steps_per_second: Environments times exchanges, per second of `policy_secs + transport_secs + physics_secs`.
      step_p50_us: Microseconds from actions sent to results received that half of the exchanges did not exceed.
      step_p99_us: The same for 99 of 100 exchanges.
      policy_secs: Seconds in the trainer's own code, from one exchange's results to the next one's actions.
      transport_secs: Seconds on the way to and from the engine: round trips less the engine's part.
      physics_secs: Seconds that the engine took to reset and step.
    """

    exchanges: int
    steps_per_second: float
    step_p50_us: float
    step_p99_us: float
    policy_secs: float
    transport_secs: float
    physics_secs: float


class SharedMemoryClient(ClientServices, StepMethod):
    """Steps the environments of an engine in another process, through memory that both have mapped.

    The arrays (`obs`, `actions`, ...) are NumPy views of that memory: nothing is copied on the way. They belong to the
    engine between `send` and `recv`, and otherwise to the caller; what `step` returned is overwritten by the next.
    Copy what you keep. A view stays readable for as long as it is referenced, also after `close`.

    An engine has one client at a time, and a client belongs to the process that made it: it can be neither pickled nor
    used in a forked child. One thread at a time may step, reset, reconnect or close.

    Beside the steps any threads may command the engine: `get_schema`, `services`, and the methods of `agent`, `mujoco`,
    `telemetry`, `scene`, `camera`, `viewport` and `debug`.

    After `StepTimeout`, and nearly always after `KeyboardInterrupt`, the exchange is still pending, as `pending` tells:
    `recv` waits on, `reconnect` starts anew, `close` leaves; `step`, `send` and `reset` raise `StepPending`.

    >>> import numpy as np
    >>> import tandem
    >>> with tandem.launch_engine("HalfCheetah-v5", num_envs=4) as engine:
    ...     with tandem.SharedMemoryClient(engine.name) as client:
    ...         obs = client.reset(seed=0)
    ...         actions = np.zeros((client.num_envs, client.act_size), dtype=np.float32)
    ...         obs, rewards, dones = client.step(actions)
    ...         print(obs.shape, rewards.shape, dones.dtype)
    (4, 17) (4,) uint8
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        timeout: float = 10.0,
        attach_timeout: float | None = None,
        wait: str = "adaptive",
        autoreset_mode: AutoresetMode = AutoresetMode.SAME_STEP,
    ) -> None:
        """Attaches to the engine that serves the region; waits for one to come.

        Args:
          name: The region's name, as given to the engine; None: the environment variable LUCKY_SHM_NAME, else "tandem".
          timeout: Seconds to wait in every call that waits, unless told otherwise.
          attach_timeout: Seconds to wait here; None: `timeout`.
          wait: How to wait: "spin" spins without sleeping (lowest latency, needs a core of its own; under a real-time
            policy it sleeps after 10 ms), "block" sleeps at once (leaves cores free), "adaptive" spins for as long as
            that has paid lately, then sleeps.
          autoreset_mode: When an ended episode is followed by the next; Gymnasium's enum does as well.

        Raises:
          NotReady: No engine serves the region, and none came in time.
          StepTimeout: An engine serves it, but did not answer in time.
          AlreadyAttached: The engine has a client already.
          LayoutMismatch: The region is of another version, or damaged.
          AccessDenied: The region belongs to another user.
          InvalidArgument: A name or option that cannot be.
        """
        mode = AUTORESET_MODES.get(getattr(autoreset_mode, "name", ""))
        if mode is None:
            raise InvalidArgument(f"autoreset_mode: expected a tandem.AutoresetMode, found {autoreset_mode!r}")
        self._name = default_region_name() if name is None else name
        self._name, wait = text("name", self._name), text("wait", wait)
        timeout = seconds("timeout", timeout)
        attach_timeout = timeout if attach_timeout is None else seconds("attach_timeout", attach_timeout)
        self._native = NativeClient(self._name, attach_timeout, wait, mode)
        self._native.set_timeout(timeout)
        ClientServices.__init__(self, self._native)
        StepMethod.__init__(self, self._native)
        self._autoreset_mode = AutoresetMode[autoreset_mode.name]
        self._timeout, self._attach_timeout, self._wait = timeout, attach_timeout, wait
        self._adopt_views()

    def _adopt_views(self) -> None:
        native = self._native
        self._obs, self._final_obs, self._actions = native.obs, native.final_obs, native.actions
        self._rewards, self._dones, self._resets = native.rewards, native.dones, native.resets
        self._infos, self._final_infos = native.infos, native.final_infos
        self._terminateds, self._truncateds = native.terminateds, native.truncateds
        self._images = native.images

    def send(self, actions: NDArray[np.float32]) -> None:
        """Starts a step and returns at once; `recv` brings its results.

        Args:
          actions: As for `step`.

        Raises:
          TandemError: As `step`, but for what happens while waiting.
        """
        self._native.send(actions)

    def recv(self, timeout: float | None = None) -> Results:
        """Waits for the results of what was sent.

        Args:
          timeout: Seconds; 0 looks once, `math.inf` waits without limit, None takes the client's own.

        Returns:
          As `step`.

        Raises:
          NoStepPending: Nothing was sent.
          TandemError: As `step`.
        """
        return self._native.recv(None if timeout is None else seconds("timeout", timeout))

    def reset(
        self,
        env_ids: Sequence[int] | NDArray[np.integer] | NDArray[np.bool_] | None = None,
        seed: int | Sequence[int | None] | NDArray[np.integer] | None = None,
        *,
        contract: SimulationContract | None = None,
    ) -> NDArray[np.float32]:
        """Starts a new episode in some environments; all others keep their state.

        A contract is sent first, and the engine adopts it before it resets any environment. It holds for later resets
        of the same environments, too, until another replaces it. `agent.set_contract` sends one without a reset.

        Args:
          env_ids: Indices, or a mask bool[num_envs]; None: all environments.
          seed: Environment i starts from seed + i; or one seed for each of `env_ids`, in their order. None, for all or
            for one: the environment's own random stream goes on. What a contract draws goes by it as well.
          contract: How these environments differ from the task's own from now on; `SimulationContract()`: not at all;
            None: as before. Fields that the task has no use for are warned of (`UnusedContractFields`). Where that
            warning is an error, the engine has adopted the contract, but no environment is reset.

        Returns:
          obs, float32[num_envs, obs_size]: the view that `step` returns.

        Raises:
          InvalidArgument: An index, mask, seed or contract that cannot be; no environment was reset.
          TandemError: As `step` and, with a contract, as `agent.set_contract`.
        """
        indices = env_indices(env_ids, self.num_envs)
        seeds = seeds_of(seed, indices)
        if contract is not None and indices and not self.pending:  # a pending exchange is refused below
            self._set_contract(contract, indices, seeds)
        self._native.send_reset(indices, seeds)
        return self._native.recv()[0]

    def _set_contract(self, contract: SimulationContract, indices: list[int], seeds: list[int | None]) -> None:
        by_seed: dict[int | None, list[int]] = {}
        for index, seed in zip(indices, seeds or [None] * len(indices), strict=True):
            by_seed.setdefault(contract_seed(seed, index), []).append(index)
        for seed, env_ids in by_seed.items():
            unused = self.agent.set_contract(contract, env_ids, seed=seed)
        if unused:
            warnings.warn(UnusedContractFields(unused), stacklevel=_callers_level())

    def drawn_frame(self, timeout: float | None = None) -> tuple[NDArray[np.uint8], bytes]:
        """Has the engine draw its environments as they are now, and waits for the frame.

        Args:
          timeout: Seconds; None takes the client's own.

        Returns:
          uint8[height, width, 3], the caller's to keep, and the frame's metadata: JSON with "step", "envs", "rows",
          "columns", "episodes" and, where drawing failed, "error" and "error_text".

        Raises:
          Unsupported: The engine was started without frames.
          StepPending: An exchange was not received.
          StepTimeout: No frame in time; the session goes on.
          TandemError: As `step`.
        """
        return self._native.drawn_frame(None if timeout is None else seconds("timeout", timeout))

    def reconnect(self, timeout: float | None = None) -> None:
        """Leaves the session and attaches to the engine that now has the name, such as one started again.

        All environments have been reset then, and all views are new ones: take them from the client again.

        Args:
          timeout: Seconds to wait for an engine; None takes the client's own.

        Raises:
          LayoutMismatch: Its task, sizes or layout are not those of before.
          TandemError: As the constructor, `ForkedChild` and `ClientClosed`.
        """
        wait = None if timeout is None else seconds("timeout", timeout)
        try:
            self._native.reconnect(wait)
        finally:  # a KeyboardInterrupt may come just after the new views have
            self._adopt_views()

    def replaced(self, autoreset_mode: AutoresetMode) -> "SharedMemoryClient":
        """Closes this client and attaches another like it. All environments are reset.

        Args:
          autoreset_mode: The new client's.

        Returns:
          The new client.

        Raises:
          TandemError: As `close` and the constructor.
        """
        self.close()
        return SharedMemoryClient(
            self._name,
            timeout=self._timeout,
            attach_timeout=self._attach_timeout,
            wait=self._wait,
            autoreset_mode=autoreset_mode,
        )

    def close(self) -> None:
        """Leaves the engine to the next client. Safe twice; views stay readable.

        Raises:
          ConcurrentUse: Another thread is inside a call.
          ForkedChild: The client belongs to this process's parent.
        """
        self._native.close()

    def stats(self) -> ClientStats:
        """Tells where the time went since the client attached. Any thread may ask, at any time.

        Returns:
          A copy of the counters.
        """
        stats = self._native.stats()
        policy_secs = stats.policy_ns / 1e9
        round_trip_secs = stats.round_trips.total_ns / 1e9
        physics_secs = min(stats.engine_steps.total_ns / 1e9, round_trip_secs)
        total_secs = policy_secs + round_trip_secs
        return ClientStats(
            exchanges=stats.exchanges,
            steps_per_second=stats.exchanges * self.num_envs / total_secs if stats.exchanges else 0.0,
            step_p50_us=stats.round_trips.quantile(0.5) / 1e3,
            step_p99_us=stats.round_trips.quantile(0.99) / 1e3,
            policy_secs=policy_secs,
            transport_secs=round_trip_secs - physics_secs,
            physics_secs=physics_secs,
        )

    @property
    def obs(self) -> NDArray[np.float32]:
        """Observations, float32[num_envs, obs_size], in the task's units; valid until the next send."""
        return self._obs

    @property
    def actions(self) -> NDArray[np.float32]:
        """Where actions go, float32[num_envs, act_size]: fill it in place and `step(client.actions)` copies nothing."""
        return self._actions

    @property
    def rewards(self) -> NDArray[np.float32]:
        """Rewards of the last step, float32[num_envs]; valid until the next send."""
        return self._rewards

    @property
    def dones(self) -> NDArray[np.uint8]:
        """1 where the last step ended the episode, uint8[num_envs]; valid until the next send."""
        return self._dones

    @property
    def terminateds(self) -> NDArray[np.uint8]:
        """1 where the episode ended in a terminal state, uint8[num_envs]; valid until the next send."""
        return self._terminateds

    @property
    def truncateds(self) -> NDArray[np.uint8]:
        """1 where the episode was cut short, as by a time limit, uint8[num_envs]; valid until the next send."""
        return self._truncateds

    @property
    def resets(self) -> NDArray[np.uint8]:
        """Reset requests, uint8[num_envs]: set 1, and the next step resets that environment instead of stepping it."""
        return self._resets

    @property
    def final_obs(self) -> NDArray[np.float32]:
        """Last observations of ended episodes, float32[num_envs, obs_size].

        With `AutoresetMode.SAME_STEP` a row holds what was observed last wherever `dones` is 1; other rows are stale.
        """
        return self._final_obs

    @property
    def infos(self) -> NDArray[np.float64]:
        """What the task tells beside observations, float64[num_envs, info_size]: `description` names the columns."""
        return self._infos

    @property
    def final_infos(self) -> NDArray[np.float64]:
        """As `infos`, of the last step of ended episodes: where and when `final_obs` holds something."""
        return self._final_infos

    @property
    def images(self) -> NDArray[np.uint8] | None:
        """Pictures of the states that `obs` describes, uint8[num_envs, height, width, 3], RGB, the top row first.

        None unless the engine was started with images. Valid until the next send.
        """
        return self._images

    @property
    def image_step(self) -> int:
        """Which exchange `images` belong to, as the engine counts them over all its clients; 0: its birth, or none."""
        return self._native.image_step

    @property
    def has_frames(self) -> bool:
        """Whether the engine was started to draw: `drawn_frame` works, and viewers see something."""
        return self._native.has_frames

    @property
    def num_envs(self) -> int:
        """Number of environments."""
        return self._native.num_envs

    @property
    def obs_size(self) -> int:
        """Number of float32 values in one environment's observation."""
        return self._native.obs_size

    @property
    def act_size(self) -> int:
        """Number of float32 values in one environment's action."""
        return self._native.act_size

    @property
    def task(self) -> str:
        """What the engine simulates, such as "HalfCheetah-v5"."""
        return self._native.task

    @property
    def description(self) -> bytes:
        """What the engine says about its task, as JSON: spaces, infos, time limit (docs/protocol.md); b"": nothing."""
        return self._native.description

    @property
    def name(self) -> str:
        """The region's name."""
        return self._name

    @property
    def autoreset_mode(self) -> AutoresetMode:
        """When an ended episode is followed by the next."""
        return self._autoreset_mode

    @property
    def engine_pid(self) -> int:
        """Process id that the engine gave itself: a label for people, wrong across containers."""
        return self._native.engine_pid

    @property
    def pending(self) -> bool:
        """Whether the results of a step or reset are still to be received."""
        return self._native.pending

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._native.closed

    @property
    def region_address(self) -> int:
        """Where the region lies in this process's memory."""
        return self._native.region_address

    @property
    def offsets(self) -> dict[str, int]:
        """Where each array starts, in bytes from the start of the region, by the array's name."""
        return dict(self._native.offsets)

    def __enter__(self) -> Self:
        """Returns the client."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Closes the client, unless this is a forked child: the parent goes on with it."""
        try:
            self.close()
        except ForkedChild:
            pass

    def __reduce__(self) -> NoReturn:
        """Refuses to be pickled or copied.

        Raises:
          TypeError: Always.
        """
        raise TypeError(
            "a SharedMemoryClient can be neither pickled nor copied: its engine has one client, in this process; "
            f"make one where it is used: SharedMemoryClient({self._name!r})"
        )

    def __repr__(self) -> str:
        """Names the region, what runs there, and the state."""
        state = "closed" if self.closed else "pending" if self.pending else "open"
        return (
            f"<tandem.SharedMemoryClient {self._name!r}: {self.task!r}, num_envs={self.num_envs}, "
            f"obs_size={self.obs_size}, act_size={self.act_size}, engine_pid={self.engine_pid}, {state}>"
        )


def _callers_level() -> int:
    """Counts the frames up to the user's line, for a warning of the function that asks."""
    between = ("tandem.client", "tandem.environments", "tandem.sb3", "gymnasium", "stable_baselines3")
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and f"{frame.f_globals.get('__name__')}.".startswith(
        tuple(f"{n}." for n in between)
    ):
        level, frame = level + 1, frame.f_back
    return level
