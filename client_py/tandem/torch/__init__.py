"""Steps with torch tensors: on a GPU by the cheapest way that engine and machine offer, on the CPU without a copy.

>>> import tandem.torch
>>> def train(client, policy):
...     steps = tandem.torch.step_to(client, "cuda")
...     obs = steps.reset(seed=0)
...     for _ in range(1000):
...         obs, rewards, dones = steps.step(policy(obs))

`step_to` needs torch, which Tandem does not install.
"""

from typing import TYPE_CHECKING

from tandem.client import SharedMemoryClient

if TYPE_CHECKING:
    import torch

    from tandem.torch.steps import TorchSteps


def step_to(
    client: SharedMemoryClient, device: "torch.device | str | int" = "cuda", *, overlap: bool = False
) -> "TorchSteps":
    """Returns an object that steps the client's environments, with results as tensors on the device.

    Args:
      client: Attached, to an engine with float32 observations.
      device: "cpu", "cuda", "cuda:1" or a number.
      overlap: On a GPU: whether the copy of a step's results may run during the next step. It costs a copy within the
        CPU's memory. Useful if the next actions do not depend on the newest observations.

    Raises:
      InvalidArgument: A device of another kind.
      Unsupported: The observations are fields; or the device is the CPU, and they are on a GPU only.
      GpuDriverMissing, GpuDriverTooOld, GpuOtherDevice, GpuFailed: As `tandem.torch.device.DeviceSteps`.
    """
    import torch

    from tandem.torch.steps import TorchSteps

    return TorchSteps(client, torch.device(device), overlap=overlap)
