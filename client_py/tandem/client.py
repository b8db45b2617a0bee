"""`SharedMemoryClient`: the trainer's side of a region.

Length: one class, with the contract of each method.
"""

import contextlib
import enum
import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem._native import AUTORESET_MODES, CudaArray, NativeClient, StepMethod
from tandem.arguments import flag, one_of, seconds, text
from tandem.arguments.arrays import contract_seed, env_indices, seeds_of
from tandem.errors import ForkedChild, InvalidArgument, Unsupported
from tandem.handles import ClosesOnExit, NotPicklable
from tandem.regions import region_to_attach
from tandem.services.contract import Contracts, SimulationContract, UnusedContractFields, contracts_of
from tandem.services.of_engine import EngineServices

Results = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.uint8]]


class AutoresetMode(enum.Enum):
    """When an ended episode is followed by the next; names and values are those of Gymnasium's enum.

    NEXT_STEP: the step after the episode's last resets the environment and ignores its action; the reward is 0.
    SAME_STEP: the episode's last step also resets: `obs` shows the new episode, `final_obs` the last of the old.
    DISABLED: only `reset` and `resets` reset environments; ended episodes continue until then.
    """

    NEXT_STEP = "NextStep"
    SAME_STEP = "SameStep"
    DISABLED = "Disabled"


@dataclass(frozen=True)
class ClientStats:
    """How a client's time was spent since it attached.

    Step times are counted in buckets, so quantiles are exact to a quarter.

    Attributes:
      exchanges: Steps and resets received.
      shared_core_exchanges: Those of them that the engine began on the client's core (docs/waiting.md).
      early_wakes: How often the engine has woken before a request that it forecast, since its start.
      early_hits: How often the request came while it then polled.
      steps_per_second: Environments times exchanges, per second of `policy_secs + transport_secs + physics_secs`.
      step_p50_us: Median of the microseconds from actions sent to results received.
      step_p99_us: 99th percentile of the same.
      policy_secs: Seconds in the trainer's own code, from one exchange's results to the next one's actions.
      transport_secs: Seconds between trainer and engine: round trips less the engine's part.
      physics_secs: Seconds that the engine took to reset and step.
    """

    exchanges: int
    shared_core_exchanges: int
    early_wakes: int
    early_hits: int
    steps_per_second: float
    step_p50_us: float
    step_p99_us: float
    policy_secs: float
    transport_secs: float
    physics_secs: float


