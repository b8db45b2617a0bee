import enum
from collections.abc import Callable, Sequence
from typing import Any, Final

import gymnasium
import numpy as np
from numpy.typing import ArrayLike, NDArray

from tandem.spaces.batches import Actions, Observations
from tandem.workers.infos import VectorInfos
from tandem.workers.row_arrays import RowArrays

# number, name, number of the absl code, class of tandem.errors (None for success), meaning
ERROR_TABLE: tuple[tuple[int, str, int, str | None, str], ...]
# Gymnasium's name -> the region's number
AUTORESET_MODES: dict[str, int]
NEXT_OF_ENVIRONMENTS: str
# Of an attendant, without its NUL.
MAX_LABEL_BYTES: int
# NumPy's names of the types of fields, and the limits of schema/layout/field.h.
FIELD_TYPES: tuple[str, ...]
MAX_FIELDS: int
MAX_FIELD_DIMS: int
MAX_FIELD_VALUES: int
MAX_FIELD_PATH_BYTES: int
# Of frames that show environments; from transport/frame_geometry.h.
MAX_RENDER_SIDE: int
MAX_IMAGES: int
MAX_RENDER_SLOTS: int
MAX_FRAME_HZ: float
MAX_FRAME_SIDE: int
# The value of EnvRows' `current` between two exchanges.
NO_ENVIRONMENT: int
# The number of ended episodes that EnvRows keeps.
ROLLING_EPISODES: int

class _Methods(enum.EnumMeta):
    def __getattr__(cls, name: str) -> MethodId: ...

# Its members are the methods of schema/messages/hazel_rpc.fbs, of which a type checker needs one.
class MethodId(enum.IntEnum, metaclass=_Methods):
    GetAgentSchema = 1

def default_region_name() -> str: ...
def check_region_name(name: str) -> None: ...
def engine_pid(name: str) -> int: ...
def remove_if_dead(name: str) -> None: ...
def region_names() -> list[str]: ...

class StepTimes:
    total_ns: Final[int]
    count: Final[int]
    def quantile(self, q: float) -> float: ...

class Stats:
    exchanges: Final[int]
    shared_core_exchanges: Final[int]
    early_wakes: Final[int]
    early_hits: Final[int]
    policy_ns: Final[int]
    round_trips: Final[StepTimes]
    engine_steps: Final[StepTimes]

class NativeFrameWriter:
    def __init__(
        self, run_id: str, width: int, height: int, channels: int, capacity: int, metadata_size: int
    ) -> None: ...
    def publish(
        self,
        frame: bytes | bytearray | memoryview | NDArray[np.uint8],
        last_reward: float,
        rolling_return: float,
        step_rate_hz: float,
        metadata: bytes | bytearray | memoryview | None,
    ) -> int: ...
    def has_reader(self) -> bool: ...
    def invalidate(self) -> None: ...
    def close(self) -> None: ...
    closed: Final[bool]
    head: Final[int]

class NativeFrameReader:
    def __init__(self, run_id: str) -> None: ...
    # number, pixels, last_reward, rolling_return, step_rate_hz, metadata
    def newest(self) -> tuple[int, bytes, float, float, float, bytes | None] | None: ...
    def next(self) -> tuple[int, bytes, float, float, float, bytes | None] | None: ...
    def metrics(self) -> tuple[float, float, float]: ...
    def invalidated(self) -> bool: ...
    def replaced(self) -> bool: ...
    def writer_alive(self) -> bool | None: ...
    # width, height, channels, capacity, metadata room
    def geometry(self) -> tuple[int, int, int, int, int]: ...
    def close(self) -> None: ...
    closed: Final[bool]
    dropped: Final[int]

class EpisodeReturns:
    def __init__(self, num_envs: int, only: int, window: int, resets_next: bool) -> None: ...
    def add(self, rewards: ArrayLike, terminations: ArrayLike, truncations: ArrayLike) -> None: ...
    def reset(self, mask: ArrayLike | None = None) -> None: ...
    def rolling_return(self) -> float: ...
    # None: no episode has ended.
    def rolling_length(self) -> float | None: ...
    episodes: Final[int]
    last_reward: Final[float]

class NativeImage:
    intact: Final[bool]

class NativeStream:
    # fields of the item; None: the stream is over
    def next(self, timeout: float) -> dict[str, Any] | None: ...
    def close(self) -> None: ...
    number: Final[int]
    dropped: Final[int]

class NativeRpc:
    def call(self, method: int, request: dict[str, Any], timeout: float | None = None) -> dict[str, Any]: ...
    def open(self, method: int, request: dict[str, Any]) -> NativeStream: ...
    timeout: Final[float]

