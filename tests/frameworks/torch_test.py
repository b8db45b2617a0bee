"""tandem.torch on the CPU: results, actions, copies; on a GPU, if there is one, the same results."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch

import tandem
import tandem.torch

_DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]


@pytest.fixture
def client() -> Iterator[tandem.SharedMemoryClient]:
    """Of an engine with four cheetahs."""
    with tandem.launch_engine("HalfCheetah-v5", num_envs=4) as engine:
        with tandem.SharedMemoryClient(engine.name) as attached:
            yield attached


@pytest.mark.parametrize("device", _DEVICES)
@pytest.mark.parametrize("overlap", [False, True])
def test_results_are_those_of_the_client(client: tandem.SharedMemoryClient, device: str, overlap: bool) -> None:
    """Observations, rewards and flags of 50 steps; the actions reach the engine."""
    steps = tandem.torch.step_to(client, device, overlap=overlap)
    generator = torch.Generator().manual_seed(0)
    obs = steps.reset(seed=0)
    np.testing.assert_array_equal(obs.cpu().numpy(), client.obs)
    for _ in range(50):
        actions = (torch.rand((4, 6), generator=generator) * 2 - 1).to(device)
        obs, rewards, dones = steps.step(actions)
        assert {each.device.type for each in (obs, rewards, dones)} == {device}
        np.testing.assert_array_equal(obs.cpu().numpy(), client.obs)
        np.testing.assert_array_equal(rewards.cpu().numpy(), client.rewards)
        np.testing.assert_array_equal(dones.cpu().numpy(), client.dones)
        np.testing.assert_array_equal(client.actions, actions.cpu().numpy())


def test_on_the_cpu_nothing_is_copied(client: tandem.SharedMemoryClient) -> None:
    """The tensors are the region's memory, as those of torch.from_numpy, and the same objects in each step."""
    steps = tandem.torch.step_to(client, "cpu")
    obs = steps.reset(seed=0)
    assert steps.path == "cpu"
    assert obs.data_ptr() == torch.from_numpy(client.obs).data_ptr()
    results = steps.step(torch.zeros((4, 6)))
    assert [each.data_ptr() for each in results] == [
        array.ctypes.data for array in (client.obs, client.rewards, client.dones)
    ]
    again = steps.step(torch.from_numpy(client.actions))
    assert all(first is second for first, second in zip(results, again, strict=True))


@pytest.mark.parametrize(
    "actions", [torch.zeros((4, 6), dtype=torch.float64), torch.zeros((3, 6)), torch.zeros((6, 4)).T]
)
def test_other_actions_are_invalid(client: tandem.SharedMemoryClient, actions: torch.Tensor) -> None:
    """Another dtype or shape, or not contiguous; nothing is sent."""
    steps = tandem.torch.step_to(client, "cpu")
    with pytest.raises(tandem.InvalidAction, match="contiguous float32"):
        steps.step(actions)
    assert not client.pending


def test_a_gpu_that_is_not_there_has_its_error(client: tandem.SharedMemoryClient) -> None:
    """The error names the driver."""
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(tandem.GpuDriverMissing):
        tandem.torch.step_to(client, "cuda:0")


def test_another_kind_of_device_is_an_invalid_argument(client: tandem.SharedMemoryClient) -> None:
    """Neither cpu nor cuda."""
    with pytest.raises(tandem.InvalidArgument, match="'meta'"):
        tandem.torch.step_to(client, "meta")
