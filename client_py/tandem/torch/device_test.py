"""Steps with results on a device, with the stand-in driver: values, lifetimes, overlap, leaks."""

import contextlib
import gc
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tandem
from tandem._native import CudaArray
from tandem.testing.cuda_engine import expected_obs
from tandem.testing.engines import nothing_left_behind, unique_name, watchdog  # noqa: F401, the fixtures
from tandem.testing.standin import LIBRARY, StandIn
from tandem.torch.device import DeviceSteps

_ENGINE = Path(__file__).parents[1] / "testing" / "cuda_engine.py"
_ENVS = 3
_KINDS = ("imports", "imported events", "allocations", "events", "streams", "registrations")


@pytest.fixture(name="gpu")
def _gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """The stand-in; at the end nothing of Tandem's is left in it."""
    monkeypatch.setenv("TANDEM_CUDA_LIBRARY", str(LIBRARY))
    gpu = StandIn()
    before = {kind: gpu.count(kind) for kind in _KINDS}
    yield gpu
    gc.collect()
    assert {kind: gpu.count(kind) for kind in _KINDS} == before


@pytest.fixture(name="engines", scope="module")
def _engines() -> Iterator[dict[str, tandem.EngineProcess]]:
    """Engines by the path of a client's DeviceSteps: "copied" fills the region only, "shared" the device, too."""
    with contextlib.ExitStack() as running:
        engines = {}
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TANDEM_CUDA_LIBRARY", str(LIBRARY))
            for path, setting in (("copied", "no"), ("shared", "require")):
                patch.setenv("TANDEM_CUDA", setting)
                engine = tandem.launch_engine(num_envs=_ENVS, server=_ENGINE, timeout=60)
                engines[path] = running.enter_context(engine)
        yield engines


@pytest.fixture(name="client")
def _client(
    gpu: StandIn, engines: dict[str, tandem.EngineProcess], request: pytest.FixtureRequest
) -> Iterator[tandem.SharedMemoryClient]:
    """Of the engine that the parameter names, by default "copied"."""
    engine = engines[getattr(request, "param", "copied")]
    with tandem.SharedMemoryClient(engine.name, timeout=60, attach_timeout=60) as client:
        yield client


def _step(steps: DeviceSteps, gpu: StandIn, actions: int) -> dict[str, CudaArray]:
    """Steps with actions in the device's memory."""
    steps.send(actions, _ENVS * 2 * 4, 1)
    return steps.recv()


@pytest.fixture(name="actions")
def _actions(gpu: StandIn) -> Iterator[int]:
    """Memory of the device with actions that end no episode."""
    pointer = gpu.allocate(_ENVS * 2 * 4)
    gpu.write(pointer, np.full((_ENVS, 2), -0.5, np.float32))
    yield pointer
    gpu.free(pointer)


@pytest.mark.parametrize("client", ["copied", "shared"], indirect=True)
@pytest.mark.parametrize("overlap", [False, True])
def test_results_on_the_device_are_those_of_the_step(
    client: tandem.SharedMemoryClient, gpu: StandIn, actions: int, overlap: bool
) -> None:
    """All arrays, on both paths; actions of the device reach the region."""
    steps = DeviceSteps(client, 0, overlap=overlap)
    assert steps.path == ("shared" if client.gpu_path else "copied")
    arrays = steps.reset(seed=[1] * _ENVS)
    np.testing.assert_array_equal(gpu.consume(arrays["obs"]), expected_obs(np.full(_ENVS, 1)))
    for step in range(2, 200):
        arrays = _step(steps, gpu, actions)
        np.testing.assert_array_equal(gpu.consume(arrays["obs"]), expected_obs(np.full(_ENVS, step)))
        np.testing.assert_array_equal(gpu.consume(arrays["rewards"]), np.full(_ENVS, step, np.float32))
        for flags in ("dones", "terminateds", "truncateds"):
            np.testing.assert_array_equal(gpu.consume(arrays[flags]), np.zeros(_ENVS, np.uint8))
        assert (client.actions == -0.5).all()
    del steps, arrays  # which keep what the fixtures count


