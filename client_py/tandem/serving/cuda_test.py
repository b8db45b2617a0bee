"""Arrays on a GPU between processes, with the stand-in driver: values, order, lifetimes, errors, deaths.

Length: the tests of one protocol, with the programs of the other processes.
"""

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import tandem
from tandem.engine.process import EngineProcess
from tandem.errors import GpuDriverMissing
from tandem.testing.cuda_engine import WIDTH, expected_obs
from tandem.testing.engines import nothing_left_behind, unique_name, watchdog  # noqa: F401, the fixtures
from tandem.testing.standin import LIBRARY, StandIn, memories_in_use

_ENGINE = Path(__file__).parents[1] / "testing" / "cuda_engine.py"
_ENVS = 3
# Tests kill at each n-th begin or end of a call of the driver, from these on. For tools/test --with gpu these are all.
_STRIDE = 17
_FIRSTS = range(1, _STRIDE + 1) if os.environ.get("TANDEM_GPU_ALL") else [1]
_TAG = f"-{uuid.uuid4().hex[:12]}"  # of the memory of this file's processes
_KINDS = ("imports", "imported events", "allocations", "events", "streams", "registrations")


@pytest.fixture(autouse=True)
def _stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Both processes use the stand-in; at the end there is no memory of it."""
    monkeypatch.setenv("TANDEM_CUDA_LIBRARY", str(LIBRARY))
    monkeypatch.setenv("TANDEM_STANDIN_TAG", _TAG)
    yield
    gc.collect()
    gpu = StandIn()
    assert {kind: gpu.count(kind) for kind in _KINDS} == dict.fromkeys(_KINDS, 0)


@pytest.fixture(name="gpu")
def _gpu(_stand_in: None) -> StandIn:
    return StandIn()


@pytest.fixture(name="engine", scope="module")
def _engine() -> Iterator[EngineProcess]:
    """The engine of the tests that need no other one. Its memory has no tag."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TANDEM_CUDA_LIBRARY", str(LIBRARY))
        engine = tandem.launch_engine(num_envs=_ENVS, server=_ENGINE, timeout=60)
    with engine:
        yield engine


def _launch(name: str | None = None, num_envs: int = _ENVS, **flags: int) -> EngineProcess:
    return tandem.launch_engine(
        name=name or unique_name(),
        num_envs=num_envs,
        server=_ENGINE,
        timeout=60,
        flags=[f"--{flag}={value}" for flag, value in flags.items()],
    )


def _attach(engine: EngineProcess | str) -> tandem.SharedMemoryClient:
    name = engine if isinstance(engine, str) else engine.name
    return tandem.SharedMemoryClient(name, timeout=60, attach_timeout=60)


def _actions(*ends: int) -> NDArray[np.float32]:
    actions = np.zeros((_ENVS, 2), np.float32)
    actions[list(ends), 0] = 1
    return actions


def _same_steps(steps: int) -> NDArray[np.int64]:
    return np.full(_ENVS, steps, np.int64)


def test_each_step_is_read_on_the_gpu(gpu: StandIn, engine: EngineProcess) -> None:
    """Observations, rewards and images on the GPU are those of the step, as the arrays of the region are."""
    with _attach(engine) as client:
        client.reset(seed=[7, 7, 7])
        assert client.gpu_path == "CUDA IPC" and client.has_cpu_obs
        assert (client.obs_cuda.shape, client.obs_cuda.dtype) == ((_ENVS, WIDTH), "float32")
        assert (client.images_cuda.shape, client.images_cuda.dtype) == ((_ENVS, 2, 4, 3), "uint8")
        for step in range(8, 300):
            client.step(_actions())
            np.testing.assert_array_equal(gpu.consume(client.obs_cuda), expected_obs(_same_steps(step)))
            np.testing.assert_array_equal(gpu.consume(client.fields_cuda["reward", ""]), client.rewards)
            assert (gpu.consume(client.images_cuda) == step % 251).all()
            np.testing.assert_array_equal(client.obs, expected_obs(_same_steps(step)))


