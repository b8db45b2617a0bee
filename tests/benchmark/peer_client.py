"""A client in Python of one of Tandem's peers: measures one group of a row, and prints it as round_trip does.

    tools/benchmark runs it, with the row's interpreter (tools/extra_env).

Each row is the fastest way that its library offers to wait for a step's results:

- python_grpc: a unary call with bytes to the C++ server of round_trip, so that only the client is Python's.
- python_iceoryx2: requests and responses in borrowed memory; both sides poll, which spares waking a sleeper.
- python_zeromq: a PAIR socket, which has no envelopes, over ipc; large messages are not copied by Python.
- python_async_vector_env: observations by shared memory, and not copied for the caller. The engine is its workers.
- python_subproc_vec_env: as it comes. The engine is its workers.

CPU time of the engine is that of all its processes. Nothing outlives this process, however it ends: its children get a
signal, sockets have abstract names, and iceoryx2's files lie in a mount namespace.
"""

import argparse
import contextlib
import ctypes
import json
import multiprocessing
import os
import signal
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import numpy as np

from tests.benchmark.client_loop import Floats, PackedResults, Results, Step, TrivialWork, measure_steps, nbytes_of
from tests.benchmark.engine_process import cpu_nanos_of, end_with_parent, forked, serving
from tests.benchmark.measurement import UNAVAILABLE, Size

# Each row imports its library by itself: an interpreter has not all, and some take a second.
if TYPE_CHECKING:
    import gymnasium

CpuNanos = Callable[[], int]
Connected = AbstractContextManager[tuple[Step, CpuNanos]]

_CONNECT_SECS = 30.0
_COPY_AT_MOST = 1 << 16  # bytes; below that ZeroMQ's copying is quicker than its bookkeeping
_CLONE_NEWNS, _CLONE_NEWUSER = 0x20000, 0x10000000
_MS_REC_PRIVATE = 0x4000 | 0x40000


@contextlib.contextmanager
def over_grpc(size: Size, region: str) -> Iterator[tuple[Step, CpuNanos]]:
    """Calls round_trip's gRPC server."""
    import grpc
    from tests.benchmark.round_trip_pb2 import Actions, StepResults

    def step(actions: Floats) -> Results:
        found = call(Actions(actions=actions.tobytes()))
        return (
            np.frombuffer(found.obs, np.float32).reshape(size.envs, size.obs),
            np.frombuffer(found.rewards, np.float32),
            np.frombuffer(found.dones, np.uint8),
        )

    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    options += [(f"grpc.{bound}_reconnect_backoff_ms", 5) for bound in ("initial", "min", "max")]
    with serving("grpc", size, f"--region={region}") as engine:
        with grpc.insecure_channel(f"unix-abstract:{region}", options) as channel:
            grpc.channel_ready_future(channel).result(timeout=_CONNECT_SECS)
            call = channel.unary_unary(
                "/tandem.benchmark.StepEngine/Step",
                request_serializer=Actions.SerializeToString,
                response_deserializer=StepResults.FromString,
            )
            yield step, engine.cpu_nanos


@contextlib.contextmanager
def over_zeromq(size: Size, region: str) -> Iterator[tuple[Step, CpuNanos]]:
    """Talks to an engine in Python."""
    import zmq

    copy_actions = size.envs * size.act * 4 <= _COPY_AT_MOST
    copy_results = nbytes_of(size) <= _COPY_AT_MOST

    def serve() -> None:
        work, packed = TrivialWork(size), PackedResults(size)
        with zmq.Context() as context, context.socket(zmq.PAIR) as engine:
            engine.bind(f"ipc://@{region}")
            while True:
                work(_floats(engine.recv(0, copy_actions), size), packed.arrays)
                engine.send(packed.memory.data, 0, copy_results)

    def step(actions: Floats) -> Results:
        client.send(actions.data, 0, copy_actions)
        return PackedResults(size, client.recv(0, copy_results)).arrays

    with forked(serve) as engine, zmq.Context() as context, context.socket(zmq.PAIR) as client:
        client.setsockopt(zmq.LINGER, 0)
        client.setsockopt(zmq.RECONNECT_IVL, 5)
        client.connect(f"ipc://@{region}")
        yield step, engine.cpu_nanos


