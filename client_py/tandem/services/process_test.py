"""RPCs with several processes and threads: stopped and killed engines, forks, reconnects, Ctrl-C."""

import gc
import math
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import tandem
from tandem.testing.engines import (  # noqa: F401, the fixtures
    in_forked_child,
    nothing_left_behind,
    run_python,
    start_python,
    stop,
    unique_name,
    watchdog,
)

# The fixtures `engine` and `client`.
pytest_plugins = ["tandem.testing.half_cheetah"]


def _in_thread(call: Callable[[], object]) -> "Future[object]":
    """Calls a function in a thread, which runs when this returns."""
    begun = threading.Event()

    def work() -> object:
        begun.set()
        return call()

    pool = ThreadPoolExecutor(1)
    future = pool.submit(work)
    pool.shutdown(wait=False)
    begun.wait()
    return future


def test_threads_call_while_another_steps(client: tandem.SharedMemoryClient) -> None:
    """Each call gets its own answer, and the steps continue."""
    stop = threading.Event()

    def call(env_id: int) -> int:
        for _ in range(300):
            (schema,) = client.get_schema([env_id])
            assert schema.agent_name == f"agent_{env_id}"
        return env_id

    def step() -> int:
        steps = 0
        client.actions[:] = 0
        while not stop.is_set() or steps < 100:
            client.step(client.actions)
            steps += 1
        return steps

    stepping = _in_thread(step)
    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(call, range(4))) == [0, 1, 2, 3]
    stop.set()
    assert stepping.result() == client.stats().exchanges


def test_call_to_a_stopped_engine_is_a_time_out(client: tandem.SharedMemoryClient) -> None:
    """The client works after SIGCONT, and drops the late answer."""
    stop(client.engine_pid)
    for timeout in (0, 0.05):
        with pytest.raises(tandem.StepTimeout, match=f"{client.name}.*did not answer"):
            client.get_schema(timeout=timeout)
    with client.mujoco.stream_joint_state(timeout=0.05) as stream, pytest.raises(TimeoutError):
        next(stream)
    os.kill(client.engine_pid, signal.SIGCONT)
    assert client.get_schema([3])[0].agent_name == "agent_3"
    client.step(client.actions)


def test_calls_use_the_clients_time_out(engine: tandem.EngineProcess) -> None:
    """A call or stream without a time-out uses the client's."""
    with tandem.SharedMemoryClient(engine.name, timeout=0.05, attach_timeout=60) as client:
        stop(engine.pid)
        with pytest.raises(tandem.StepTimeout):
            client.services()
        with pytest.raises(tandem.StepTimeout):
            client.telemetry.stream().next()
        os.kill(engine.pid, signal.SIGCONT)


@pytest.mark.parametrize("timeout", [-1, math.nan])
def test_invalid_timeout_is_refused(client: tandem.SharedMemoryClient, timeout: float) -> None:
    """Calls and streams refuse it."""
    for call in (client.services, client.telemetry.stream):
        with pytest.raises(tandem.InvalidArgument, match="timeout"):
            call(timeout=timeout)


def _waiting_calls(client: tandem.SharedMemoryClient) -> list[Callable[[], object]]:
    stream = client.mujoco.stream_joint_state(timeout=math.inf)
    return [lambda: client.get_schema(timeout=math.inf), lambda: stream.next(math.inf)]


@pytest.mark.parametrize("kind", [0, 1], ids=["call", "stream"])
def test_killed_engine_ends_waiting_calls(client: tandem.SharedMemoryClient, kind: int) -> None:
    """The waiting call and later calls raise PeerGone, as a step does."""
    stop(client.engine_pid)
    waiting = _in_thread(_waiting_calls(client)[kind])
    with pytest.raises(tandem.StepTimeout):
        client.get_schema(timeout=0.1)  # while the other thread waits
    assert not waiting.done()
    os.kill(client.engine_pid, signal.SIGKILL)
    assert isinstance(waiting.exception(30), tandem.PeerGone)
    for call in (client.get_schema, client.services, client.debug.clear):
        with pytest.raises(tandem.PeerGone):
            call()