class NativeAttendant:
    def __init__(self, name: str, label: str, timeout: float) -> None: ...
    def set_timeout(self, timeout: float) -> None: ...
    def close(self) -> None: ...
    rpc: Final[NativeRpc]
    num_envs: Final[int]
    engine_pid: Final[int]
    closed: Final[bool]

class StepMethod:
    def __init__(self, native: NativeClient) -> None: ...
    def step(self, actions: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.uint8]]:
        """Steps every environment once and waits for the results.

        Args:
          actions: float32[num_envs, act_size], C-contiguous and finite, in the task's own units. Copied into the
            region, unless it is `client.actions` itself. Nothing is converted.

        Returns:
          obs (float32[num_envs, obs_size]), rewards (float32[num_envs]) and dones (uint8[num_envs], 1: the episode is
          over): always the same views, valid until the next `step`, `send` or `reset`.

        Raises:
          InvalidAction: The actions are not as above; nothing was sent.
          StepTimeout: The engine did not answer within the client's time-out; the step is still pending.
          PeerGone: The engine has stopped or died.
          EngineFailed: The engine reported a failure; the arrays are not results.
          StepPending: An earlier exchange was not received.
          BrokenPeer: The other side broke the protocol.
          ConcurrentUse: Another thread is inside a call.
          ForkedChild: The client belongs to this process's parent.
          ClientClosed: The client was closed.
        """

# client_py/bindings/vector_step.h documents it.
class VectorStep:
    def __init__(
        self,
        client: NativeClient,
        observations: Observations | None,
        final_observations: Observations | None,
        actions: Actions | Callable[[Any], NDArray[np.float32]],
        # Or: name, first column, length, dtype, whether a reset gives it.
        infos: VectorInfos | Sequence[tuple[str, int, int | None, np.dtype[Any], bool]],
        *,
        wide: bool = False,
        copy: bool,
        autoreset: int,
        choices: int | None = None,
    ) -> None: ...
    def step(
        self, actions: Any
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]: ...
    def send(self, actions: Any) -> None: ...
    def send_chosen(self, env_ids: list[int]) -> None: ...
    def recv(
        self, timeout: float | None = None
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]: ...
    def expect_reset(self, mask: NDArray[np.bool_]) -> None: ...
    def reset_results(self) -> tuple[Any, dict[str, Any]]: ...

# client_py/bindings/native_worker.h documents it.
class NativeWorker:
    def __init__(self, fd: int, worker: int, wait: str, reset_options: Callable[[], Any]) -> None: ...
    def serve(self, rows: EnvRows, timeout: float) -> str: ...
    def acknowledge(self) -> None: ...
    first_env: Final[int]
    num_envs: Final[int]
    restarted: Final[bool]
    arrays: Final[dict[str, NDArray[Any]]]
    # (role, path) -> [num_envs, *shape]
    fields: Final[dict[tuple[str, str], NDArray[Any]]]
    # uint32[1]
    current: Final[NDArray[np.uint32]]

# client_py/bindings/fitted_image.h documents it.
def fit_image(target: NDArray[np.uint8], image: NDArray[np.uint8]) -> None: ...

# client_py/bindings/env_rows.h documents it.
class EnvRows:
    def __init__(
        self,
        envs: Sequence[gymnasium.Env[Any, Any]],
        arrays: RowArrays,
        *,
        observations: Observations,
        final_observations: Observations,
        actions: Actions,
        # At an address divisible by 16.
        info_area: NDArray[np.uint8],
        # uint32[1]
        current: NDArray[np.uint32],
        stop: type[BaseException],
        failure: Callable[[gymnasium.Env[Any, Any], int, BaseException, int, int], str],
        truncation: Callable[[gymnasium.Env[Any, Any], int, BaseException, int, int], dict[str, Any]] | None = None,
        first_env: int = 0,
        restarted: bool = False,
    ) -> None: ...
    # kind: 0 step, 1 reset only; autoreset_mode: of AUTORESET_MODES; options: for the rows that the flags reset.
    # Returns the failures: row, exception, text with traceback.
    def run(
        self, kind: int, autoreset_mode: int, options: dict[str, Any] | None = None
    ) -> list[tuple[int, BaseException, str]]: ...
    # Number of ended episodes; end times, returns, lengths of the last; returns, numbers, steps so far of all rows.
    def episodes(
        self,
    ) -> tuple[
        int,
        *tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]],
        *tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]],
    ]: ...
    def continue_episode(self, row: int, ended: bool, episode_return: float, episode_length: int) -> None: ...

