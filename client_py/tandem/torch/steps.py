"""`TorchSteps`: a client's steps with torch tensors. Importing this imports torch."""

from typing import Any

import torch

from tandem._native import CudaArray
from tandem.arguments import seconds, shown
from tandem.client import SharedMemoryClient
from tandem.errors import InvalidAction, InvalidArgument, Unsupported
from tandem.handles import NotPicklable
from tandem.torch.device import DeviceSteps, check_session

Tensors = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class TorchSteps(NotPicklable):
    """A client's steps with torch tensors of `device`; `tandem.torch.step_to` makes it.

    On "cpu" the tensors are views of the region, valid until the next step. On a GPU a tensor is valid until the second
    next step, but one of the engine's own memory (`path` is "shared") until the next. Then the same tensor has later
    results. Clone what must last. After `reconnect` of the client, make another object: this one raises ClientClosed.
    `path` is "cpu", or that of `DeviceSteps`.
    """

    _instead = "it belongs to its client; make one where the client is"

    def __init__(self, client: SharedMemoryClient, device: torch.device, *, overlap: bool = False) -> None:
        """As `tandem.torch.step_to`."""
        if device.type not in ("cpu", "cuda"):
            raise InvalidArgument(f"device: expected 'cpu' or 'cuda', found {shown(str(device))}")
        if not client.obs_size:
            raise Unsupported(
                f"region '{client.name}': expected observations of float32 rows, found fields; "
                "use client.fields, or tandem.torch.device.DeviceSteps"
            )
        self._client = client
        self.device = device
        self._steps: DeviceSteps | None = None
        self._tensors: dict[int, torch.Tensor] = {}  # by address: a step's arrays have those of the second last step's
        if device.type == "cuda":
            number = torch.cuda.current_device() if device.index is None else device.index
            self.device = torch.device("cuda", number)
            self._steps = DeviceSteps(client, number, overlap=overlap)
            self.path = self._steps.path
            return
        if not client.has_cpu_obs:
            raise Unsupported(
                f"region '{client.name}': expected observations in the region, found them on a GPU only; "
                "call step_to with that device, or start the engine with fills_cpu"
            )
        self._obs = client.obs
        self._views = tuple(map(torch.from_numpy, (client.obs, client.rewards, client.dones)))
        self.path = "cpu"

    def _tensor(self, array: CudaArray) -> torch.Tensor:
        """Returns a tensor of the array's memory, for which the current stream waits."""
        tensor = self._tensors.get(array.pointer)
        if tensor is None:
            tensor = self._tensors[array.pointer] = torch.from_dlpack(array)
        else:
            array.wait_on(torch.cuda.current_stream(self.device).cuda_stream)
        return tensor

    @property
    def arrays(self) -> dict[str, torch.Tensor]:
        """All tensors of the last results, by the names of `DeviceSteps.arrays`; on the CPU: obs, rewards, dones."""
        if self._steps is None:
            return dict(zip(("obs", "rewards", "dones"), self._views, strict=True))
        return {name: self._tensor(array) for name, array in self._steps.arrays.items()}

    def reset(self, env_ids: Any = None, seed: Any = None, *, contract: Any = None) -> torch.Tensor:
        """Resets environments as `SharedMemoryClient.reset`. Returns obs, float32[num_envs, obs_size]."""
        if self._steps is None:
            check_session(self._client, self._obs)
            self._client.reset(env_ids, seed, contract=contract)
            return self._views[0]
        return self._tensor(self._steps.reset(env_ids, seed, contract=contract)["obs"])

    def send(self, actions: torch.Tensor) -> None:
        """Starts a step. Returns at once on the CPU; on a GPU after the copy of the actions, which waits for them.

        Args:
          actions: float32[num_envs, act_size], contiguous, on `device`.

        Raises:
          InvalidAction: Another shape, dtype or device, or a value that is not finite.
          TandemError: As `SharedMemoryClient.send`.
        """
        expected = (self._client.num_envs, self._client.act_size)
        given = actions.detach()
        if (
            given.dtype != torch.float32
            or tuple(given.shape) != expected
            or given.device != self.device
            or not given.is_contiguous()
        ):
            raise InvalidAction(
                f"actions: expected a contiguous float32{list(expected)} on {self.device}, found "
                f"{str(given.dtype).removeprefix('torch.')}{list(given.shape)} on {given.device}"
            )
        if self._steps is None:
            check_session(self._client, self._obs)
            self._client.send(given.numpy())
            return
        stream = torch.cuda.current_stream(self.device).cuda_stream
        self._steps.send(given.data_ptr(), given.numel() * given.element_size(), stream)

    def recv(self, timeout: float | None = None) -> Tensors:
        """Waits for the step's results.

        Args:
          timeout: Seconds; None takes the client's own.

        Returns:
          obs, float32[num_envs, obs_size]; rewards, float32[num_envs]; dones, uint8[num_envs].

        Raises:
          TandemError: As `SharedMemoryClient.recv`.
        """
        wait = None if timeout is None else seconds("timeout", timeout)
        if self._steps is None:
            check_session(self._client, self._obs)
            self._client.recv(wait)
            return self._views
        arrays = self._steps.recv(wait)
        return self._tensor(arrays["obs"]), self._tensor(arrays["rewards"]), self._tensor(arrays["dones"])

    def step(self, actions: torch.Tensor) -> Tensors:
        """Does `send`, then `recv`."""
        self.send(actions)
        return self.recv()
