"""The step through the gRPC gateway, compared with shared memory on the same engine, and with a bare gRPC server."""

import contextlib
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import tandem
from tests.benchmark.engine_process import SMALL, serving
from tests.benchmark.rows import Case, Figures, Row, Suite, turns, us

_HERE, _ROOT = Path(__file__).parent, Path(__file__).parents[2]
_PEER, _GATEWAY = _HERE / "gateway_peer", _ROOT / "gateway/tandem-gateway"
_CHEETAH = "HalfCheetah-v5"
_WARM_UP_NS = 30_000_000
# After the start of a program that watches: its imports use a core, so that the waiting sides sleep at first.
_SETTLING_NS = 1_000_000_000
_SECS = 60.0  # of a call; a watchdog

Step = Callable[[], object]
Served = Callable[[str, str], contextlib.AbstractContextManager[str]]  # task, name -> address


@contextlib.contextmanager
def _program(command: list[str]) -> Iterator[str]:
    """Runs a program that prints its address; yields the address, and ends the program afterwards."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout is not None
            line = program.stdout.readline()
            found = re.search(r"127\.0\.0\.1:\d+", line)
            if not found:
                raise RuntimeError(f"expected {command[0]} to print its address, found {line!r}")
            yield found[0]
        finally:
            program.terminate()


def _engine(task: str, name: str) -> contextlib.AbstractContextManager[object]:
    """Runs an engine: of a task, or that of 1 x 4 x 1."""
    if task:
        return tandem.launch_engine(task, name=name, server=_ROOT / "engine_adapter/server/server")
    return serving("host_adaptive", SMALL, name)


@contextlib.contextmanager
def _gateway(task: str, name: str) -> Iterator[str]:
    """Runs an engine and its gateway; yields the gateway's address."""
    command = [str(_GATEWAY), f"--name={name}", "--listen=127.0.0.1:0", f"--parent={os.getpid()}"]
    with _engine(task, name):
        tandem.Attendant(name, timeout=_SECS).close()  # waits until the engine serves, for callers that do not
        with _program(command) as address:
            yield address


@contextlib.contextmanager
def _bare(task: str, name: str) -> Iterator[str]:
    """Runs the bare gRPC server, which has no engine."""
    with _program([str(_PEER), "serve"]) as address:
        yield address


def _measured(step: Step, seconds: float, warm_up_ns: int = _WARM_UP_NS) -> Figures:
    nanos: list[int] = []
    now = time.perf_counter_ns
    warm = now() + warm_up_ns
    end = warm + int(seconds * 1e9)
    while len(nanos) < 10 or now() < end:
        begun = now()
        step()
        done = now()
        if done >= warm:
            nanos.append(done - begun)
    return us(nanos, mean=True)


def _by_memory(task: str, name: str, seconds: float) -> Figures:
    with (
        _engine(task, name),
        tandem.SharedMemoryClient(name, timeout=30, autoreset_mode=tandem.AutoresetMode.DISABLED) as client,
    ):
        client.reset()
        actions = np.full((1, client.act_size), 0.5, np.float32)
        return _measured(lambda: client.step(actions), seconds)


def _by_stub(served: Served, task: str, name: str, seconds: float) -> Figures:
    import grpc

    from schema.protos.hazel import agent_pb2, agent_pb2_grpc

    with served(task, name) as address, grpc.insecure_channel(address) as channel:
        stub = agent_pb2_grpc.AgentServiceStub(channel)
        _reset(lambda: stub.ResetAgent(agent_pb2.ResetAgentRequest(), timeout=_SECS))
        actions = [0.5] * (6 if task else SMALL.act)

        def step() -> None:
            answer = stub.Step(agent_pb2.StepRequest(actions=actions), timeout=_SECS)
            if not answer.success:
                raise RuntimeError(answer.message)

        return _measured(step, seconds)


def _reset(reset: Callable[[], object]) -> None:
    """Resets when the engine is there."""
    deadline = time.monotonic() + _SECS
    while not reset().success:  # type: ignore[attr-defined]
        if time.monotonic() > deadline:
            raise RuntimeError("expected an engine, found none")


