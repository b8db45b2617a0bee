"""`DeviceSteps`: steps whose results are arrays on a GPU, by the cheapest way that engine and machine offer.

`tandem.torch.step_to` gives them as tensors; this module needs no framework.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem._native import CudaArray, DeviceCopies
from tandem.arguments import flag, integer
from tandem.client import SharedMemoryClient
from tandem.errors import AccessDenied, ClientClosed, GpuOtherDevice, Unsupported
from tandem.handles import NotPicklable

# New ones in each step; valid until the second next step.
Arrays = dict[str, CudaArray]


def check_session(client: SharedMemoryClient, obs: NDArray[np.float32]) -> None:
    """Raises ClientClosed if the client's `obs` is another array than this one, of before its reconnect."""
    if client.obs is not obs:
        raise ClientClosed(
            f"region '{client.name}': expected the client's session in which step_to was called, found a later one, "
            "of reconnect; call step_to again"
        )


class DeviceSteps(NotPicklable):
    """A client's steps with results on one device.

    | path | when | a step copies |
    |---|---|---|
    | "shared" | the engine has its observations on this device | what the engine has not there: the flags |
    | "copied" | otherwise | the results, asynchronously from pinned memory |

    Images that the engine has on this device are not copied, on either path. An array of a step is valid until the
    second next step begins, and one of the engine's memory ("obs", "final_obs", "rewards", "images") until the next.
    An export makes the consumer's current stream wait for the data; that stream must exist as long as the array is
    valid. The next send waits until the copy has read the region. With `overlap`, the results are first copied within
    this process into pinned memory, so that the send need not wait, and the copy to the device may run during the next
    step.

    The client may be used beside it, except for steps between `send` and `recv`. After `reconnect` of the client, make
    another object: this one raises ClientClosed.
    """

    _instead = "it belongs to its client; make one where the client is"

    def __init__(self, client: SharedMemoryClient, device: int, *, overlap: bool = False) -> None:
        """Registers an attached client's region as pinned memory, once; `device` is a CUDA device of this process.

        Raises:
          GpuDriverMissing, GpuDriverTooOld: There is no CUDA driver that can do it.
          GpuOtherDevice: There is no such device; or the engine writes its observations on another one only.
          GpuFailed: The driver reported an error, such as too little memory or a limit of pinned memory (`ulimit -l`).
        """
        self._client = client
        self._device = integer("device", device, 0, 1023)
        self._obs = client.obs
        shared = self._shared_arrays()
        views: dict[str, Any] = {
            "obs": client.obs,
            "rewards": client.rewards,
            "dones": client.dones,
            "terminateds": client.terminateds,
            "truncateds": client.truncateds,
            "final_obs": client.final_obs,
        }
        if client.images is not None:
            views["images"] = client.images
        views |= {_name(role, path): view for (role, path), view in client.fields.items() if role != "action"}
        self._shared = {name: array for name, array in shared.items() if array.device == self._device}
        views = {name: view for name, view in views.items() if view.size and name not in self._shared}
        self._names = list(views)
        overlaps = flag("overlap", overlap, after="")
        self._copies = DeviceCopies(client._native, self._device, list(views.values()), overlaps)
        self._arrays: Arrays = {}

    def _shared_arrays(self) -> Arrays:
        client = self._client
        if not client.gpu_path:
            return {}
        try:
            given = client.fields_cuda
        except (AccessDenied, GpuOtherDevice, Unsupported):
            if not client.has_cpu_obs:
                raise
            return {}
        shared = {_name(role, path): array for (role, path), array in given.items()}
        found = next(iter(shared.values())).device
        if found != self._device and not client.has_cpu_obs:
            raise GpuOtherDevice(
                f"device: expected {found}, on which the engine writes its observations, found {self._device}"
            )
        return shared

    @property
    def client(self) -> SharedMemoryClient:
        """The client."""
        return self._client

    @property
    def path(self) -> str:
        """Which row of the table above applies: "shared" or "copied"."""
        return _path(self._shared)

    @property
    def arrays(self) -> Arrays:
        """All arrays of the last results, by name: those of the client, and fields as "obs/image".

        "obs" and "final_obs" are float32[num_envs, obs_size], absent if observations are fields; "rewards" float32,
        "dones", "terminateds" and "truncateds" uint8, each [num_envs]; "images" uint8[num_envs, height, width, 3], of
        an engine that draws on a GPU also with 4 channels.
        """
        return self._arrays

    def reset(self, env_ids: Any = None, seed: Any = None, *, contract: Any = None) -> Arrays:
        """Resets environments as `SharedMemoryClient.reset`, and returns `arrays`."""
        check_session(self._client, self._obs)
        self._client.reset(env_ids, seed, contract=contract)
        return self._begin()

    def send(self, pointer: int, nbytes: int, stream: int = 0) -> None:
        """Starts a step with actions of the device, and returns at once after their copy into the region.

        `pointer` is the address on the device of float32[num_envs, act_size] in C order, `nbytes` bytes; `stream` the
        CUDA stream on which they are computed.

        Raises:
          InvalidAction: Another size, or a value that is not finite.
          GpuFailed: The driver reported an error.
          TandemError: As `SharedMemoryClient.send`.
        """
        check_session(self._client, self._obs)
        self._copies.take_actions(pointer, nbytes, stream)
        self._client.send(self._client.actions)

    def recv(self, timeout: float | None = None) -> Arrays:
        """Waits for the step's results, begins their copy, and returns `arrays`; errors: `SharedMemoryClient.recv`."""
        check_session(self._client, self._obs)
        self._client.recv(timeout)
        return self._begin()

    def _begin(self) -> Arrays:
        self._arrays = dict(zip(self._names, self._copies.begin(), strict=True)) | self._shared
        return self._arrays


def _path(shared: Iterable[str]) -> str:
    """Returns the path of a step whose engine has these arrays on the device.

    >>> _path(["obs/image", "rewards"]), _path(["images"]), _path([])
    ('shared', 'copied', 'copied')
    """
    return "shared" if any(name.partition("/")[0] == "obs" for name in shared) else "copied"


def _name(role: str, path: str) -> str:
    """Returns the name of a field, or of an array on a GPU.

    >>> _name("obs", "/image"), _name("reward", ""), _name("obs", "")
    ('obs/image', 'rewards', 'obs')
    """
    return ("rewards" if role == "reward" else role) + path