@contextlib.contextmanager
def over_iceoryx2(size: Size, region: str) -> Iterator[tuple[Step, CpuNanos]]:
    """Asks an engine in Python."""
    import iceoryx2

    # Before anything of it runs, and after everything is imported: /tmp is another one from here on.
    enter_own_folders()
    iceoryx2.set_log_level(iceoryx2.LogLevel.Error)
    action_bytes = size.envs * size.act * 4
    response = None  # held until the next one is there: its memory has the results

    def service() -> tuple[object, iceoryx2.PortFactoryRequestResponse]:
        node = iceoryx2.NodeBuilder.new().create(iceoryx2.ServiceType.Ipc)
        octets = iceoryx2.Slice[ctypes.c_uint8]
        name = iceoryx2.ServiceName.new(region)
        builder = node.service_builder(name).request_response(octets, octets)
        cache_line = iceoryx2.Alignment.new(64)
        builder = builder.request_payload_alignment(cache_line).response_payload_alignment(cache_line)
        return node, builder.open_or_create()

    def serve() -> None:
        work = TrivialWork(size)
        node, factory = service()
        server = factory.server_builder().initial_max_slice_len(nbytes_of(size)).create()
        while True:
            asked = server.receive()
            if asked is None:
                continue
            reply = asked.loan_slice_uninit(nbytes_of(size))
            results = PackedResults(size, reply.payload().as_memory_view()).arrays
            work(_floats(asked.payload().as_memory_view(), size), results)
            reply.assume_init().send()

    def step(actions: Floats) -> Results:
        nonlocal response
        request = client.loan_slice_uninit(action_bytes)
        request.payload().as_memory_view().cast("B")[:] = actions.data.cast("B")
        pending = request.assume_init().send()
        response = None  # the one before goes back
        while response is None:
            response = pending.receive()
        return PackedResults(size, response.payload().as_memory_view()).arrays

    with forked(serve) as engine:
        node, factory = service()
        client = factory.client_builder().initial_max_slice_len(action_bytes).create()
        until = time.monotonic() + _CONNECT_SECS
        while factory.dynamic_config.number_of_servers == 0:
            if time.monotonic() > until:
                raise RuntimeError(
                    f"iceoryx2: expected the engine's server within {_CONNECT_SECS:.0f} s, found none. Next: see what "
                    f"the engine (pid {engine.pid}) says above."
                )
        yield step, engine.cpu_nanos


@contextlib.contextmanager
def over_async_vector_env(size: Size, region: str) -> Iterator[tuple[Step, CpuNanos]]:
    """Steps Gymnasium's vector of processes."""
    from gymnasium.vector import AsyncVectorEnv

    envs = AsyncVectorEnv([_trivial_env(size)] * size.envs, shared_memory=True, copy=False, context="fork")
    pids = [process.pid for process in envs.processes if process.pid]

    def step(actions: Floats) -> Results:
        obs, rewards, terminated, _, _ = envs.step(actions)
        return obs, rewards, terminated

    try:
        envs.reset()
        yield step, lambda: cpu_nanos_of(pids)
    finally:
        envs.close(terminate=True)


@contextlib.contextmanager
def over_subproc_vec_env(size: Size, region: str) -> Iterator[tuple[Step, CpuNanos]]:
    """Steps Stable-Baselines3's vector of processes."""
    from stable_baselines3.common.vec_env import SubprocVecEnv

    envs = SubprocVecEnv([_trivial_env(size)] * size.envs, start_method="fork")
    pids = [process.pid for process in envs.processes if process.pid]

    def step(actions: Floats) -> Results:
        obs, rewards, dones, _ = envs.step(actions)
        return obs, rewards, dones

    try:
        envs.reset()
        yield step, lambda: cpu_nanos_of(pids)
    finally:
        envs.close()


def _floats(memory: object, size: Size) -> Floats:
    return np.frombuffer(memory, np.float32).reshape(size.envs, size.act)  # type: ignore[call-overload, no-any-return]