def _by_lucky_env(task: str, name: str, seconds: float) -> Figures:
    from luckyrobots import LuckyEnv

    with _gateway(task, name) as address:
        host, port = address.split(":")
        env = LuckyEnv(host=host, port=int(port), timeout=1)
        try:
            env.reset()
            action = np.full(env.action_space.shape, 0.5, np.float32)
            return _measured(lambda: env.step(action), seconds)
        finally:
            env.close()


def _by_cpp(task: str, name: str, seconds: float) -> Figures:
    with _gateway(task, name) as address:
        actions = str(6 if task else SMALL.act)
        command = [str(_PEER), "call", address, str(seconds), actions]
        printed = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    return us(np.frombuffer(printed, np.int64), mean=True)


# A program that watches the training: prints a line after the first image, and the number of images at its input's end.
_WATCHER = """
import sys, threading, time, grpc
from schema.protos.hazel import camera_pb2, camera_pb2_grpc, telemetry_pb2, telemetry_pb2_grpc
channel = grpc.insecure_channel(sys.argv[1])
telemetry = telemetry_pb2_grpc.TelemetryServiceStub(channel).StreamTelemetry(
    telemetry_pb2.StreamTelemetryRequest(target_fps=30))
threading.Thread(target=lambda: [None for frame in telemetry], daemon=True).start()
images = camera_pb2_grpc.CameraServiceStub(channel).StreamCamera(
    camera_pb2.StreamCameraRequest(name="track", target_fps=30, width=320, height=240))
next(images)
count = 0
def watch():
    global count
    for image in images:
        count += 1
threading.Thread(target=watch, daemon=True).start()
print("watching", flush=True)
began = time.monotonic()
sys.stdin.read()
print(count / (time.monotonic() - began), flush=True)
sys.stdout.close()
import os; os._exit(0)
"""


def _trained(watched: bool, name: str, seconds: float) -> Figures:
    """Steps at full speed by shared memory beside the gateway, which is idle or streams telemetry and a camera."""
    with (
        _gateway(_CHEETAH, name) as address,
        tandem.SharedMemoryClient(name, timeout=30) as client,
        contextlib.ExitStack() as stack,
    ):
        actions = np.full((1, client.act_size), 0.5, np.float32)
        client.reset()
        if not watched:
            return _measured(lambda: client.step(actions), seconds, _SETTLING_NS)
        command = [sys.executable, "-c", _WATCHER, address]
        watcher = stack.enter_context(
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        assert watcher.stdin is not None and watcher.stdout is not None
        ready = threading.Thread(target=watcher.stdout.readline)
        ready.start()
        while ready.is_alive():  # an image needs a step between two
            client.step(actions)
        figures = _measured(lambda: client.step(actions), seconds, _SETTLING_NS)
        watcher.stdin.close()
        return figures | {"images/s": float(watcher.stdout.readline())}


def _rows(task: str, against: str) -> list[Row]:
    return [
        Row("memory", "Tandem, shared memory, Python", turns(_by_memory, task), (against,)),
        Row("stub", "Tandem, gateway, Python", turns(_by_stub, _gateway, task), (against,)),
        Row("lucky_env", "Tandem, gateway, LuckyEnv", turns(_by_lucky_env, task), (against,)),
        Row("cpp", "Tandem, gateway, C++", turns(_by_cpp, task), (against,)),
    ]


_BARE = Row("bare", "bare gRPC server, no engine, Python", turns(_by_stub, _bare, ""))


SUITES = {
    "gateway": Suite(
        "gateway",
        "the step through the gRPC gateway; limit: a bare gRPC server with the same messages",
        [
            Case(f"{SMALL}: a step through the gateway", [_BARE, *_rows("", "bare")], ("p50 us",)),
            Case(f"{_CHEETAH}, one environment: a step through the gateway", _rows(_CHEETAH, "memory"), ("p50 us",)),
            Case(
                f"{_CHEETAH}: a trainer by shared memory, while a program watches through the gateway",
                [
                    Row("alone", "Tandem, beside an idle gateway", turns(_trained, False)),
                    Row("watched", "Tandem, telemetry at 30/s, 320 × 240 at 30/s", turns(_trained, True), ("alone",)),
                ],
                ("p50 us", "mean us"),
            ),
        ],
        __name__,
    )
}
