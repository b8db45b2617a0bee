"""The peers of the step round trip in Python; each uses the fastest way of its library to wait for a step's results.

- over_socket: a Unix socket to the C++ server of round_trip.
- over_pipe: multiprocessing.Pipe.
- over_grpc: a unary RPC with bytes to the C++ server of round_trip.
- over_iceoryx2: requests and responses in loaned memory; both sides poll and never sleep.
- over_async_vector_env: observations in shared memory, not copied for the caller; the workers are the engine.

Each function imports its library itself, since an environment does not have all of them. No process or file remains
after this process: its children get a signal, sockets have abstract names, and iceoryx2's files are in a mount
namespace.
"""

import contextlib
import ctypes
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.benchmark.client_loop import Floats, PackedResults, Results, Step, nbytes_of, trivial_work
from tests.benchmark.engine_process import Size, forked, serving
from tests.benchmark.rows import RowUnavailable
from tests.benchmark.worker import end_with_parent

_CONNECT_SECS = 30.0
_CLONE_NEWNS, _CLONE_NEWUSER = 0x20000, 0x10000000
_MS_REC_PRIVATE = 0x4000 | 0x40000


@contextlib.contextmanager
def over_socket(size: Size, name: str) -> Iterator[Step]:
    """Steps through a Unix socket."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    packed = PackedResults(size)
    received = packed.memory.data

    def step(actions: Floats) -> Results:
        ours.sendall(actions.data)
        got = 0
        while got < len(received):
            now = ours.recv_into(received[got:])
            if now == 0:
                raise ConnectionResetError("expected results, found that the engine closed the socket")
            got += now
        return packed.arrays

    number = theirs.fileno()
    with ours, serving("socket", size, name, f"--socket={number}", pass_fds=(number,)):
        theirs.close()
        yield step


@contextlib.contextmanager
def over_pipe(size: Size, name: str) -> Iterator[Step]:
    """Steps through a pipe."""
    ours, theirs = multiprocessing.Pipe()

    def serve() -> None:
        work, results = trivial_work(size), PackedResults(size).arrays
        while True:
            work(theirs.recv(), results)
            theirs.send(results)

    def step(actions: Floats) -> Results:
        ours.send(actions)
        results: Results = ours.recv()
        return results

    with ours, forked(serve):
        theirs.close()
        yield step


@contextlib.contextmanager
def over_grpc(size: Size, name: str) -> Iterator[Step]:
    """Steps by gRPC."""
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
    with serving("grpc", size, name), grpc.insecure_channel(f"unix-abstract:{name}", options) as channel:
        grpc.channel_ready_future(channel).result(timeout=_CONNECT_SECS)
        call = channel.unary_unary(
            "/tandem.benchmark.StepEngine/Step",
            request_serializer=Actions.SerializeToString,
            response_deserializer=StepResults.FromString,
        )
        yield step


@contextlib.contextmanager
def over_iceoryx2(size: Size, name: str) -> Iterator[Step]:
    """Steps through iceoryx2."""
    import iceoryx2

    _enter_own_folders()  # after all imports: /tmp is a new folder from here on
    iceoryx2.set_log_level(iceoryx2.LogLevel.Error)
    action_bytes = size.envs * size.act * 4
    response = None  # owns the results' memory, until the next response

    def service() -> tuple[object, iceoryx2.PortFactoryRequestResponse]:
        node = iceoryx2.NodeBuilder.new().create(iceoryx2.ServiceType.Ipc)
        octets = iceoryx2.Slice[ctypes.c_uint8]
        builder = node.service_builder(iceoryx2.ServiceName.new(name)).request_response(octets, octets)
        cache_line = iceoryx2.Alignment.new(64)
        builder = builder.request_payload_alignment(cache_line).response_payload_alignment(cache_line)
        return node, builder.open_or_create()

    def serve() -> None:
        work = trivial_work(size)
        node, factory = service()
        server = factory.server_builder().initial_max_slice_len(nbytes_of(size)).create()
        while True:
            asked = server.receive()
            if asked is None:
                continue
            reply = asked.loan_slice_uninit(nbytes_of(size))
            results = PackedResults(size, reply.payload().as_memory_view()).arrays
            actions = np.frombuffer(asked.payload().as_memory_view(), np.float32).reshape(size.envs, size.act)
            work(actions, results)
            reply.assume_init().send()

    def step(actions: Floats) -> Results:
        nonlocal response
        request = client.loan_slice_uninit(action_bytes)
        request.payload().as_memory_view().cast("B")[:] = actions.data.cast("B")
        pending = request.assume_init().send()
        response = None
        while response is None:
            response = pending.receive()
        return PackedResults(size, response.payload().as_memory_view()).arrays

    with forked(serve):
        node, factory = service()
        client = factory.client_builder().initial_max_slice_len(action_bytes).create()
        until = time.monotonic() + _CONNECT_SECS
        while factory.dynamic_config.number_of_servers == 0:
            if time.monotonic() > until:
                raise RuntimeError(f"iceoryx2: expected the engine's server in {_CONNECT_SECS:.0f} s, found none")
        yield step


@contextlib.contextmanager
def over_async_vector_env(size: Size, name: str) -> Iterator[Step]:
    """Steps through Gymnasium's AsyncVectorEnv."""
    from gymnasium.vector import AsyncVectorEnv

    envs = AsyncVectorEnv([_trivial_env(size)] * size.envs, shared_memory=True, copy=False, context="fork")

    def step(actions: Floats) -> Results:
        obs, rewards, terminated, _, _ = envs.step(actions)
        return obs, rewards, terminated

    try:
        envs.reset()
        yield step
    finally:
        envs.close(terminate=True)


def _trivial_env(size: Size) -> Callable[[], Any]:
    """Returns a function that makes a Gymnasium environment with the engines' work."""
    import gymnasium

    client = os.getpid()

    class TrivialEnv(gymnasium.Env[Floats, Floats]):
        def __init__(self) -> None:
            if os.getpid() != client:  # Gymnasium also makes one environment in the client, for its spaces
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


def _enter_own_folders() -> None:
    """Gives this process and its children a private /dev/shm and /tmp, which end with them."""
    libc = ctypes.CDLL(None, use_errno=True)

    def require(worked: bool) -> None:
        if not worked:
            raise RowUnavailable(
                f"iceoryx2: expected the right to a mount namespace, found: {os.strerror(ctypes.get_errno())}. Next: "
                "leave its row out, or run as root (in a container: with CAP_SYS_ADMIN)"
            )

    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_CLONE_NEWNS):
        # Without that right, a process may be root in a user namespace.
        require(libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNS) == 0)
        for file, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            try:
                with open(f"/proc/self/{file}", "w", encoding="ascii") as out:
                    out.write(text)
            except OSError as error:
                raise RowUnavailable(f"iceoryx2: {error}") from error
    require(libc.mount(b"none", b"/", None, ctypes.c_ulong(_MS_REC_PRIVATE), None) == 0)
    for folder in (b"/dev/shm", b"/tmp"):
        require(libc.mount(b"tmpfs", folder, b"tmpfs", ctypes.c_ulong(0), None) == 0)