@pytest.mark.parametrize("ending", ["close", "reconnect"])
@pytest.mark.parametrize("kind", [0, 1], ids=["call", "stream"])
def test_end_of_the_session_ends_waiting_calls(client: tandem.SharedMemoryClient, kind: int, ending: str) -> None:
    """The other thread's call raises ClientClosed; `close` and `reconnect` do not hang; later calls work."""
    agent = client.agent
    stop(client.engine_pid)
    waiting = _in_thread(_waiting_calls(client)[kind])
    with pytest.raises(tandem.StepTimeout):
        client.get_schema(timeout=0.1)  # while the other thread waits
    if ending == "close":
        client.close()
        with pytest.raises(tandem.ClientClosed):
            client.get_schema()
    else:
        with pytest.raises(tandem.StepTimeout):
            client.reconnect(timeout=0.05)  # the engine is still stopped
        with pytest.raises(tandem.ClientClosed, match="not reconnected"):
            client.get_schema()
        os.kill(client.engine_pid, signal.SIGCONT)
        client.reconnect()
        assert agent.schema().agent_name == "agent_0"
    assert isinstance(waiting.exception(30), tandem.ClientClosed)
    os.kill(client.engine_pid, signal.SIGCONT)


def test_streams_of_an_ended_session_raise(client: tandem.SharedMemoryClient) -> None:
    """`close` of such a stream has no effect."""
    stream = client.mujoco.stream_joint_state()
    client.reconnect()
    with pytest.raises(tandem.ClientClosed, match="reconnect"):
        for _ in stream:  # items received before the reconnect
            pass
    assert stream.dropped == 0
    stream.close()
    stream.close()
    assert list(stream) == []


def test_calls_during_reconnects_fail_cleanly_or_work(client: tandem.SharedMemoryClient) -> None:
    """A call gets its own answer or raises ClientClosed; none hangs."""
    stop = threading.Event()

    def call() -> int:
        answered = 0
        while not stop.is_set():
            try:
                assert client.get_schema([2])[0].agent_name == "agent_2"
                answered += 1
            except tandem.ClientClosed:
                pass
        return answered

    calling = [_in_thread(call) for _ in range(3)]
    for _ in range(20):
        client.reconnect()
        client.get_schema()
    stop.set()
    assert sum(each.result(60) for each in calling) > 0  # type: ignore[misc]


def test_forked_child_is_refused(client: tandem.SharedMemoryClient) -> None:
    """Calls in a forked child are refused, before and after the parent's first call; the parent's calls work."""
    for _ in range(2):
        for call in (client.get_schema, client.scene.info, client.telemetry.stream):
            assert in_forked_child(lambda call=call: str(call())).startswith("ForkedChild")  # type: ignore[misc]
        assert client.get_schema().agent_name == "agent_0"
    stream = client.mujoco.stream_joint_state(timeout=0)

    def use_stream() -> str:
        with stream, pytest.raises(tandem.ForkedChild):
            stream.next()
        return f"refused {stream.dropped}"

    assert in_forked_child(use_stream) == "refused 0"
    assert client.get_schema().agent_name == "agent_0"


def test_services_and_streams_keep_the_client_attached(engine: tandem.EngineProcess) -> None:
    """An unreferenced client stays attached as long as one of its services or streams exists."""
    client = tandem.SharedMemoryClient(engine.name)
    stream = client.mujoco.stream_joint_state()
    agent = client.agent
    del client
    gc.collect()
    assert agent.schema().agent_name == "agent_0"
    del agent
    gc.collect()
    with pytest.raises(tandem.AlreadyAttached):
        tandem.SharedMemoryClient(engine.name)
    del stream
    gc.collect()
    tandem.SharedMemoryClient(engine.name).close()


_INTERRUPTED_CALLER = """
import os, signal, sys, threading, time
import tandem
client = tandem.SharedMemoryClient(sys.argv[1], timeout=100)
os.kill(client.engine_pid, signal.SIGSTOP)
while open(f"/proc/{client.engine_pid}/stat").read().rsplit(")", 1)[1].split()[0] != "T":
    time.sleep(0.001)
stream = client.mujoco.stream_joint_state()
if sys.argv[3] == "beside":  # another thread reads the ring for all
    threading.Thread(target=client.get_schema, daemon=True).start()
try:
    print("waiting", flush=True)
    client.get_schema() if sys.argv[2] == "call" else stream.newest()
except KeyboardInterrupt:
    print("interrupted", flush=True)
os.kill(client.engine_pid, signal.SIGCONT)
print(client.get_schema().agent_name, flush=True)
client.step(client.actions)
client.close()
"""


