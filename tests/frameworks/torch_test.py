"""tandem.torch on the CPU: results, actions, copies; on a GPU, if there is one, the same results."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

import tandem
import tandem.torch
from tandem.testing.commanded_cart import arguments, commanding, commands_of

_ROOT = Path(__file__).parents[2]

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


@pytest.mark.parametrize("device", _DEVICES)
def test_contracts_of_a_reset(tmp_path: Path, device: str) -> None:
    """One for all environments, or one for each."""
    with (
        tandem.launch_engine(num_envs=3, model=(its := arguments(tmp_path)).pop("model"), task_options=its) as engine,
        tandem.SharedMemoryClient(engine.name) as client,
    ):
        steps = tandem.torch.step_to(client, device)
        assert commands_of(steps.reset(contract=commanding(2)).cpu()).tolist() == [2, 2, 2]
        contracts = [commanding(5), None]
        assert commands_of(steps.reset([2, 0], contract=contracts).cpu()).tolist() == [2, 2, 5]


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


def test_after_a_reconnect_another_object_is_needed(client: tandem.SharedMemoryClient) -> None:
    """The old one has views of another session."""
    steps = tandem.torch.step_to(client, "cpu")
    client.reconnect()
    calls: list[Callable[[], Any]] = [steps.reset, steps.recv, lambda: steps.send(torch.zeros((4, 6)))]
    for call in calls:
        with pytest.raises(tandem.ClientClosed, match="call step_to again"):
            call()
    assert tandem.torch.step_to(client, "cpu").reset(seed=0).shape == (4, 17)


class _Dicts(tandem.Engine):
    num_envs = 1
    observation_space = spaces.Dict({"x": spaces.Box(-1, 1, (2,))})
    action_space = spaces.Box(-1, 1, (1,))

    def reset(self, envs: Any, seeds: Any, arrays: Any) -> None:
        arrays.obs["x"][envs] = 0

    def step(self, envs: Any, arrays: Any) -> None:
        arrays.obs["x"][envs] = 0


def test_observations_of_fields_are_unsupported() -> None:
    """They are several arrays."""
    name, stop = f"tandem-torch-test-{os.getpid()}", threading.Event()
    serving = threading.Thread(target=tandem.serve, args=(_Dicts(),), kwargs={"name": name, "stop": stop})
    serving.start()
    try:
        with tandem.SharedMemoryClient(name) as client, pytest.raises(tandem.Unsupported, match="fields"):
            tandem.torch.step_to(client, "cpu")
    finally:
        stop.set()
        serving.join()


_ENGINE_ON_A_GPU = """
import tandem
from gymnasium import spaces
class OnGpu(tandem.Engine):
    observation_space, action_space = spaces.Box(-1, 1, (2,)), spaces.Box(-1, 1, (1,))
    cuda_device, fills_cpu = 0, False
    def __init__(self, num_envs):
        self.num_envs = num_envs
    def reset(self, envs, seeds, arrays):
        pass
    def step(self, envs, arrays):
        pass
tandem.serve_program(OnGpu)
"""


def test_observations_on_a_gpu_only_are_unsupported_on_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the stand-in driver, in the engine's process alone."""
    program = tmp_path / "engine.py"
    program.write_text(_ENGINE_ON_A_GPU, "utf-8")
    with monkeypatch.context() as patch:
        patch.setenv("TANDEM_CUDA_LIBRARY", str(_ROOT / "bazel-bin" / "transport" / "gpu" / "standin_cuda.so"))
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        engine = tandem.launch_engine(server=program, num_envs=2, timeout=60)
    with engine, tandem.SharedMemoryClient(engine.name) as client:
        with pytest.raises(tandem.Unsupported, match="on a GPU only"):
            tandem.torch.step_to(client, "cpu")


def test_another_kind_of_device_is_an_invalid_argument(client: tandem.SharedMemoryClient) -> None:
    """Neither cpu nor cuda."""
    with pytest.raises(tandem.InvalidArgument, match="'meta'"):
        tandem.torch.step_to(client, "meta")