class SharedMemoryClient(ClosesOnExit, NotPicklable, EngineServices, StepMethod):
    """Steps the environments of an engine in another process, through shared memory.

    The arrays (`obs`, `actions`, ...) are NumPy views of that memory; no step copies results. They belong to the engine
    between `send` and `recv`, and otherwise to the caller. The next step overwrites what `step` returned: copy what
    must last. A view stays readable for as long as it is referenced, also after `close`.

    An engine has one client at a time. A client belongs to the process that made it; it cannot be pickled or used in a
    forked child. One thread at a time may step, reset, reconnect or close.

    Other threads may call the engine's services meanwhile: `get_schema`, `services`, `set_service`, and the methods of
    `agent`, `mujoco`, `telemetry`, `scene`, `camera`, `viewport` and `debug`. Other processes may too: `Attendant`.

    After `StepTimeout`, and usually after `KeyboardInterrupt`, the step or reset is still pending; see `pending`. Then
    `recv` waits again, `reconnect` starts a new session, `close` ends this one; `step`, `send` and `reset` raise
    `StepPending`.

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

    _instead = (
        "its engine has one client, in this process; make one where it is used: SharedMemoryClient({self.name!r})"
    )

    def __init__(
        self,
        name: str | None = None,
        *,
        pid: int | None = None,
        timeout: float = 10.0,
        attach_timeout: float | None = None,
        wait: str = "adaptive",
        share_core: bool = True,
        autoreset_mode: AutoresetMode = AutoresetMode.SAME_STEP,
    ) -> None:
        """Attaches to the engine that serves the region; waits for an engine to appear.

        Args:
          name: The region's name, as given to the engine, also with "{pid}"; None: the environment variable
            LUCKY_SHM_NAME, else "tandem".
          pid: The process id of the engine whose region it is, instead of a name, or for the name's "{pid}".
          timeout: Seconds that every waiting call may take, unless the call has a timeout of its own.
          attach_timeout: Seconds that this call may take; None: `timeout`.
          wait: How to wait: "spin" never sleeps (lowest latency, needs a core of its own; under a real-time policy it
            sleeps after 10 ms), "block" sleeps at once (leaves cores free), "adaptive" spins for as long as spinning
            has recently been faster than sleeping, then sleeps.
          share_core: Whether an engine may sleep on this client's core between two steps, and begin the next one there
            while the client sleeps (docs/waiting.md); never with "spin", or under a real-time policy.
          autoreset_mode: When an ended episode is followed by the next; Gymnasium's enum is accepted too.

        Raises:
          NotReady: No engine serves the region, and none appeared in time.
          StepTimeout: An engine serves it, but did not answer in time.
          AlreadyAttached: The engine has a client already.
          LayoutMismatch: The region has another version, or is damaged.
          AccessDenied: The region belongs to another user.
          InvalidArgument: An invalid name or option.
        """
        mode = AUTORESET_MODES.get(getattr(autoreset_mode, "name", ""))
        if mode is None:
            raise InvalidArgument(f"autoreset_mode: expected a tandem.AutoresetMode, found {autoreset_mode!r}")
        one_of("wait", text("wait", wait), ("spin", "adaptive", "block"))
        share_core = flag("share_core", share_core, after="")
        timeout = seconds("timeout", timeout)
        attach_timeout = timeout if attach_timeout is None else seconds("attach_timeout", attach_timeout)
        self._name = region_to_attach(name, pid, attach_timeout)
        self._native = NativeClient(self._name, attach_timeout, wait, share_core, mode)
        self._native.set_timeout(timeout)
        EngineServices.__init__(self, self._native)
        StepMethod.__init__(self, self._native)
        self._autoreset_mode = AutoresetMode[autoreset_mode.name]
        self._timeout, self._attach_timeout = timeout, attach_timeout
        self._wait, self._share_core = wait, share_core
        self._adopt_views()

    def _adopt_views(self) -> None:
        native = self._native
        self._obs, self._final_obs, self._actions = native.obs, native.final_obs, native.actions
        self._rewards, self._dones, self._resets = native.rewards, native.dones, native.resets
        self._infos, self._final_infos = native.infos, native.final_infos
        self._terminateds, self._truncateds = native.terminateds, native.truncateds
        self._images, self._final_images = native.images, native.final_images
        self._fields = native.fields
        self._cuda: dict[tuple[str, str], CudaArray] | None = None

    def send(self, actions: NDArray[np.float32]) -> None:
        """Starts a step and returns at once; `recv` returns its results.

        Actions and errors are those of `step`, without the errors of waiting.
        """
        self._native.send(actions)

    def recv(self, timeout: float | None = None) -> Results:
        """Waits for the results of what was sent.

        Args:
          timeout: Seconds; 0 polls once, `math.inf` waits without limit, None takes the client's own.

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
        contract: Contracts = None,
    ) -> NDArray[np.float32]:
        """Starts a new episode in some environments; the others keep their state.

        A contract is sent first, and the engine adopts it before it resets any environment. It also holds for later
        resets of these environments, until another contract replaces it. `agent.set_contract` sends a contract without
        a reset.

        Args:
          env_ids: Indices, or a mask bool[num_envs]; None: all environments.
          seed: Environment i starts from seed + i; or one seed for each of `env_ids`, in their order. None, for all or
            for one: the environment's own random stream continues. A contract's draws use the same seed.
          contract: How these environments differ from the task from now on; `SimulationContract()`: not at all; None:
            unchanged. A sequence has one for each of `env_ids`, in their order. Fields without effect on the task are
            reported by the warning `UnusedContractFields`. If that warning is an error, the engine has adopted the
            contract, but no environment is reset. If the engine refuses one of several, those before it hold from the
            next reset on.

        Returns:
          obs, float32[num_envs, obs_size]: the view that `step` returns.

        Raises:
          InvalidArgument: Invalid index, mask, seed or contract; no environment was reset.
          TandemError: As `step` and, with a contract, as `agent.set_contract`.
        """
        indices = env_indices(env_ids, self.num_envs)
        seeds = seeds_of(seed, indices)
        contracts = contracts_of(contract, len(indices))
        if any(contracts) and not self.pending:  # a pending exchange is refused below
            its_seeds = map(contract_seed, seeds or [None] * len(indices), indices)
            if unused := self._set_contracts(zip(indices, contracts, its_seeds, strict=True)):
                warnings.warn(UnusedContractFields(unused), stacklevel=_callers_level())
        self._native.send_reset(indices, seeds)
        return self._native.recv()[0]

    def _set_contracts(self, contracts: Iterable[tuple[int, SimulationContract | None, int | None]]) -> tuple[str, ...]:
        """Sends the contracts of environments, each with its `contract_seed`; returns fields without effect."""
        equal: dict[tuple[SimulationContract, int | None], list[int]] = {}
        for index, contract, seed in contracts:
            if contract is not None:
                equal.setdefault((contract, seed), []).append(index)
        unused: dict[str, None] = {}
        for (contract, seed), env_ids in equal.items():
            unused |= dict.fromkeys(self.agent.set_contract(contract, env_ids, seed=seed))
        return tuple(unused)

    def drawn_frame(self, timeout: float | None = None) -> tuple[NDArray[np.uint8], bytes]:
        """Makes the engine draw its environments as they are now, and waits `timeout` seconds, None: the client's own.

        Returns uint8[height, width, 3], the caller's to keep, and the frame's metadata: JSON with "step", "envs",
        "rows", "columns", "episodes" and, if drawing failed, "error" and "error_text".

        Raises:
          Unsupported: The engine was started without frames.
          StepPending: The last step or reset was not received.
          StepTimeout: No frame in time; the session continues.
          TandemError: As `step`.
        """
        return self._native.drawn_frame(None if timeout is None else seconds("timeout", timeout))

    def reconnect(self, timeout: float | None = None) -> None:
        """Leaves the session and attaches to the engine that now serves the name, such as one that was started again.

        All environments are reset. All views are new ones: read them from the client again. Waits `timeout` seconds for
        an engine; None: the client's own.

        Raises:
          LayoutMismatch: Its task, sizes or layout differ from before.
          TandemError: As the constructor, `ForkedChild` and `ClientClosed`.
        """
        wait = None if timeout is None else seconds("timeout", timeout)
        try:
            self._native.reconnect(wait)
        finally:  # a KeyboardInterrupt may come just after the new views have
            self._adopt_views()

    def replaced(self, autoreset_mode: AutoresetMode) -> "SharedMemoryClient":
        """Closes this client and returns another that differs by the autoreset mode. All environments are reset.

        Raises:
          TandemError: As `close` and the constructor.
        """
        self.close()
        return SharedMemoryClient(
            self._name,
            timeout=self._timeout,
            attach_timeout=self._attach_timeout,
            wait=self._wait,
            share_core=self._share_core,
            autoreset_mode=autoreset_mode,
        )

    def close(self) -> None:
        """Releases the engine for another client. A second call has no effect; views stay readable.

        Raises:
          ConcurrentUse: Another thread is inside a call.
          ForkedChild: The client belongs to this process's parent.
        """
        self._native.close()
        self._cuda = None

    def stats(self) -> ClientStats:
        """Returns how the time was spent since the client attached. Any thread may call this at any time."""
        stats = self._native.stats()
        policy_secs = stats.policy_ns / 1e9
        round_trip_secs = stats.round_trips.total_ns / 1e9
        physics_secs = min(stats.engine_steps.total_ns / 1e9, round_trip_secs)
        total_secs = policy_secs + round_trip_secs
        return ClientStats(
            exchanges=stats.exchanges,
            shared_core_exchanges=stats.shared_core_exchanges,
            early_wakes=stats.early_wakes,
            early_hits=stats.early_hits,
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
        """The array for actions, float32[num_envs, act_size]: fill it, and `step(client.actions)` copies nothing."""
        return self._actions

    @property
    def rewards(self) -> NDArray[np.float32]:
        """Rewards of the last step, float32[num_envs]; valid until the next send."""
        return self._rewards

    @property
    def dones(self) -> NDArray[np.uint8]:
        """1 if the last step ended the episode, uint8[num_envs]; valid until the next send."""
        return self._dones

    @property
    def terminateds(self) -> NDArray[np.uint8]:
        """1 if the episode ended in a terminal state, uint8[num_envs]; valid until the next send."""
        return self._terminateds

    @property
    def truncateds(self) -> NDArray[np.uint8]:
        """1 if the episode was cut short, as by a time limit, uint8[num_envs]; valid until the next send."""
        return self._truncateds

    @property
    def resets(self) -> NDArray[np.uint8]:
        """Reset flags, uint8[num_envs]: set 1, and the next step resets that environment instead of stepping it."""
        return self._resets

    @property
    def final_obs(self) -> NDArray[np.float32]:
        """Last observations of ended episodes, float32[num_envs, obs_size].

        With `AutoresetMode.SAME_STEP` a row is valid where `dones` is 1; other rows are old.
        """
        return self._final_obs

    @property
    def infos(self) -> NDArray[np.float64]:
        """The task's infos, float64[num_envs, info_size]: `description` names the columns."""
        return self._infos

    @property
    def final_infos(self) -> NDArray[np.float64]:
        """The infos of the last step of ended episodes: valid where and when `final_obs` is."""
        return self._final_infos

    @property
    def images(self) -> NDArray[np.uint8] | None:
        """Images of the states that `obs` describes, uint8[num_envs, height, width, 3], RGB, the top row first.

        None unless the engine was started with images. Valid until the next send.
        """
        return self._images

    @property
    def final_images(self) -> NDArray[np.uint8] | None:
        """Images of the states that `final_obs` describes, as `images`; valid where and when `final_obs` is.

        None also for an engine from before these images. In real time the image of an episode that ended between two
        steps is an old one.
        """
        return self._final_images

    @property
    def fields(self) -> dict[tuple[str, str], NDArray[Any]]:
        """The region's fields, [num_envs, ...] of any dtype, by role and path; empty unless the engine has fields.

        The roles are "obs", "final_obs", "action", "reward", "status", "episode_return" and "episode_length". The path
        is a JSON pointer into the space: "" for the whole, "/image" for the key of a Dict, "/0" for the item of a Tuple
        (docs/protocol.md). `obs`, `final_obs` and `actions` have no columns if the engine has no such float32 rows:
        fill the fields of "action", then call `step(client.actions)`. Views as `obs`: valid until the next send.
        """
        return dict(self._fields)

    @property
    def fields_cuda(self) -> dict[tuple[str, str], CudaArray]:
        """The arrays that the engine has on a GPU, [num_envs, ...], by role and path as in `fields`.

        The roles are "obs", "final_obs", "reward" (float32) and "images". `torch.from_dlpack(array)` is a tensor of the
        engine's memory, without a copy; JAX and CuPy take the array by DLPack or by the CUDA array interface, too. Each
        such export makes the consumer's current stream wait for the results of the last exchange: export again after
        each step. A tensor is valid until the next send. Send, reset, reconnect and close wait until the work on the
        streams of these exports is done; other streams are the caller's matter. After `close`, `reconnect` and
        `PeerGone` an export raises. Tensors from before keep the memory open, but their contents are undefined
        (docs/gpu.md).

        Raises:
          Unsupported: The engine has no arrays on a GPU, or is in this process.
          AccessDenied: The engine belongs to another user, or the system forbids to take its descriptor.
          GpuDriverMissing, GpuDriverTooOld: This process has no CUDA driver that can open them.
          GpuOtherDevice: They are on a device that this process does not see.
          GpuOtherContext: Another context than the device's primary one is current.
          GpuStaleHandle: The engine has freed them, or died.
          GpuFailed: The driver reported another error.
          StepPending: The last step was not received.
          TandemError: As `step`.
        """
        if self._cuda is None:
            self._cuda = self._native.cuda_arrays()
        return dict(self._cuda)

    @property
    def obs_cuda(self) -> CudaArray:
        """Observations on the engine's GPU, float32[num_envs, obs_size], or the one field of "obs".

        Lifetime, order and errors: those of `fields_cuda`, which has the observations of a Dict.
        """
        return self._cuda_array("obs")

    @property
    def images_cuda(self) -> CudaArray:
        """Images on the engine's GPU, uint8[num_envs, height, width, 3 or 4], RGB or RGBA; as `obs_cuda`."""
        return self._cuda_array("images")

    def _cuda_array(self, role: str) -> CudaArray:
        arrays = self.fields_cuda if self._cuda is None else self._cuda
        if (role, "") not in arrays:
            raise Unsupported(
                f"region '{self._name}': expected one array {role} on a GPU, found {sorted(arrays)}; see fields_cuda"
            )
        return arrays[role, ""]

    @property
    def gpu_path(self) -> str:
        """How the engine offers arrays on a GPU: "CUDA IPC", "Vulkan", or "" for none."""
        return self._native.gpu_path

    @property
    def has_cpu_obs(self) -> bool:
        """Whether the engine writes `obs`, `final_obs` and `images`; if not, they are on its GPU only."""
        return self._native.has_cpu_obs

    @property
    def image_step(self) -> int:
        """Number of the exchange that `images` show, counted over all clients of the engine; 0: no exchange yet."""
        return self._native.image_step

    @property
    def has_frames(self) -> bool:
        """Whether the engine was started with frames: `drawn_frame` works, and viewers show its environments."""
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
        """The simulated task, such as "HalfCheetah-v5"."""
        return self._native.task

    @property
    def description(self) -> bytes:
        """The task's spaces, infos and time limit, as JSON (docs/protocol.md); b"": the engine describes none."""
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
        """The engine's process id as the engine wrote it: a label, wrong across containers."""
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
        """The region's address in this process."""
        return self._native.region_address

    @property
    def offsets(self) -> dict[str, int]:
        """Offset of each array in bytes from the start of the region, by name."""
        return dict(self._native.offsets)

    def __exit__(self, *error: object) -> None:
        """Closes the client, except in a forked child, whose parent still uses it."""
        with contextlib.suppress(ForkedChild):
            self.close()

    def __repr__(self) -> str:
        """Names the region, the task, the sizes and the state."""
        state = "closed" if self.closed else "pending" if self.pending else "open"
        return (
            f"<tandem.SharedMemoryClient {self._name!r}: {self.task!r}, num_envs={self.num_envs}, "
            f"obs_size={self.obs_size}, act_size={self.act_size}, engine_pid={self.engine_pid}, {state}>"
        )


def _callers_level() -> int:
    """Counts the frames up to the user's line, for a warning."""
    ours = ("client", "environments", "sb3", "tianshou", "torch", "vector")
    between = (*(f"tandem.{room}" for room in ours), "gymnasium", "stable_baselines3", "tianshou", "torchrl")
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and f"{frame.f_globals.get('__name__')}.".startswith(
        tuple(f"{n}." for n in between)
    ):
        level, frame = level + 1, frame.f_back
    return level