def test_many_steps_are_read_on_the_gpu() -> None:
    """As tools/test --with gpu, shorter: now and then a thread of the stand-in does a task, later than its call."""
    steps = (sys.executable, "-m", "tandem.testing.cuda_steps", "--steps", "5000")
    done = subprocess.run(
        steps, env={**os.environ, "TANDEM_STANDIN_INLINE": "15"}, capture_output=True, text=True, check=False
    )
    assert "ok 5,000 steps, each observation equal" in done.stdout, done.stderr


@pytest.mark.parametrize("own_stream", [0, 1])
def test_an_export_waits_for_the_engines_work(gpu: StandIn, own_stream: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's copies take 20 ms; its step returns before. A stream of an export has the step's values.

    An export without order reads older ones, so the wait is what orders them.
    """
    monkeypatch.setenv("TANDEM_STANDIN_COPY_MS", "20")
    with _launch(own_stream=own_stream) as engine:
        monkeypatch.delenv("TANDEM_STANDIN_COPY_MS")
        with _attach(engine) as client:
            client.reset(seed=[0] * _ENVS)
            stream = gpu.stream(blocking=False)
            early, step = False, 0
            while step < 5 or not early:  # a busy machine may run this process after the copies
                client.step(_actions())
                step += 1
                unordered = gpu.take(client.obs_cuda, -1)
                early |= bool((unordered.values(stream) != expected_obs(_same_steps(step))).any())
                unordered.free()
                values = gpu.consume(client.obs_cuda, stream)
                np.testing.assert_array_equal(values, expected_obs(_same_steps(step)))
            client.step(_actions())  # it has waited for the stream
            gpu.destroy(stream)


def test_final_observations_are_kept_on_the_gpu(gpu: StandIn, engine: EngineProcess) -> None:
    """With SAME_STEP the row of an ended episode is in final_obs; obs has the new episode's first row."""
    with _attach(engine) as client:
        client.reset(seed=[5, 5, 5])
        client.step(_actions(1))
        final = gpu.consume(client.fields_cuda["final_obs", ""])
        np.testing.assert_array_equal(final[1], expected_obs(_same_steps(6))[1])
        np.testing.assert_array_equal(final[1], client.final_obs[1])
        np.testing.assert_array_equal(gpu.consume(client.obs_cuda), expected_obs(np.array([6, 0, 6])))


@pytest.mark.parametrize("mode", ["SAME_STEP", "NEXT_STEP", "DISABLED"])
def test_rewards_on_the_gpu_are_those_of_the_region(gpu: StandIn, engine: EngineProcess, mode: str) -> None:
    """Also after ends of episodes and resets of some, which set rewards to 0."""
    autoreset = tandem.AutoresetMode[mode]
    with tandem.SharedMemoryClient(engine.name, timeout=60, attach_timeout=60, autoreset_mode=autoreset) as client:
        client.reset(seed=[3] * _ENVS)
        for number in range(30):
            if number % 5 == 4:
                client.reset([number % _ENVS])
            else:
                client.step(_actions(*([number % _ENVS] if number % 3 == 0 else [])))
            np.testing.assert_array_equal(gpu.consume(client.fields_cuda["reward", ""]), client.rewards)
            np.testing.assert_array_equal(gpu.consume(client.obs_cuda), client.obs)
            if mode == "SAME_STEP":
                np.testing.assert_array_equal(gpu.consume(client.fields_cuda["final_obs", ""]), client.final_obs)


def test_fields_are_read_on_the_gpu(gpu: StandIn) -> None:
    """Observations of a Dict: each field has an array, and a final observation."""
    with _launch(fields=1) as engine, _attach(engine) as client:
        client.reset(seed=[7] * _ENVS)
        client.step(_actions(2))
        arrays = client.fields_cuda
        assert arrays["obs", "/steps"].dtype == "int64"
        np.testing.assert_array_equal(gpu.consume(arrays["obs", "/row"]), expected_obs(np.array([8, 8, 0])))
        for role in ("obs", "final_obs"):
            np.testing.assert_array_equal(gpu.consume(arrays[role, "/steps"]), client.fields[role, "/steps"])
        assert client.fields["final_obs", "/steps"][2] == 8
        with pytest.raises(tandem.Unsupported, match="fields_cuda"):
            client.obs_cuda.__dlpack__()


def test_many_environments_are_read_on_the_gpu(gpu: StandIn) -> None:
    """Their episodes all end at once, as with a time limit."""
    num_envs = 20_000
    with _launch(num_envs=num_envs) as engine, _attach(engine) as client:
        client.reset(seed=[3] * num_envs)
        actions = np.zeros((num_envs, 2), np.float32)
        client.step(actions)
        np.testing.assert_array_equal(gpu.consume(client.obs_cuda), client.obs)
        actions[:, 0] = 1
        client.step(actions)
        final = gpu.consume(client.fields_cuda["final_obs", ""])
        np.testing.assert_array_equal(final, expected_obs(np.full(num_envs, 5)))
        np.testing.assert_array_equal(gpu.consume(client.obs_cuda), expected_obs(np.zeros(num_envs, np.int64)))


def test_no_environments_are_an_invalid_argument() -> None:
    """As for an engine without a GPU."""
    with pytest.raises((tandem.InvalidArgument, tandem.EngineStartFailed), match="num_envs"):
        _launch(num_envs=0).close()


def test_a_step_that_raises_after_it_wrote_leaves_a_client_that_reads(gpu: StandIn, engine: EngineProcess) -> None:
    """Nothing is written after recv; the next step is right."""
    with _attach(engine) as client:
        client.reset(seed=[0] * _ENVS)
        array = client.obs_cuda
        actions = _actions()
        actions[1, 1] = 1
        with pytest.raises(tandem.EngineFailed, match="an action asks for an error"):
            client.step(actions)
        np.testing.assert_array_equal(gpu.consume(array), expected_obs(_same_steps(1)))
        client.step(_actions())
        np.testing.assert_array_equal(gpu.consume(array), expected_obs(_same_steps(2)))


def test_clients_of_an_engine_follow_each_other(gpu: StandIn, engine: EngineProcess) -> None:
    """Each opens the arrays again; tensors of the last one stay."""
    tensors = []
    for seed in range(3):
        with _attach(engine) as client:
            client.reset(seed=[seed] * _ENVS)
            client.step(_actions())
            tensors.append(gpu.take(client.obs_cuda))
            np.testing.assert_array_equal(tensors[-1].values(), expected_obs(_same_steps(seed + 1)))
    del client
    gc.collect()
    assert gpu.count("imports") == 3
    for tensor in tensors:
        tensor.values()
        tensor.free()


def test_another_threads_export_during_a_step_is_refused(gpu: StandIn, engine: EngineProcess) -> None:
    """With ConcurrentUse; the step, which waits for a stopped engine, and later exports are right."""
    with _attach(engine) as client:
        client.reset(seed=[0] * _ENVS)
        array = client.obs_cuda
        stepping = threading.Thread(target=client.step, args=(_actions(),))
        refused = False
        os.kill(engine.pid, signal.SIGSTOP)
        try:
            stepping.start()
            while stepping.is_alive() and not refused:
                try:
                    gpu.consume(array)
                except tandem.ConcurrentUse:
                    refused = True
        finally:
            os.kill(engine.pid, signal.SIGCONT)
        stepping.join()
        assert refused
        np.testing.assert_array_equal(gpu.consume(array), expected_obs(_same_steps(1)))


# A reader on a slow stream: each of the client's calls that let the engine write waits for it.
_LATE_READER = """
import sys
import numpy as np
import tandem
from tandem.testing.cuda_engine import expected_obs
from tandem.testing.standin import StandIn
def attach():
    return tandem.SharedMemoryClient(sys.argv[1], timeout=60, attach_timeout=60)
gpu = StandIn()
stream, delay = gpu.stream(blocking=False), gpu.pinned((1,), np.uint8)
for event in ("step", "reset", "reconnect", "close"):
    client = attach()
    client.reset(seed=[7] * client.num_envs)
    nbytes, actions = client.obs.nbytes, np.zeros((client.num_envs, 2), np.float32)
    tensor, own = gpu.take(client.obs_cuda, stream), gpu.allocate(client.obs.nbytes)
    gpu.write(own, delay, stream)  # which takes 200 ms
    gpu.copy(own, tensor.pointer, nbytes, stream)
    if event == "step":
        client.step(actions)
    elif event == "reset":
        client.reset(seed=[9] * client.num_envs)
    elif event == "reconnect":
        client.reconnect()
    else:
        client.close()
        client = attach()
        client.step(actions)
    found = gpu.read(own, nbytes, stream).view(np.float32).reshape(client.obs.shape)
    assert (found == expected_obs(np.full(client.num_envs, 7))).all(), (event, found)
    client.close()
    print(event)
"""


def test_the_engine_overwrites_nothing_that_a_stream_still_reads(engine: EngineProcess) -> None:
    """Neither in a step or a reset nor after reconnect and close."""
    done = subprocess.run(
        [sys.executable, "-c", _LATE_READER, engine.name],
        env={**os.environ, "TANDEM_STANDIN_COPY_MS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["step", "reset", "reconnect", "close"], done.stderr


_KEEPING_ENGINE = """
import gc, sys, threading
import tandem
from tandem.testing.cuda_engine import CudaCounter
from tandem.testing.standin import StandIn
stop, kept = threading.Event(), []
class Keeping(CudaCounter):
    def reset(self, envs, seeds, arrays):
        super().reset(envs, seeds, arrays)
        kept.append(arrays.cuda)
        stop.set()
engine = Keeping(2)
tandem.serve(engine, name=sys.argv[1], stop=stop)
gpu = StandIn()
kept[0].write_on(0)
assert gpu.read(kept[0].obs.pointer, 4).size == 4
assert gpu.count("allocations") == 1
kept.clear()
gc.collect()
assert gpu.count("allocations") == 0
print("right")
"""


def test_arrays_that_an_engine_keeps_outlive_its_host() -> None:
    """Their memory is freed with the last of them."""
    done = subprocess.run(
        [sys.executable, "-c", _KEEPING_ENGINE, unique_name()], capture_output=True, text=True, check=False, timeout=100
    )
    assert done.stdout == "right\n", done.stderr


def test_an_engine_may_leave_the_regions_observations_empty(gpu: StandIn) -> None:
    """The client says so; the arrays on the GPU have the step's values."""
    with _launch(fills_cpu=0) as engine, _attach(engine) as client:
        assert not client.has_cpu_obs
        with pytest.raises(tandem.Unsupported, match="on a GPU only"):
            tandem.SharedMemoryVectorEnv(client)
        client.reset(seed=[2] * _ENVS)
        client.step(_actions())
        np.testing.assert_array_equal(gpu.consume(client.obs_cuda), expected_obs(_same_steps(3)))
        assert not client.obs.any()


def test_the_cuda_array_interface_describes_the_same_memory(gpu: StandIn, engine: EngineProcess) -> None:
    """Its pointer, type and shape are those of DLPack."""
    with _attach(engine) as client:
        interface = client.obs_cuda.__cuda_array_interface__
        tensor = gpu.take(client.obs_cuda)
        assert interface["data"] == (tensor.pointer, False)
        assert (interface["typestr"], interface["shape"], interface["version"]) == ("<f4", (_ENVS, WIDTH), 3)
        assert client.obs_cuda.__dlpack_device__() == (2, 0)
        tensor.free()
        with pytest.raises(BufferError):
            client.obs_cuda.__dlpack__(copy=True)
        with pytest.raises(BufferError):
            client.obs_cuda.__dlpack__(dl_device=(1, 0))


def test_an_unused_capsule_keeps_the_memory_until_it_is_collected(gpu: StandIn, engine: EngineProcess) -> None:
    """The import ends with the client, the arrays and the last capsule."""
    with _attach(engine) as client:
        capsule = client.obs_cuda.__dlpack__()
    del client
    gc.collect()
    assert gpu.count("imports") == 1
    del capsule
    gc.collect()
    assert gpu.count("imports") == 0


def test_a_pending_step_refuses_an_export(gpu: StandIn, engine: EngineProcess) -> None:
    """Between send and recv the arrays are the engine's."""
    with _attach(engine) as client:
        array = client.obs_cuda
        client.send(_actions())
        with pytest.raises(tandem.StepPending):
            array.__dlpack__()
        client.recv()
        gpu.consume(array)


def test_a_closed_client_refuses_an_export_but_tensors_stay_readable(gpu: StandIn, engine: EngineProcess) -> None:
    """The memory stays open for a tensor from before."""
    client = _attach(engine)
    array = client.obs_cuda
    tensor = gpu.take(array)
    client.close()
    with pytest.raises(tandem.ClientClosed):
        array.__dlpack__()
    with pytest.raises(tandem.ClientClosed):
        client.images_cuda.__dlpack__()
    assert tensor.values().shape == (_ENVS, WIDTH)
    tensor.free()


def test_after_the_engines_death_an_export_is_peer_gone(gpu: StandIn) -> None:
    """Once the client has learned of it. After a restart and reconnect there are new arrays."""
    name = unique_name()
    with _launch(name) as engine:
        client = _attach(name)
        array = client.obs_cuda
        tensor = gpu.take(array)
        os.kill(engine.pid, 9)
        with pytest.raises(tandem.PeerGone):
            client.step(_actions())
        with pytest.raises(tandem.PeerGone):
            array.__dlpack__()
        tensor.values()
    with _launch(name):
        client.reconnect()
        with pytest.raises(tandem.ClientClosed):
            array.__dlpack__()
        client.reset(seed=[1] * _ENVS)
        client.step(_actions())
        np.testing.assert_array_equal(gpu.consume(client.obs_cuda), expected_obs(_same_steps(2)))
        tensor.free()
        client.close()


def test_a_reconnect_to_the_same_engine_makes_new_arrays(gpu: StandIn, engine: EngineProcess) -> None:
    """Arrays from before the reconnect are refused."""
    with _attach(engine) as client:
        array = client.obs_cuda
        client.reconnect()
        with pytest.raises(tandem.ClientClosed):
            array.__dlpack__()
        assert gpu.consume(client.obs_cuda).shape == (_ENVS, WIDTH)


@pytest.mark.parametrize(
    ("function", "result", "error", "fact"),
    [
        ("cuIpcOpenMemHandle_v2", 1, tandem.GpuStaleHandle, "call reconnect"),
        ("cuIpcOpenEventHandle", 400, tandem.GpuStaleHandle, "cuIpcOpenEventHandle"),
        ("cuIpcOpenMemHandle_v2", 2, tandem.GpuFailed, "CUDA_ERROR_OUT_OF_MEMORY"),
        ("cuStreamWaitEvent", 304, tandem.GpuFailed, "cuStreamWaitEvent"),
    ],
)
def test_an_error_of_the_driver_has_its_name(
    gpu: StandIn, engine: EngineProcess, function: str, result: int, error: type[Exception], fact: str
) -> None:
    """The next export is right."""
    with _attach(engine) as client:
        gpu.fail(function, result)
        try:
            with pytest.raises(error, match=fact) as raised:
                client.obs_cuda.__dlpack__()
        finally:
            gpu.fail(function, 0)
        assert raised.type is error
        gpu.consume(client.obs_cuda)


@pytest.mark.parametrize(
    ("variable", "value", "error", "fact"),
    [
        ("TANDEM_CUDA", "no", tandem.GpuDriverMissing, "TANDEM_CUDA=no"),
        ("TANDEM_CUDA", "perhaps", tandem.InvalidArgument, "perhaps"),
        ("TANDEM_STANDIN_FIRST", "5", tandem.GpuOtherDevice, "CUDA_VISIBLE_DEVICES"),
    ],
)
def test_an_error_of_a_setting_has_its_name(
    engine: EngineProcess, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, error: type[Exception], fact: str
) -> None:
    """TANDEM_CUDA; devices of this process that are not the engine's."""
    with _attach(engine) as client:
        monkeypatch.setenv(variable, value)
        with pytest.raises(error, match=fact):
            client.obs_cuda.__dlpack__()


_NEW_PROCESS = """
import json, os, sys
import tandem
client = tandem.SharedMemoryClient(sys.argv[1], timeout=60, attach_timeout=60)
library = os.environ["TANDEM_CUDA_LIBRARY"]
def show(**variables):
    os.environ.update(variables)
    try:
        client.obs_cuda.__dlpack__()
    except tandem.TandemError as error:
        print(json.dumps([type(error).__name__, str(error)]), flush=True)
show(TANDEM_CUDA_LIBRARY="/no/libcuda.so")
show(TANDEM_CUDA_LIBRARY=library, TANDEM_STANDIN_VERSION="11020")
show(TANDEM_STANDIN_VERSION="13000", TANDEM_STANDIN_DEVICES="0")
show(TANDEM_STANDIN_DEVICES="1")
if os.fork() == 0:
    show()
    os._exit(0)
os.wait()
"""


def test_an_error_of_loading_the_driver_has_its_name(engine: EngineProcess) -> None:
    """No error is kept: in the end the process has the driver, and its forked child may not use it."""
    done = subprocess.run(
        [sys.executable, "-c", _NEW_PROCESS, engine.name], capture_output=True, text=True, check=False
    )
    errors = [json.loads(line) for line in done.stdout.splitlines()]
    names = ["GpuDriverMissing", "GpuDriverTooOld", "GpuDriverMissing", "ForkedChild"]
    assert [name for name, _ in errors] == names, done.stderr
    for (_, text), fact in zip(errors, ["/no/libcuda.so", "found 11.2", "CUDA_ERROR_NO_DEVICE"], strict=False):
        assert fact in text


def test_another_context_is_refused(gpu: StandIn, engine: EngineProcess) -> None:
    """In its thread: first the import, then an export."""

    def export_in_another_context() -> None:
        gpu.enter_another_context()
        try:
            client.obs_cuda.__dlpack__()
        except tandem.GpuOtherContext as error:
            found.append(str(error))

    with _attach(engine) as client:
        for times in (1, 2):
            found: list[str] = []
            thread = threading.Thread(target=export_in_another_context)
            thread.start()
            thread.join()
            assert found and "primary" in found[0], times
            gpu.consume(client.obs_cuda)


def test_an_engine_that_died_before_the_first_export_has_a_stale_handle(gpu: StandIn) -> None:
    """The client has not learned of the death yet."""
    with _launch() as engine, _attach(engine) as client:
        os.kill(engine.pid, signal.SIGKILL)
        os.waitid(os.P_PID, engine.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(tandem.GpuStaleHandle, match="CUDA_ERROR_INVALID_VALUE"):
            client.obs_cuda.__dlpack__()


def test_an_engine_of_another_user_is_access_denied(engine: EngineProcess) -> None:
    """CUDA IPC needs the same user, though a group may share the region."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to become another user")
    region = Path("/dev/shm", engine.name)
    os.chown(region, 12345, os.getegid())
    os.chmod(region, 0o660)
    try:
        with _attach(engine) as client, pytest.raises(tandem.AccessDenied, match="12345"):
            client.obs_cuda.__dlpack__()
    finally:
        os.chown(region, os.geteuid(), os.getegid())


def test_without_a_driver_the_engine_fills_the_region_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client names what is missing."""
    monkeypatch.setenv("TANDEM_CUDA", "no")
    with _launch() as engine, _attach(engine) as client:
        client.reset(seed=[4] * _ENVS)
        np.testing.assert_array_equal(client.obs, expected_obs(_same_steps(4)))
        assert client.gpu_path == ""
        with pytest.raises(tandem.Unsupported, match="tandem.torch"):
            client.obs_cuda.__dlpack__()


@pytest.mark.parametrize(("setting", "fills_cpu"), [("require", 1), ("auto", 0)])
def test_an_engine_that_needs_the_driver_does_not_start_without(
    setting: str, fills_cpu: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its log has the driver's error."""
    monkeypatch.setenv("TANDEM_CUDA", setting)
    monkeypatch.setenv("TANDEM_CUDA_LIBRARY", "/no/libcuda.so")
    with pytest.raises(GpuDriverMissing, match=r"/no/libcuda\.so"):
        _launch(fills_cpu=fills_cpu).close()
    monkeypatch.setenv("TANDEM_CUDA_LIBRARY", str(LIBRARY))


def test_a_failed_copy_on_the_device_fails_the_step_but_not_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client gets EngineFailed with the driver's call."""
    monkeypatch.setenv("TANDEM_STANDIN_FAIL", "cuMemcpyDtoDAsync_v2=304")
    with _launch() as engine:
        monkeypatch.delenv("TANDEM_STANDIN_FAIL")
        with _attach(engine) as client:
            client.step(_actions())
            with pytest.raises(tandem.EngineFailed, match="final observation"):
                client.step(_actions(0))
            client.step(_actions())


def test_real_time_is_refused() -> None:
    """An engine with arrays on a GPU steps only by exchanges."""
    with pytest.raises(tandem.Unsupported, match="arrays on a GPU"):
        tandem.launch_engine(
            name=unique_name(), num_envs=_ENVS, server=_ENGINE, timeout=60, flags=["--mode=realtime"]
        ).close()


def _nothing_in_use(secs: float = 20) -> bool:
    end = time.monotonic() + secs
    while memories_in_use(_TAG):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


@pytest.mark.parametrize("first", _FIRSTS)
def test_an_engine_killed_at_each_call_of_the_driver_leaves_nothing(
    gpu: StandIn, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    """The client gets PeerGone or no region, or a later step fails; a new engine serves; no memory remains.

    Each engine takes the name of the last one, and goes through all moments at which the ones before were killed.
    """
    name = unique_name()
    for moment in range(first, 1000, _STRIDE):
        monkeypatch.setenv("TANDEM_STANDIN_KILL_AT", str(moment))
        try:
            engine = _launch(name)
        except tandem.EngineStartFailed:
            monkeypatch.delenv("TANDEM_STANDIN_KILL_AT")
            continue
        monkeypatch.delenv("TANDEM_STANDIN_KILL_AT")
        with closing(engine):
            try:
                with _attach(engine) as client:
                    client.reset(seed=[0] * _ENVS)
                    for step in (1, 2):
                        client.step(_actions())
                        values = gpu.consume(client.obs_cuda)
                        # The wait for an engine that was killed ends early; one that answers now was not.
                        client.step(_actions(0))
                        np.testing.assert_array_equal(values, expected_obs(np.array([1, 2 * step - 1, 2 * step - 1])))
            except (tandem.PeerGone, tandem.NotReady, tandem.GpuStaleHandle):
                continue
            break
    else:
        pytest.fail("the engine was killed at each of 1000 moments")
    assert moment > 100  # it is the first one that no call of this session reaches
    print(f"killed at {moment // _STRIDE} moments of {moment}")
    del client
    gc.collect()
    assert _nothing_in_use(), memories_in_use(_TAG)


_SHORT_CLIENT = """
import sys
import tandem
from tandem.testing.standin import StandIn
import numpy as np
gpu = StandIn()
with tandem.SharedMemoryClient(sys.argv[1], timeout=60, attach_timeout=60) as client:
    for step in range(3):
        client.step(client.actions)
        gpu.consume(client.obs_cuda)
print(gpu.calls())
"""


@pytest.mark.parametrize("first", _FIRSTS)
def test_a_client_killed_at_each_call_of_the_driver_leaves_the_engine_serving(gpu: StandIn, first: int) -> None:
    """The next client reads right values; the engine's allocations stay, and no memory remains in the end."""
    with _launch() as engine:
        moment, moments = first, None
        while moments is None or moment <= moments:
            variables: dict[str, str] = {} if moments is None else {"TANDEM_STANDIN_KILL_AT": str(moment)}
            done = subprocess.run(
                [sys.executable, "-c", _SHORT_CLIENT, engine.name],
                env={**os.environ, **variables},
                capture_output=True,
                text=True,
                check=False,
                timeout=100,
            )
            if moments is None:
                moments = 2 * int(done.stdout)
                assert moments > 40
                continue
            assert done.returncode == -9, done.stderr
            moment += _STRIDE
        print(f"killed at {moment // _STRIDE} moments of {moments}")
        with _attach(engine) as client:
            client.reset(seed=[3] * _ENVS)
            client.step(_actions())
            np.testing.assert_array_equal(gpu.consume(client.obs_cuda), expected_obs(_same_steps(4)))
    del client
    gc.collect()
    assert _nothing_in_use(), memories_in_use(_TAG)