# client_py/bindings/info_reader.h documents it; tandem.workers.infos.VectorInfos uses it.
class InfoReader:
    def __init__(
        self,
        num_envs: int,
        # first environment, number of environments, bytes
        areas: Sequence[tuple[int, int, NDArray[np.uint8]]],
        final_obs: Callable[[int], Any],
    ) -> None: ...
    # None: only Gymnasium's code can merge the infos.
    def merged(self, workers: Sequence[int] | None = None) -> dict[str, Any] | None: ...
    # environment, final info, info
    def rows(
        self, workers: Sequence[int] | None = None
    ) -> list[tuple[int, dict[str, Any] | None, dict[str, Any] | None]]: ...

# An array in the memory of a GPU, for torch, JAX, CuPy and Warp.
class CudaArray:
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    # as an export of the same memory, without a capsule
    def wait_on(self, stream: int) -> None: ...
    __cuda_array_interface__: Final[dict[str, Any]]
    shape: Final[tuple[int, ...]]
    # NumPy's name
    dtype: Final[str]
    device: Final[int]
    pointer: Final[int]
    nbytes: Final[int]

# Copies of views of a client's region in the memory of a GPU.
class DeviceCopies:
    def __init__(self, client: NativeClient, device: int, views: list[NDArray[Any]], overlaps: bool) -> None: ...
    def begin(self) -> list[CudaArray]: ...
    def take_actions(self, pointer: int, nbytes: int, stream: int) -> None: ...

# "library", "version" and "devices": (number, name, UUID) of each
def cuda_driver() -> dict[str, Any]: ...

# as NativeClient.gpu_path
def region_gpu_path(name: str) -> str: ...

class NativeClient:
    def __init__(self, name: str, timeout: float, wait: str, share_core: bool, autoreset: int) -> None: ...
    def send(self, actions: NDArray[np.float32]) -> None: ...
    def recv(
        self, timeout: float | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.uint8]]: ...
    def send_reset(self, env_ids: Sequence[int], seeds: Sequence[int | None]) -> None: ...
    def post_lanes(self, workers: Sequence[int]) -> None: ...
    def post_lane_resets(self, workers: Sequence[int], env_ids: Sequence[int], seeds: Sequence[int | None]) -> None: ...
    def await_lanes(self, min_count: int, timeout: float | None = None) -> None: ...
    def check_lanes(self, workers: Sequence[int]) -> None: ...
    def take_lanes(self, workers: Sequence[int]) -> None: ...
    open_lanes: Final[list[int]]
    ready_lanes: Final[list[int]]
    # first environment and number of environments of each worker
    worker_rows: Final[list[tuple[int, int]]]
    # Workers that have not answered, while a step is pending.
    awaited_workers: Final[list[int]]
    # Worker and environment of the last EnvFailed.
    last_failure: Final[tuple[int, int] | None]
    # (role, path) -> [num_envs, ...]
    def cuda_arrays(self) -> dict[tuple[str, str], CudaArray]: ...
    gpu_path: Final[str]
    has_cpu_obs: Final[bool]
    def drawn_frame(self, timeout: float | None = None) -> tuple[NDArray[np.uint8], bytes]: ...
    def reconnect(self, timeout: float | None = None) -> None: ...
    def set_timeout(self, timeout: float) -> None: ...
    def serve_environments(self) -> None: ...
    def wake_engine(self) -> None: ...
    def show_own_run(
        self, *, episodes: int, last_reward: float, rolling_return: float, episode_length: float
    ) -> None: ...
    def close(self) -> None: ...
    def stats(self) -> Stats: ...
    rpc: Final[NativeRpc]
    has_frames: Final[bool]
    pending: Final[bool]
    closed: Final[bool]
    obs: Final[NDArray[np.float32]]
    actions: Final[NDArray[np.float32]]
    rewards: Final[NDArray[np.float32]]
    dones: Final[NDArray[np.uint8]]
    truncateds: Final[NDArray[np.uint8]]
    terminateds: Final[NDArray[np.uint8]]
    resets: Final[NDArray[np.uint8]]
    final_obs: Final[NDArray[np.float32]]
    infos: Final[NDArray[np.float64]]
    final_infos: Final[NDArray[np.float64]]
    images: Final[NDArray[np.uint8] | None]
    final_images: Final[NDArray[np.uint8] | None]
    # (role, path) -> [num_envs, ...]
    fields: Final[dict[tuple[str, str], NDArray[Any]]]
    image_step: Final[int]
    num_envs: Final[int]
    obs_size: Final[int]
    act_size: Final[int]
    task: Final[str]
    description: Final[bytes]
    engine_pid: Final[int]
    region_address: Final[int]
    offsets: Final[dict[str, int]]