@pytest.mark.parametrize("beside", ["alone", "beside"])
@pytest.mark.parametrize("kind", ["call", "stream"])
def test_ctrl_c_ends_only_the_wait(engine: tandem.EngineProcess, kind: str, beside: str) -> None:
    """KeyboardInterrupt ends the wait, also if another thread reads the ring; later calls and steps work."""
    caller = start_python(_INTERRUPTED_CALLER, engine.name, kind, beside)
    assert caller.stdout is not None
    assert caller.stdout.readline() == "waiting\n"
    caller.send_signal(signal.SIGINT)
    out, err = caller.communicate()
    assert out.splitlines() == ["interrupted", "agent_0"], err
    assert engine.poll() is None


_DAEMON_THREAD_AT_EXIT = """
import sys, threading, time, tandem
client = tandem.SharedMemoryClient(sys.argv[1])
called = []
def forever():
    while True:
        called.append(client.get_schema())
for _ in range(2):
    threading.Thread(target=forever, daemon=True).start()
while len(called) < 100:
    time.sleep(0.001)
"""


def test_daemon_thread_in_a_call_does_not_spoil_the_interpreters_exit(engine: tandem.EngineProcess) -> None:
    """Python unwinds a daemon thread that acquires the GIL during shutdown; the binding must let it."""
    for _ in range(5):
        run_python(_DAEMON_THREAD_AT_EXIT, engine.name)


_UNRULY_CLIENT = """
import sys, tandem
client = tandem.SharedMemoryClient(sys.argv[1], timeout=60)
client.reset(seed=1, contract=tandem.services.SimulationContract(mass_scale_range=(2, 3), joint_position_noise=0.3))
client.step(client.actions)
for env_id in range(client.num_envs):
    client.debug.line((-1, 0, 0.5), (1, 0, 1), color=(1, 0, 0), env_id=env_id)
client.scene.set_simulation_mode(tandem.services.SimulationMode.REALTIME)
client.scene.pause()
client.mujoco.send_control({0: -1.0}, env_ids=range(client.num_envs))
print("leaving", flush=True)
sys.stdin.readline()
client.close()
"""


def _beginning(engine: tandem.EngineProcess) -> list[np.ndarray]:
    seen: list[np.ndarray] = []
    with tandem.SharedMemoryClient(engine.name, timeout=60) as client:
        assert client.scene.simulation_mode() is tandem.services.SimulationMode.FAST
        assert not client.scene.paused()
        seen.append(client.reset(seed=3).copy())
        seen.append(client.viewport.frame(width=96, height=64).pixels)
        for _ in range(3):
            obs, rewards, *_ = client.step(np.full((4, 6), 0.5, np.float32))
            seen += [obs.copy(), rewards.copy()]
        seen.append(client.reset().copy())  # depends only on the random numbers
    return seen


@pytest.mark.parametrize("killed", [False, True], ids=["closed", "killed"])
def test_new_client_starts_with_the_tasks_defaults(engine: tandem.EngineProcess, killed: bool) -> None:
    """The previous client's contract, marks, mode, pause and controls are gone, after `close` and after SIGKILL."""
    with tandem.launch_engine("HalfCheetah-v5", num_envs=4, name=unique_name()) as fresh:
        expected = _beginning(fresh)
    unruly = start_python(_UNRULY_CLIENT, engine.name)
    assert unruly.stdout is not None
    assert unruly.stdout.readline() == "leaving\n"
    if killed:
        unruly.kill()
    _, err = unruly.communicate(None if killed else "\n")
    assert killed or unruly.returncode == 0, err
    for found, wanted in zip(_beginning(engine), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_ten_thousand_calls_leave_nothing_behind(client: tandem.SharedMemoryClient) -> None:
    """Neither calls nor abandoned streams keep memory."""

    def resident_kib() -> int:
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0])

    def use(times: int) -> None:
        for _ in range(times):
            client.get_schema()
            client.telemetry.stream()

    use(1000)
    before = resident_kib()
    use(10_000)
    assert resident_kib() - before < 4096
    np.testing.assert_array_equal(client.step(client.actions)[2], [0, 0, 0, 0])