def _trivial_env(size: Size) -> "Callable[[], gymnasium.Env[Floats, Floats]]":
    """One environment of the engine's work, in Gymnasium's way."""
    import gymnasium

    client = os.getpid()

    class TrivialEnv(gymnasium.Env[Floats, Floats]):
        def __init__(self) -> None:
            if os.getpid() != client:  # Gymnasium makes one there, too, to see its spaces
                end_with_parent(signal.SIGKILL, client)
            self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (size.obs,), np.float32)
            self.action_space = gymnasium.spaces.Box(-np.inf, np.inf, (size.act,), np.float32)
            self._ramp = np.arange(size.obs, dtype=np.float32)

        def reset(self, *, seed: int | None = None, options: object = None) -> tuple[Floats, dict[str, object]]:
            return self._ramp, {}

        def step(self, action: Floats) -> tuple[Floats, float, bool, bool, dict[str, object]]:
            reward = action.sum(dtype=np.float32)
            return reward + self._ramp, float(reward), False, False, {}

    return TrivialEnv


def enter_own_folders() -> None:
    """Gives this process and its children a /dev/shm and a /tmp that nobody else sees, and that end with them.

    As iceoryx_rows.cc does. Ends the process with `UNAVAILABLE` where the system forbids it.
    """
    libc = ctypes.CDLL(None, use_errno=True)

    def refuse_if(failed: int) -> None:
        if failed:
            refuse(os.strerror(ctypes.get_errno()))

    def refuse(reason: object) -> None:
        print(
            f"iceoryx2: expected to be allowed a mount namespace, found: {reason}. Next: leave its row out, or run as "
            "root (in a container: with CAP_SYS_ADMIN).",
            file=sys.stderr,
        )
        sys.exit(UNAVAILABLE)

    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_CLONE_NEWNS):
        # Those who may not do that may as the root of a namespace of users.
        refuse_if(libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNS))
        for file, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            try:
                with open(f"/proc/self/{file}", "w", encoding="ascii") as out:
                    out.write(text)
            except OSError as error:
                refuse(error)
    refuse_if(libc.mount(b"none", b"/", None, ctypes.c_ulong(_MS_REC_PRIVATE), None))
    for folder in (b"/dev/shm", b"/tmp"):
        refuse_if(libc.mount(b"tmpfs", folder, b"tmpfs", ctypes.c_ulong(0), None))


ROWS: dict[str, Callable[[Size, str], Connected]] = {
    "python_grpc": over_grpc,
    "python_iceoryx2": over_iceoryx2,
    "python_zeromq": over_zeromq,
    "python_async_vector_env": over_async_vector_env,
    "python_subproc_vec_env": over_subproc_vec_env,
}


def main() -> None:
    """Measures one group and prints it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--row", choices=ROWS, required=True, help="what to measure")
    parser.add_argument("--envs", type=int, default=1, help="environments (1)")
    parser.add_argument("--obs", type=int, default=4, help="floats of an observation (4)")
    parser.add_argument("--act", type=int, default=1, help="floats of an action (1)")
    parser.add_argument("--exchanges", type=int, default=1000, help="how many to measure (1000)")
    parser.add_argument("--seconds", type=float, default=2.0, help="stop measuring after that long (2)")
    unique = f"tandem-benchmark-{uuid.uuid4().hex}"
    parser.add_argument("--region", default=unique, help="name of the socket (a unique one)")
    parser.add_argument("--parent", type=int, default=os.getppid(), help="process to end with (the parent)")
    parsed = parser.parse_args()
    # An end by a signal is an end at once: there is nothing to tidy up, and nothing to say.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with_parent(signal.SIGTERM, parsed.parent)
    multiprocessing.set_start_method("fork")
    size = Size(parsed.envs, parsed.obs, parsed.act, parsed.exchanges)
    with ROWS[parsed.row](size, parsed.region) as (step, engine_cpu_nanos):
        group = measure_steps(step, engine_cpu_nanos, size, parsed.seconds)
    found = {
        "exchanges": group.exchanges,
        "step": {"mean": group.step_mean, "p50": group.step_p50, "p99": group.step_p99},
        "cycle": {"p50": group.cycle_p50},
        "client_cpu": group.client_cpu,
        "engine_cpu": group.engine_cpu,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