def test_an_array_is_valid_until_the_second_next_step(
    client: tandem.SharedMemoryClient, gpu: StandIn, actions: int
) -> None:
    """Afterwards an export is refused."""
    steps = DeviceSteps(client, 0)
    first = steps.reset(seed=[0] * _ENVS)["obs"]
    _step(steps, gpu, actions)
    np.testing.assert_array_equal(gpu.consume(first), expected_obs(np.full(_ENVS, 0)))
    _step(steps, gpu, actions)
    with pytest.raises(tandem.InvalidArgument, match="last two steps"):
        first.__dlpack__()


def test_actions_of_another_size_are_invalid(client: tandem.SharedMemoryClient, gpu: StandIn, actions: int) -> None:
    """Nothing is sent."""
    steps = DeviceSteps(client, 0)
    with pytest.raises(tandem.InvalidAction, match="24 bytes"):
        steps.send(actions, 8)
    assert not client.pending


def test_a_device_that_is_not_there_is_another_device(client: tandem.SharedMemoryClient, gpu: StandIn) -> None:
    """The error names the number."""
    with pytest.raises(tandem.GpuOtherDevice, match="found 7"):
        DeviceSteps(client, 7)


def test_pinned_memory_beyond_the_limit_is_gpu_failed(client: tandem.SharedMemoryClient, gpu: StandIn) -> None:
    """What was made before the failure is freed."""
    gpu.fail("cuStreamCreate", 2)
    try:
        with pytest.raises(tandem.GpuFailed, match="cuStreamCreate"):
            DeviceSteps(client, 0, overlap=True)
    finally:
        gpu.fail("cuStreamCreate", 0)


def test_a_failed_copy_has_no_arrays_and_the_next_step_has(
    client: tandem.SharedMemoryClient, gpu: StandIn, actions: int
) -> None:
    """The array whose buffer the failed copy has overwritten is refused."""
    steps = DeviceSteps(client, 0)
    first = steps.reset(seed=[0] * _ENVS)["obs"]
    second = _step(steps, gpu, actions)["obs"]
    steps.send(actions, _ENVS * 2 * 4, 1)
    gpu.fail("cuMemcpyHtoDAsync_v2", 304)
    try:
        with pytest.raises(tandem.GpuFailed, match="cuMemcpyHtoDAsync"):
            steps.recv()
    finally:
        gpu.fail("cuMemcpyHtoDAsync_v2", 0)
    with pytest.raises(tandem.InvalidArgument, match="last two steps"):
        first.__dlpack__()
    np.testing.assert_array_equal(gpu.consume(second), expected_obs(np.full(_ENVS, 1)))
    arrays = _step(steps, gpu, actions)
    np.testing.assert_array_equal(gpu.consume(arrays["obs"]), expected_obs(np.full(_ENVS, 3)))


def test_a_dropped_object_frees_its_memory_while_the_client_stays(
    client: tandem.SharedMemoryClient, gpu: StandIn
) -> None:
    """The region stays pinned while another object copies it."""
    before = {kind: gpu.count(kind) for kind in _KINDS}
    first, second = DeviceSteps(client, 0), DeviceSteps(client, 0, overlap=True)
    assert gpu.count("registrations") == before["registrations"] + 3  # the region, and the two buffers of the second
    del first
    gc.collect()
    assert gpu.count("registrations") == before["registrations"] + 3
    arrays = second.reset(seed=[4] * _ENVS)
    np.testing.assert_array_equal(gpu.consume(arrays["obs"]), expected_obs(np.full(_ENVS, 4)))
    del second, arrays
    gc.collect()
    assert {kind: gpu.count(kind) for kind in _KINDS} == before


@pytest.mark.parametrize("client", ["copied", "shared"], indirect=True)
def test_after_a_reconnect_another_object_is_needed(
    client: tandem.SharedMemoryClient, gpu: StandIn, actions: int
) -> None:
    """The old one would show the arrays of another session."""
    steps = DeviceSteps(client, 0)
    steps.reset(seed=[0] * _ENVS)
    client.reconnect()
    calls: list[Callable[[], Any]] = [steps.reset, steps.recv, lambda: steps.send(actions, _ENVS * 2 * 4, 1)]
    for call in calls:
        with pytest.raises(tandem.ClientClosed, match="call step_to again"):
            call()
    steps = DeviceSteps(client, 0)
    arrays = steps.reset(seed=[5] * _ENVS)
    np.testing.assert_array_equal(gpu.consume(arrays["obs"]), expected_obs(np.full(_ENVS, 5)))


def test_a_pending_step_refuses_another(client: tandem.SharedMemoryClient, gpu: StandIn, actions: int) -> None:
    """Neither actions nor results are copied meanwhile."""
    steps = DeviceSteps(client, 0)
    client.actions[:] = -0.25
    client.send(client.actions)
    with pytest.raises(tandem.StepPending):
        steps.send(actions, _ENVS * 2 * 4, 1)
    assert (client.actions == -0.25).all()
    steps.recv()


# Two objects of one client: the slow copy of the first has the step's values, though the client steps on.
_TWO = """
import sys
import numpy as np
import tandem
from tandem.torch.device import DeviceSteps
from tandem.testing.cuda_engine import expected_obs
from tandem.testing.standin import StandIn
gpu = StandIn()
with tandem.SharedMemoryClient(sys.argv[1], timeout=60, attach_timeout=60) as client:
    first, second = DeviceSteps(client, 0), DeviceSteps(client, 0)
    obs = first.reset(seed=[3, 3, 3])["obs"]
    client.step(client.actions)
    assert (gpu.consume(obs) == expected_obs(np.full(3, 3))).all()
print("right")
"""


def _run_slow(program: str, engine: tandem.EngineProcess) -> str:
    """Returns what a program prints whose device copies in 40 ms."""
    done = subprocess.run(
        [sys.executable, "-c", program, engine.name],
        env={**os.environ, "TANDEM_STANDIN_COPY_MS": "40"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.stdout


def test_a_send_waits_for_the_copies_of_each_object(gpu: StandIn, engines: dict[str, tandem.EngineProcess]) -> None:
    """Not of the newest alone."""
    assert _run_slow(_TWO, engines["copied"]) == "right\n"


# Prints, for each setting of `overlap`, the milliseconds of all steps but the first, which waits for no copy, and
# whether all values were right.
_SLOW = """
import json, sys, time
import numpy as np
import tandem
from tandem.torch.device import DeviceSteps
from tandem.testing.cuda_engine import expected_obs
from tandem.testing.standin import StandIn
gpu = StandIn()
found = {}
with tandem.SharedMemoryClient(sys.argv[1], timeout=60, attach_timeout=60) as client:
    for overlap in (False, True):
        steps = DeviceSteps(client, 0, overlap=overlap)
        client.reset(seed=[0, 0, 0])
        tensors, right, times = [], True, [time.monotonic()]
        for number in range(1, 16):
            client.send(client.actions)
            arrays = steps.recv()
            times.append(time.monotonic())
            if number > 1:  # while the next step's copy runs
                values = tensors.pop().values(stream)
                right &= bool((values == expected_obs(np.full(3, number - 1))).all())
            stream = gpu.stream(blocking=False)
            tensors.append(gpu.take(arrays["obs"], stream))
        found[overlap] = [(np.diff(times)[1:] * 1e3).tolist(), right]
print(json.dumps(list(found.values())))
"""


def test_with_overlap_a_step_takes_the_longer_of_step_and_copy(gpu: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine steps in 40 ms, the device copies in 40 ms: without overlap 80 ms, with overlap nearly 40 ms.

    A busy machine makes steps longer, so the shortest one with overlap counts. No machine makes their mean without
    overlap shorter.
    """
    monkeypatch.setenv("TANDEM_CUDA", "no")
    flags = ["--step_ms=40"]
    with tandem.launch_engine(name=unique_name(), num_envs=_ENVS, server=_ENGINE, timeout=60, flags=flags) as engine:
        monkeypatch.delenv("TANDEM_CUDA")
        (apart, apart_right), (together, together_right) = json.loads(_run_slow(_SLOW, engine))
    assert apart_right and together_right
    assert statistics.mean(apart) >= 75
    assert min(together) < 60
